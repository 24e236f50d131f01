// The interface to the owner of a gateway session, which gets the channels and their data.
#pragma once

#include <cstddef>

#include "base/types.h"
#include "gateway/session/frame.h"

namespace mcastcoll::gateway::session {

class Host {
  public:
    virtual ~Host() = default;
    // The peer opened a channel; preface is the argument of its open_channel().
    virtual void opened(ChannelId channel, Bytes preface) = 0;
    // Takes as many bytes as possible now and returns their number; the rest waits for Session::drain().
    virtual std::size_t deliver(ChannelId channel, Bytes bytes) = 0;
    // Reports the end of a channel's data: all bytes were delivered.
    virtual void finished(ChannelId channel) = 0;
    // The channel is gone. The host must not use its number again.
    virtual void was_reset(ChannelId channel) = 0;
};

}  // namespace mcastcoll::gateway::session
