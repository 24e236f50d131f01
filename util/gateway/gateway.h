// The gateway of a site: listens at one port for its processes and for other gateways, and has a peer for
// each other site.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gateway/loop.h"
#include "gateway/newcomer.h"
#include "gateway/peer.h"
#include "gateway/settings.h"
#include "trunk/channel.h"

namespace mcastcoll::gateway {

class Gateway final : public Watched {
  public:
    explicit Gateway(const Settings& settings);
    ~Gateway() override;

    Result<void> start();
    // Until it is told to end: 0, or 1 if connections had to be cut.
    int run();

    const Settings& settings() const { return settings_; }
    GatewayCounters& counters() { return counters_; }
    const GatewayCounters& counters() const { return counters_; }
    Loop& loop() { return loop_; }
    Nanoseconds now() const { return loop_.now(); }
    Nanoseconds started() const { return started_; }
    bool draining() const { return draining_; }
    trunk::WindowPool& pool() { return pool_; }
    const std::vector<std::unique_ptr<Peer>>& peers() const { return peers_; }
    std::size_t newcomers() const { return newcomers_.size(); }
    std::size_t connections() const;
    bool full() const { return draining_ || connections() >= settings_.max_connections; }

    // How memory is divided: half of it are the first windows of all connections that may be, a quarter is
    // what windows grow by, a quarter is what trunks have sent and keep until it is acknowledged.
    std::uint32_t first_window() const;
    std::size_t send_memory() const;

    // A process of this site, or somebody on this machine.
    bool is_ours(const Endpoint& from, const Endpoint& to) const;
    // The peer whose gateway has this address.
    const Peer* gateway_at(const Endpoint& host) const;
    Peer* peer_of(const Endpoint& target) const;
    Peer* peer_named(const std::string& site) const;
    // Where trunks are connected from, so that the others know us.
    std::optional<Endpoint> wan_source() const;

    FileDescriptor take(Newcomer& newcomer, FileDescriptor& socket);
    void forget(Newcomer& newcomer);
    void say(const std::string& what) const;

    void on_events(std::uint32_t events) override;

  private:
    class Signals;
    void accept_all();
    void crowd_out();
    void check_newcomers();
    void begin_to_end();
    Nanoseconds next_deadline() const;

    const Settings settings_;
    Loop loop_;
    GatewayCounters counters_;
    trunk::WindowPool pool_;
    FileDescriptor listener_;
    std::unique_ptr<Signals> signals_;
    std::list<std::unique_ptr<Newcomer>> newcomers_;  // the oldest first
    std::vector<std::unique_ptr<Peer>> peers_;
    bool accepting_ = false, draining_ = false, end_now_ = false;
    Nanoseconds started_{0}, accept_again_ = kNever, drained_at_ = kNever, look_at_{0};
};

}  // namespace mcastcoll::gateway
