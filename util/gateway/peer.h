// Another site from the view of this gateway: the session with its gateway, the streams of the session, and
// the connections in the session.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/connection.h"
#include "gateway/link.h"
#include "gateway/link_owner.h"
#include "gateway/preface.h"
#include "gateway/session/host.h"
#include "gateway/session/session.h"
#include "gateway/shared.h"
#include "sites/sites.h"

namespace mcastcoll::gateway {

class Peer final : public session::Host, public LinkOwner {
  public:
    Peer(Shared& shared, const sites::Site& site);

    session::Session& session() { return session_; }
    const session::Session& session() const { return session_; }
    const sites::Site& site() const { return site_; }
    // Whether this gateway connects to the other: the gateway with the lesser site name does.
    bool connects() const { return connects_; }
    std::size_t connections() const { return connections_.size(); }
    const std::string& last_failure() const { return last_failure_; }
    const std::array<std::unique_ptr<Link>, session::kMaxStreams>& links() const { return links_; }

    // Connects a local process with a remote one; resets the socket on failure.
    void adopt(FileDescriptor socket, const Preface& preface);
    // The hello of this gateway for one of the streams.
    session::Hello own_hello(unsigned stream) const;
    // Takes over a connection from the peer's gateway, authenticated if there is a key.
    void accept(FileDescriptor socket, const session::Hello& theirs, std::unique_ptr<Tls> tls);

    // Overrides of LinkOwner.
    bool welcomed(Link& link, const session::Welcome& welcome) override;
    void link_up(Link& link, std::uint32_t window) override;
    void link_closed(Link& link, bool was_up, const std::string& why) override;
    void violated(const std::string& what) override {
        violation_ = "the gateway there breaks the protocol: " + what;
    }

    // Functions for connections.
    Shared& shared() { return shared_; }
    session::FramePointer& scratch() { return scratch_; }
    // Size of a bulk frame.
    std::size_t frame_size() const { return frame_size_; }
    // Requests another round of writing.
    void has_work() { has_work_ = true; }
    void again_later(session::ChannelId channel) { again_.push_back(channel); }
    void remove(session::ChannelId channel);
    // Time limits of connections in a state that may never end.
    std::map<Connection*, Nanoseconds>& waiting() { return waiting_; }

    // Called by the gateway in each round: moves data and handles deadlines.
    void work(Nanoseconds now);
    bool wants_work_at_once() const { return !again_.empty() || work_left_; }
    Nanoseconds next_deadline() const;
    void reset_all();
    void look_at_links(Nanoseconds now);

    // Overrides of session::Host.
    void opened(session::ChannelId channel, Bytes preface) override;
    std::size_t deliver(session::ChannelId channel, Bytes bytes) override;
    void finished(session::ChannelId channel) override;
    void was_reset(session::ChannelId channel) override;

  private:
    void abandon(const std::string& why);
    void connect_streams(Nanoseconds now);
    void check_time(Nanoseconds now);
    void check_waiting(Nanoseconds now);
    bool write_all(Nanoseconds now);
    bool write_bulk(std::span<Link*> links, Nanoseconds now);
    Connection* find(session::ChannelId channel) const;
    void install(std::unique_ptr<Link> link);
    void install(session::ChannelId channel, FileDescriptor socket, const std::optional<Preface>& preface);

    Shared& shared_;
    const sites::Site& site_;
    const bool connects_;
    session::Session session_;
    std::uint64_t session_id_, bound_to_ = 0;
    std::array<std::unique_ptr<Link>, session::kMaxStreams> links_;
    std::array<Nanoseconds, session::kMaxStreams> connect_at_{}, connect_pause_{};
    std::unordered_map<session::ChannelId, std::unique_ptr<Connection>> connections_;
    std::map<Connection*, Nanoseconds> waiting_;
    std::vector<session::ChannelId> again_;
    session::FramePointer scratch_;
    std::size_t frame_size_ = session::kMaxPayload;
    bool has_work_ = false, work_left_ = false;
    std::string violation_, last_failure_ = "never connected";
    Nanoseconds down_since_, waiting_checked_{0};
};

}  // namespace mcastcoll::gateway
