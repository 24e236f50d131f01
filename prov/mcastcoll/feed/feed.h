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
    std::optional<wire::Key> key{};  // of this group alone; none: strangers cannot be told from members
    std::size_t memory = std::size_t{64} << 20;  // for what came out of order, from all senders together
};

enum class Loss : std::uint8_t {
    silent,    // a sender that owes something has not been heard for the peer timeout
    expelled,  // this member, by a sender that it was too slow for
    gap,       // a sender no longer has what is missing here
};

struct FeedCounters {
    std::uint64_t sent = 0, repaired = 0, received = 0, duplicates = 0, reports = 0, beats = 0, expelled = 0;
    std::uint64_t dropped = 0;  // receivers that did not answer
    // Packets that were not taken: of members that are not known; without a right proof; repeated by
    // somebody; of a member, but not from where it is; of who has not answered yet; for want of memory.
    std::uint64_t strays = 0, unproven = 0, replayed = 0, misplaced = 0, unanswered = 0, crowded = 0;
};

class Feed {
  public:
    static constexpr unsigned kProbes = 4;
    static constexpr Nanoseconds kAnswers = Nanoseconds::from_ms(400);

    class Host {
      public:
        // Packets of `unit` bytes each, the last one perhaps shorter. False: there is no room now, and none
        // of them was sent.
        virtual bool multicast(Bytes packets, std::size_t unit) = 0;
        virtual void send(const Place& to, Bytes packet) = 0;
        // The next piece of a message of this member; false: not now.
        virtual bool deliver(const Member& from, std::uint8_t flags, Bytes piece) = 0;
        virtual void lost(const Member& member, Loss how) = 0;

      protected:
        ~Host() = default;
    };

    Feed(const Config& config, Host& host, Nanoseconds now);

    // All probes are out, there was time to answer, and who has spoken knows of this member; but who says
    // that it is somebody and is not keeps no join from ending.
    bool joined(Nanoseconds now) const {
        return probes_left_ == 0 && now >= probe_at_ &&
               (members_.all_answered() || now >= probe_at_ + kAnswers);
    }
    // False: a receiver is a window behind.
    bool can_send(std::size_t bytes) const { return outgoing_.fits(bytes); }
    // What is short may wait for more, but no longer than until tick() or flush().
    void send(Bytes message, Nanoseconds now);
    // Who is not coming back soon has all leave that was sent.
    void flush(Nanoseconds now);
    // Every receiver has everything.
    bool settled() const { return outgoing_.empty(); }
    void leave(Nanoseconds now);

    // Header is what decode() made of the packet.
    void on_packet(const Header& header, Bytes packet, const Place& source, Nanoseconds now);
    // Hands messages to the host as far as it takes them.
    void deliver();
    void tick(Nanoseconds now);
    Nanoseconds next_deadline() const;

    std::size_t receivers() const { return members_.receivers(); }
    const FeedCounters& counters() const { return counters_; }

  private:
    static constexpr Nanoseconds kBeatLongest = Nanoseconds::from_ms(128);

    // Null: there are too many.
    Member* find_or_add(MemberId id, const Place& place, Nanoseconds now);
    Header header(Kind kind, MemberId to) const;
    // The packet for header.to, or for everybody, whatever the place.
    void tell(Header header, const Place& to = {}, Bytes body = {});
    void send_join(MemberId to, const Place& place, Nanoseconds now);
    Header introduction(Kind kind, MemberId to) const;
    void welcome(Member& member);
    void emit(Nanoseconds now);
    void on_leave(Member& member, const Header& header);
    void on_introduction(Member& member, const Header& header, Bytes body, const Place& source,
                         Nanoseconds now);
    bool is_answer(const Member& member, const Header& header, Bytes body) const;
    void add_receiver(Member& member, const Header& header, Nanoseconds now);
    void add_sender(Member& member, const Header& header);
    void ask_again(Nanoseconds now);
    void bar(Member& member, Loss how);
    bool is_from(Member& member, const Header& header, const Place& source);
    bool takes_from(Member* sender, const Header& header, const Place& source, Nanoseconds now);
    void on_data(Member& member, const Header& header, Bytes body, Nanoseconds now);
    void on_beat(Member& member, const Header& header, Nanoseconds now);
    void on_report(Member* member, const Header& header, Bytes body, const Place& source, Nanoseconds now);
    void repair(const Header& report, Bytes bitmap, Nanoseconds now);
    void report(Member& member, bool holes);
    bool hand_over(Member& member, Bytes body);
    void report_progress(Member& member);
    void beat(bool wanted, Nanoseconds now);
    void trim();
    void limit_window();
    void expel_late(Nanoseconds now);
    void drop_unanswered(Nanoseconds now);
    void bar_silent(Nanoseconds now);

    // Limits how many packets a sender multicasts again in a group without a key, where every host can forge
    // reports.
    class RepairBudget {
      public:
        bool any(Nanoseconds now);
        void take() { --left_; }

      private:
        std::uint64_t left_ = kMostRepairs;
        Nanoseconds filled_at_;
    };
    static constexpr std::uint64_t kMostRepairs = 2048;                    // at once: one window
    static constexpr Nanoseconds kRepairEvery = Nanoseconds::from_us(50);  // then one packet each

    const Config config_;
    Host& host_;
    Proof proof_;
    Store store_;  // lives longer than the members, who keep packets in it
    Outgoing outgoing_;
    Pacer pacer_;
    Members members_;
    unsigned probes_left_ = kProbes;
    const Nanoseconds meets_until_;
    Nanoseconds impatient_until_;
    RepairBudget repairs_;
    Nanoseconds probe_at_, stray_at_, looked_at_, flush_at_ = kNever, beat_at_ = kNever, beat_after_;
    FeedCounters counters_;
};

}  // namespace mcastcoll::feed
