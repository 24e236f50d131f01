// A new connection that has not identified itself: a process (preface), a gateway (TLS and hello) or a
// browser of the status page ("GET"). Time and number of such connections are limited; connections from an
// address outside this site that is no gateway's are closed first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/types.h"
#include "gateway/shared.h"
#include "gateway/sockets.h"
#include "gateway/tls.h"
#include "gateway/watched.h"
#include "wire/bytes.h"

namespace mcastcoll::gateway {

class Gateway;

class PendingConnection final : public Watched {
  public:
    PendingConnection(Gateway& gateway, FileDescriptor socket, const Endpoint& from);

    void on_events(std::uint32_t events) override;
    void close();
    Nanoseconds deadline() const { return deadline_; }
    // The address of the connecting host, without the port.
    const Endpoint& host() const { return host_; }
    bool is_foreign() const { return foreign_; }

  private:
    bool uses_tls() const { return magic() >> 16 == 0x1603; }  // a record that begins a handshake
    std::size_t wanted() const;
    std::uint32_t magic() const { return wire::get<std::uint32_t>(input_.data()); }
    std::string_view text() const { return {reinterpret_cast<const char*>(input_.data()), size_}; }
    void listen();
    void decide();
    void on_preface(Bytes bytes);
    void on_hello(Bytes bytes);
    void begin_tls(Bytes bytes);
    void go_on_with_tls();
    void on_get();
    void refuse(std::uint64_t& counter);
    void refuse(std::uint64_t& counter, const std::string& why);
    void reply();

    Gateway& gateway_;
    Shared& shared_;
    FileDescriptor socket_;
    const Endpoint from_, host_;
    const bool of_site_, foreign_;
    const Nanoseconds deadline_;
    std::array<std::byte, 2048> input_{};  // a TLS client hello has 1.6 KiB with a post-quantum key share
    std::size_t size_ = 0;
    std::unique_ptr<Tls> tls_;
    std::string reply_;
    std::size_t replied_ = 0;
};

}  // namespace mcastcoll::gateway
