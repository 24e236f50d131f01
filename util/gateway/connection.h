// A connection of one of the site's processes: its socket on one side, a channel of a session on the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/file_descriptor.h"
#include "base/types.h"
#include "gateway/preface.h"
#include "gateway/session/frame.h"
#include "gateway/watched.h"

namespace mcastcoll::gateway {

class Peer;

class Connection final : public Watched {
  public:
    // Without `preface`, takes the socket of a local process, which has sent its preface (preface.h). With
    // `preface`, takes a new connection to a local process, and sends it the preface once connected.
    Connection(Peer& peer, session::ChannelId channel, FileDescriptor socket,
               const std::optional<Preface>& preface);

    void on_events(std::uint32_t events) override;
    // Reads while data is available and the session accepts data.
    void pump();
    std::size_t deliver(Bytes bytes);
    void finish();
    void close(bool with_reset);
    int descriptor() const { return socket_.get(); }
    // Closes the connection when its time limit (Peer::waiting()) has ended.
    void on_deadline();

  private:
    void connected();
    void fail();
    void send_on(std::size_t size);
    void check_end();

    Peer& peer_;
    const session::ChannelId channel_;
    FileDescriptor socket_;
    bool connecting_, readable_, writable_;
    bool peer_closed_ = false, broken_ = false;  // from the last events
    bool read_all_ = false, finish_wanted_ = false;
    Nanoseconds last_write_{0};
    std::array<std::byte, kPrefaceSize> preface_{};
};

}  // namespace mcastcoll::gateway
