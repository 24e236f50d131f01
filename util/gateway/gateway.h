// The gateway of a site: listens at one port for its processes and for other gateways, and has a peer for
// each other site.
#pragma once

#include <list>
#include <string_view>

#include "gateway/peer.h"
#include "wire/bytes.h"

namespace mcastcoll::gateway {

class Gateway;

// A new connection that has not identified itself: a process (preface), a gateway (TLS and hello) or a
// browser of the status page ("GET"). Time and number of such connections are limited; connections from an
// address outside this site that is no gateway's are closed first.
class PendingConnection final : public Watched {
  public:
    PendingConnection(Gateway& gateway, FileDescriptor socket, const Endpoint& from);

    void on_events(std::uint32_t events) override;
    void close();
    Nanoseconds deadline() const { return deadline_; }
    // The address without the port.
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

class Gateway final : public Watched {
  public:
    explicit Gateway(const Settings& settings);

    Result<void> start();
    // Runs until a signal requests the end. Returns 0, or 1 if connections had to be cut.
    int run();

    Shared& shared() { return shared_; }
    const Shared& shared() const { return shared_; }
    Nanoseconds started() const { return started_; }
    const std::vector<std::unique_ptr<Peer>>& peers() const { return peers_; }
    std::size_t pending_connections() const { return pending_.size(); }

    // From a process of this site or on this machine.
    bool is_of_site(const Endpoint& from, const Endpoint& to) const;
    // From another site's gateway.
    bool is_gateway(const Endpoint& host) const;
    // nullptr for the own site, and for nullptr.
    Peer* peer_of(const sites::Site* site) const;

    // The status page. Rebuilding takes an eighth of this thread's time at most, however often the page is
    // requested.
    const std::string& status(bool json);

    FileDescriptor take(PendingConnection& connection, FileDescriptor& socket);
    void forget(PendingConnection& connection);

    void on_events(std::uint32_t events) override;

  private:
    struct StatusPage {
        std::string text;
        Nanoseconds good_until{0};
    };

    Result<void> watch_signals();
    void accept_all();
    void evict_pending();
    void check_pending();
    void begin_to_end();
    Nanoseconds next_deadline() const;

    Shared shared_;
    FileDescriptor listener_, signals_;
    std::list<std::unique_ptr<PendingConnection>> pending_;  // oldest first
    std::vector<std::unique_ptr<Peer>> peers_;
    std::array<StatusPage, 2> pages_;  // text, JSON
    bool accepting_ = false, end_now_ = false;
    Nanoseconds started_{0}, accept_again_ = kNever, drained_at_ = kNever, look_at_{0};
};

// The status page: the state of gateway sessions, their streams and the site's own connections, for people
// and for programs.
std::string status_as_text(const Gateway& gateway);
std::string status_as_json(const Gateway& gateway);
// Fetches the page of a running gateway; waits a few seconds at most.
Result<std::string> request_status(const sites::Endpoint& gateway, bool json);

}  // namespace mcastcoll::gateway
