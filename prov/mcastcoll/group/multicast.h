// The multicast addresses of a group, chosen by rank 0 and joined by the host leaders.
#pragma once

#include <string>
#include <vector>

#include "levels/placement.h"
#include "wire/join.h"
#include "wire/packet.h"

namespace mcastcoll::group {

// The hellos of all members, by rank.
using Hellos = std::vector<wire::Hello>;

class Multicast {
  public:
    // On rank 0: fills in the key, epoch, multicast addresses and datagram size of an otherwise complete
    // welcome. Returns 0 or FI_E*.
    virtual int offer(wire::Welcome& welcome, const Hellos& hellos) = 0;
    // Joins the multicast addresses. Called once, on a host leader. Afterwards joined() is true, or why_not()
    // gives the reason.
    virtual void join(const wire::Welcome& welcome, const levels::Placement& placement) = 0;
    virtual bool joined() const = 0;
    virtual const std::string& why_not() const = 0;
    // The multicast address, for the log.
    virtual std::string name() const = 0;

    // Whether there is room to send.
    virtual bool can_send() const = 0;
    // Call only when can_send(). The payload must stay valid until the next flush(). range: the range of
    // ranks to whose multicast address the datagram goes.
    virtual void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t range) = 0;
    virtual void flush() = 0;
    // Drops the references to payloads: the buffers return to the application.
    virtual void forget_payloads() = 0;

  protected:
    ~Multicast() = default;
};

}  // namespace mcastcoll::group
