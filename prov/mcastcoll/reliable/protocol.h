// Reliable multicast messages in one group, on one member. README.md describes the protocol. Pure: the caller
// passes in packets and times, and receives packets and messages through Host.
#pragma once

#include "reliable/member.h"
#include "reliable/members.h"
#include "reliable/outgoing.h"
#include "reliable/pacer.h"

namespace mcastcoll::reliable {

struct Config {
    MemberId self{};
    std::uint64_t group = 0;
    bool sends = true, receives = true;
    std::size_t window = 512;    // packets
    std::size_t payload = 1200;  // bytes of data in a packet, at most kMaxPayload
    std::size_t room = 512;      // packets that fit in this member's receive buffer
    Nanoseconds peer_timeout = Nanoseconds::from_ms(5000);
    // Key of this group alone. Without a key, foreign hosts cannot be distinguished from members.
    std::optional<wire::Key> key{};
    std::size_t memory = std::size_t{64} << 20;  // bytes for out-of-order packets of all senders together
};

enum class Loss : std::uint8_t {
    silent,    // a sender that owes data was silent for the peer timeout
    expelled,  // a sender expelled this member as too slow
    gap,       // a sender no longer has a packet that is missing here
};

struct Counters {
    std::uint64_t sent = 0, repaired = 0, received = 0, duplicates = 0, reports = 0, heartbeats = 0,
                  expelled = 0;
    std::uint64_t unresponsive = 0;  // receivers that did not answer
    // Refused packets: from unknown members (foreign); without a valid tag; replayed; with a member's id from
    // another address (other_source); reports from members without an answer (unverified); for lack of memory
    // (no_room).
    std::uint64_t foreign = 0, invalid_tag = 0, replayed = 0, other_source = 0, unverified = 0, no_room = 0;
};

class Protocol {
  public:
    static constexpr unsigned kProbes = 4;
    static constexpr Nanoseconds kAnswers = Nanoseconds::from_ms(400);

    class Host {
      public:
        // Sends packets of `unit` bytes each, the last perhaps shorter. False: no room now, and no packet was
        // sent.
        virtual bool multicast(Bytes packets, std::size_t unit) = 0;
        virtual void send(const Place& to, Bytes packet) = 0;
        // Delivers the next piece of a message from a member. False: no room now.
        virtual bool deliver(const Member& from, std::uint8_t flags, Bytes piece) = 0;
        virtual void lost(const Member& member, Loss how) = 0;

      protected:
        ~Host() = default;
    };

    Protocol(const Config& config, Host& host, Nanoseconds now);

    // True when all probes are sent, there was time for answers, and every known member has answered. A
    // member without an answer, whose id may be forged, delays the end of a join by at most kAnswers.
    bool joined(Nanoseconds now) const {
        return probes_left_ == 0 && now >= probe_at_ &&
               (members_.all_answered() || now >= probe_at_ + kAnswers);
    }
    // False while a receiver is a window behind.
    bool can_send(std::size_t bytes) const { return outgoing_.fits(bytes); }
    // Requires can_send(). A short message may wait for more messages, but at most until tick() or flush().
    void send(Bytes message, Nanoseconds now);
    // Sends all queued packets; to be called before the caller sleeps.
    void flush(Nanoseconds now);
    // Every receiver has acknowledged all data.
    bool settled() const { return outgoing_.empty(); }
    void leave(Nanoseconds now);

    // header: the result of decode() for the packet.
    void on_packet(const Header& header, Bytes packet, const Place& source, Nanoseconds now);
    // Delivers messages to the host while the host accepts them.
    void deliver();
    void tick(Nanoseconds now);
    Nanoseconds next_deadline() const;

    std::size_t receivers() const { return members_.receivers(); }
    const Counters& counters() const { return counters_; }

  private:
    static constexpr Nanoseconds kBeatLongest = Nanoseconds::from_ms(128);

    // Null if the group has too many members to add one.
    Member* find_or_add(MemberId id, const Place& place, Nanoseconds now);
    Header header(Kind kind, MemberId to) const;
    // Sends a packet. to: the address of the member header.to; ignored if header.to is kAllMembers.
    void send_packet(Header header, const Place& to = {}, Bytes body = {});
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
    void repeat_requests(Nanoseconds now);
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

    // Limits retransmissions in a group without a key, in which every host can forge reports.
    class RepairBudget {
      public:
        bool any(Nanoseconds now);
        void take() { --left_; }

      private:
        std::uint64_t left_ = kMaxRepairs;
        Nanoseconds filled_at_;
    };
    static constexpr std::uint64_t kMaxRepairs = 2048;                     // at once: one window
    static constexpr Nanoseconds kRepairEvery = Nanoseconds::from_us(50);  // afterwards, time per packet

    const Config config_;
    Host& host_;
    Proof proof_;
    Store store_;  // declared before the members, which keep packets in the store
    Outgoing outgoing_;
    Pacer pacer_;
    Members members_;
    unsigned probes_left_ = kProbes;
    const Nanoseconds meets_until_;  // until then, new members may answer this member's first joins
    Nanoseconds strict_until_;       // until then a member without an answer does not hold a crowded window
    RepairBudget repairs_;
    Nanoseconds probe_at_, stray_at_, looked_at_, flush_at_ = kNever, beat_at_ = kNever, beat_after_;
    Counters counters_;
};

}  // namespace mcastcoll::reliable
