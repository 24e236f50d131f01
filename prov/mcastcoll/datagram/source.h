// A source of completions: an endpoint. An endpoint depends on its queues and counters, which see the
// endpoint only through this interface. The domain's lock must be held.
#pragma once

namespace mcastcoll::datagram {

class Source {
  public:
    // Takes the data that has arrived in the endpoint's sockets.
    virtual void receive() = 0;
    // Called before a thread sleeps: starts or stops watching the sockets.
    virtual void watch() = 0;

  protected:
    ~Source() = default;
};

}  // namespace mcastcoll::datagram
