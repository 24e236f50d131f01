// Calls of libmunge: munged puts a few bytes into a credential or takes them out. Credentials made here can
// be opened only by processes of the same user, and only credentials made by such a process are accepted.
//
// A call of munged takes a tenth of a millisecond, or blocks if munged hangs (libmunge gives up after about
// ten seconds). So each call has a detached thread. After a timeout the caller abandons the call, and the
// thread ends by itself. The provider is never unloaded (ofi/local.mk), so the thread's code stays.
//
// libmunge is loaded at the first use, so the provider also loads on hosts without libmunge.
#pragma once

#include <memory>
#include <string>

#include "base/types.h"
#include "wire/peer.h"

namespace mcastcoll::ports {

class MungeCall {
  public:
    static constexpr const char* kSilent = "munged does not respond";

    enum class State {
        under_way,
        done,
        refused,     // the credential belongs to another user, is too old, or is damaged
        unavailable  // munged or libmunge is not available
    };

    // socket: munged's socket, or "" for the default.
    static MungeCall encode(const std::string& socket, Bytes payload);
    static MungeCall decode(const std::string& socket, Bytes credential);

    State state() const;
    // The credential or its content, in state `done`.
    const wire::ByteString& result() const;
    // The reason of a failure, as text for the user, in the states `refused` and `unavailable`.
    const std::string& reason() const;

  private:
    friend struct MungeWork;
    struct Outcome;
    static MungeCall begin(bool encodes, const std::string& socket, Bytes bytes);
    std::shared_ptr<Outcome> outcome_;
};

}  // namespace mcastcoll::ports
