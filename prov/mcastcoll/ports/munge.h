// Calls of libmunge's, which have munged put a few bytes into a credential, or take them out. Only processes
// of this one's user can open what is made here, and only what one of them has made is opened.
//
// munged takes a tenth of a millisecond, or for ever if it stands still (libmunge then gives up after some
// ten seconds). So each call has a thread of its own, which nobody waits for: who loses patience lets go of
// the call, and the thread ends by itself. The provider is never unloaded (ofi/local.mk).
//
// libmunge is opened when it is first needed, so that the provider can be loaded where there is none.
#pragma once

#include <memory>
#include <string>

#include "base/types.h"
#include "wire/peer.h"

namespace mcastcoll::ofi {

class MungeCall {
  public:
    enum class State {
        under_way,
        done,
        refused,     // the credential is nobody's of this user, or too old, or damaged
        unavailable  // munged, or libmunge
    };

    // socket: where munged listens, or "" where it usually does.
    static MungeCall encode(const std::string& socket, Bytes payload);
    static MungeCall decode(const std::string& socket, Bytes credential);

    State state() const;
    // Of what is done: the credential, or what was in it; of the others: why, for people.
    const wire::ByteString& result() const;
    const std::string& reason() const;

  private:
    friend struct MungeWork;
    struct Outcome;
    static MungeCall begin(bool encodes, const std::string& socket, Bytes bytes);
    std::shared_ptr<Outcome> outcome_;
};

}  // namespace mcastcoll::ofi
