// A connection of one of the site's processes: its socket on one side, a channel of a trunk on the other.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "gateway/loop.h"
#include "gateway/sockets.h"
#include "relay/preface.h"
#include "trunk/frame.h"

namespace mcastcoll::gateway {

class Peer;

class Connection final : public Watched {
  public:
    // A process of ours that said whom it wants.
    Connection(Peer& peer, trunk::ChannelId channel, FileDescriptor socket);
    // A process of ours that somebody wants; the preface goes ahead once the connection is there.
    Connection(Peer& peer, trunk::ChannelId channel, FileDescriptor socket, const relay::Preface& preface);

    void on_events(std::uint32_t events) override;
    // Reads while there is something and the trunk takes it.
    void pump();
    std::size_t deliver(Bytes bytes);
    void finish();
    void close(bool with_reset);
    int descriptor() const { return socket_.get(); }
    // What it waited for has not come.
    void on_deadline();

  private:
    void connected();
    void fail();
    void send_on(std::size_t size);
    void check_end();

    Peer& peer_;
    const trunk::ChannelId channel_;
    FileDescriptor socket_;
    bool connecting_ = false, readable_ = true, writable_ = true;
    bool peer_closed_ = false, broken_ = false;  // as the last events said
    bool read_all_ = false, finish_wanted_ = false, written_all_ = false;
    Nanoseconds last_write_{0};
    std::array<std::byte, relay::kPrefaceSize> preface_{};
};

}  // namespace mcastcoll::gateway
