// The joins of one process: finds the group of a datagram or join message, and answers for joins that have
// not been called yet or are over. A source address is trusted only as far as the port confirms that the
// member may be there.
#pragma once

#include <unordered_map>

#include "group/group.h"
#include "group/join_memory.h"
#include "group/pending_hellos.h"

namespace mcastcoll::group {

class Joins {
  public:
    // A group of this process.
    class Member {
      public:
        virtual Group& core() = 0;
        // The id in this process's own numbering of its joins. The group's messages carry core().id().
        virtual const wire::JoinId& join_id() const = 0;
        virtual const MemberList& members() const = 0;
        // The key that authenticates the group's join messages.
        virtual const wire::JoinKey& key() const = 0;
        // Whether a datagram from this source may come from `rank`. If so, stores the source.
        virtual bool comes_from(Rank rank, const Source& source) = 0;
        // Runs work of this group. An exception in body ends this group and no other.
        virtual void within(Nanoseconds now, FunctionRef<void()> body) noexcept = 0;

      protected:
        ~Member() = default;
    };
    class Port {
      public:
        // Whether an endpoint with this address, taken from the application's list, may have sent from this
        // source.
        virtual bool may_be(const wire::ByteString& member, const Source& source) const = 0;
        virtual bool same_host(const wire::ByteString& one, const wire::ByteString& other) const = 0;
        virtual void reply(const Source& source, Bytes datagram) = 0;
        virtual Result<Outbox::Peer> peer(const wire::ByteString& private_address) = 0;
        virtual void queue_message(std::vector<Outbox::Peer> to, wire::ByteString message) = 0;
        // Reports that a hello of another version of the join protocol has arrived. Called once.
        virtual void foreign_version(const Source& source, std::uint8_t version) = 0;

      protected:
        ~Port() = default;
    };

    explicit Joins(Port& port) : port_(port) {}

    void add(Member& member) { members_[member.join_id().list_hash].push_back(&member); }
    // Delivers the pending hellos for this join. Call when the application has called the join and the
    // members' addresses are known.
    void deliver_pending_hellos(Member& member, Nanoseconds now);
    void forget_pending_hellos(const wire::JoinId& id) { memory_.pending_hellos().forget(id); }
    // Removes a group that is done. If the group has failed, its record answers members that still wait for
    // it.
    void remove(Member& member) noexcept;
    // Records that the join of this member ended without a group.
    void remember_ended(Member& member, int error);

    void on_datagram(Bytes bytes, const Source& source, Nanoseconds now);
    // Takes a reliable message, whose sender knows this process's private address. Returns false if the bytes
    // are no join message.
    bool on_join_message(Bytes message, Nanoseconds now);
    // The latest hello of this rank for a join of the same list that was not called here, or null.
    const wire::Hello* miscounted_hello(Member& member, Rank rank);
    // The latest hello for an unknown list that a missing member of this join might have sent under another
    // secret (the secret is part of the list hash), or null. The match proves nothing.
    const PendingHello* stray_hello(Member& member);

    // Number of datagrams that did not come from a member.
    std::uint64_t foreign_datagrams() const { return foreign_datagrams_; }
    // foreign_datagrams() plus hellos for unknown lists, of which only a later join shows whether their
    // senders are members.
    std::uint64_t suspicious_datagrams() const { return foreign_datagrams_ + early_datagrams_; }

  private:
    // The joins of one list of members. A list may be joined several times.
    const std::vector<Member*>& members_of(std::uint64_t list) const;
    // The group with this id in this process's own numbering, or null.
    Member* find(const wire::JoinId& id) const;
    // The group that uses this id in its messages, or null.
    Member* find_called(const wire::JoinId& id) const;
    // Handles a message about a list of members that was never joined here.
    void on_unknown(Bytes datagram, const Source& source);
    // Whether the hello is late: its process has sent a hello here for the same join, or for a later join of
    // the list.
    bool comes_late(const wire::Hello& hello) const;
    // Returns the key that authenticates the list's join messages, or null if the list is unknown here.
    const wire::JoinKey* key_of(std::uint64_t list);
    static bool is_of(Member& member, const PendingHello& pending);
    void reply(const Source& source, const wire::Answer& answer);
    wire::ByteString prove(const wire::JoinId& id, Bytes message);
    void on_hello(const wire::Hello& hello, Bytes datagram, const Source& source, Nanoseconds now);
    void on_foreign(const wire::ForeignHello& foreign, const Source& source, Nanoseconds now);
    void on_answer(const wire::Answer& answer, const Source& source, Nanoseconds now);
    template <typename Message>
    void on_survey(const std::optional<Message>& message, void (Join::*take)(const Message&, Nanoseconds),
                   const Source& source, Nanoseconds now);
    void on_waiting(const wire::Waiting& waiting, const Source& source, Nanoseconds now);
    void welcome(const wire::MessageHead& head, FunctionRef<void(Group&)> it, Nanoseconds now);
    bool on_group_message(Bytes message, Nanoseconds now);
    void on_gathering(const wire::JoinId& id, FunctionRef<void(Join&)> it, Nanoseconds now);

    Port& port_;
    std::unordered_map<std::uint64_t, std::vector<Member*>> members_;  // by list hash
    JoinMemory memory_;
    std::uint64_t foreign_datagrams_ = 0, early_datagrams_ = 0;
    bool foreign_seen_ = false;  // a hello of another version arrived
    Nanoseconds foreign_since_{};
    std::uint32_t foreign_answers_ = 0;  // answers since foreign_since_
};

}  // namespace mcastcoll::group
