// Reliable multicast messages in one group, as one member of it sees them: README.md has the protocol. Pure:
// it is given packets and times, and hands packets and messages out through its host.
#pragma once

#include "feed/members.h"

namespace mcastcoll::feed {

struct Config {
    MemberId self{};
    std::uint64_t group = 0;
    bool sends = true, receives = true;
    std::size_t window = 512;    // packets
    std::size_t payload = 1200;  // of data in a packet, at most kMostPayload
    std::size_t room = 512;      // packets that this member's receive buffer holds
    Nanoseconds peer_timeout = Nanoseconds::from_ms(5000);
};

enum class Loss : std::uint8_t {
    silent,    // a sender that owes something has not been heard for the peer timeout
    expelled,  // this member, by a sender that it was too slow for
    gap,       // a sender no longer has what is missing here
};

struct FeedCounters {
    std::uint64_t sent = 0, repaired = 0, received = 0, duplicates = 0, reports = 0, beats = 0, expelled = 0;
    std::uint64_t strays = 0;  // packets of members that are not known
};

class Feed {
  public:
    static constexpr unsigned kProbes = 4;

    class Host {
      public:
        // Packets of `unit` bytes each, the last one perhaps shorter. False: there is no room now, and none
        // of them was sent.
        virtual bool multicast(Bytes packets, std::size_t unit) = 0;
        virtual void send(MemberId to, Bytes packet) = 0;
        // The next piece of a message of this member; false: not now.
        virtual bool deliver(MemberId from, std::uint8_t flags, Bytes piece) = 0;
        virtual void lost(MemberId member, Loss how) = 0;

      protected:
        ~Host() = default;
    };

    Feed(const Config& config, Host& host, Nanoseconds now);

    // All probes are out, and there was time to answer.
    bool joined(Nanoseconds now) const { return probes_left_ == 0 && now >= probe_at_; }
    // False: a receiver is a window behind.
    bool can_send(std::size_t bytes) const { return outgoing_.fits(bytes); }
    // What is short may wait for more, but no longer than until tick() or flush().
    void send(Bytes message, Nanoseconds now);
    // Who is not coming back soon has all leave that was sent.
    void flush(Nanoseconds now);
    // Every receiver has everything.
    bool settled() const { return outgoing_.empty(); }
    void leave(Nanoseconds now);

    void on_packet(const Header& header, Bytes body, Nanoseconds now);
    // Hands messages to the host as far as it takes them.
    void deliver();
    void tick(Nanoseconds now);
    Nanoseconds next_deadline() const;

    std::size_t receivers() const { return members_.receivers(); }
    const FeedCounters& counters() const { return counters_; }

  private:
    // Null: there are too many.
    Member* find_or_add(MemberId id, Nanoseconds now);
    Header header(Kind kind, MemberId to) const;
    void tell(const Header& header, Bytes body = {});
    void send_join(MemberId to, Nanoseconds now);
    Header introduction(Kind kind, MemberId to) const;
    void emit(Nanoseconds now);
    void on_leave(Member& member, const Header& header);
    void on_introduction(const Header& header, Nanoseconds now);
    void bar(Member& member, Loss how);
    bool takes_from(Member* sender, const Header& header, Nanoseconds now);
    void on_data(Member& member, const Header& header, Bytes body, Nanoseconds now);
    void on_beat(Member& member, const Header& header, Nanoseconds now);
    void on_report(Member* member, const Header& header, Bytes body, Nanoseconds now);
    void report(Member& member, bool holes);
    bool hand_over(Member& member, Bytes body);
    void report_progress(Member& member);
    void beat(bool wanted, Nanoseconds now);
    void trim();
    void limit_window();
    void expel_late(Nanoseconds now);
    void bar_silent(Nanoseconds now);

    const Config config_;
    Host& host_;
    Outgoing outgoing_;
    Pacer pacer_;
    Members members_;
    unsigned probes_left_ = kProbes;
    Nanoseconds probe_at_, stray_at_, looked_at_, flush_at_ = kNever, beat_at_ = kNever, beat_after_;
    FeedCounters counters_;
};

}  // namespace mcastcoll::feed
