// The gateway of a site: listens at one port for its processes and for other gateways, and has a peer for
// each other site.
#pragma once

#include <array>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gateway/peer.h"
#include "gateway/pending_connection.h"
#include "gateway/shared.h"
#include "gateway/watched.h"

namespace mcastcoll::gateway {

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

    // Whether a connection comes from a process of this site or on this machine.
    bool is_of_site(const Endpoint& from, const Endpoint& to) const;
    // Whether the host is another site's gateway.
    bool is_gateway(const Endpoint& host) const;
    // Returns the peer for another site; nullptr for this gateway's own site, and if `site` is nullptr.
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
