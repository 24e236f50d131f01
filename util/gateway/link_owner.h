// Owner of the links of a session. Only the owner has the session number and the table of streams, so the
// owner decides whether a link belongs to it, and is notified when a link opens or closes. Frames go straight
// to the session.
#pragma once

#include <cstdint>
#include <string>

#include "gateway/session/hello.h"

namespace mcastcoll::gateway {

class Link;

class LinkOwner {
  public:
    // Called on the connector when the acceptor's welcome arrives. Returns false if the link must be closed.
    virtual bool welcomed(Link& link, const session::Welcome& welcome) = 0;
    virtual void link_up(Link& link, std::uint32_t window) = 0;
    virtual void link_closed(Link& link, bool was_up, const std::string& why) = 0;
    virtual void violated(const std::string& what) = 0;

  protected:
    ~LinkOwner() = default;
};

}  // namespace mcastcoll::gateway
