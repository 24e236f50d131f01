// The joins of one process: which of its groups a datagram or a word of a join is for, and what is answered
// for joins that have not been called yet, or are over. Where a datagram came from is believed only as far as
// the port says that a member may be there.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "group/early_greetings.h"
#include "group/group.h"

namespace mcastcoll::group {

// Keeps the latest kMost entries: one more removes the oldest.
template <typename T, std::size_t kMost>
class Recent {
  public:
    void keep(T one) {
        if (entries_.size() == kMost) entries_.pop_front();
        entries_.push_back(std::move(one));
    }
    template <typename Predicate>
    void forget_if(Predicate&& predicate) {
        std::erase_if(entries_, predicate);
    }
    // The latest for which this holds, or null.
    template <typename Predicate>
    const T* latest(Predicate&& predicate) const {
        const auto found = std::find_if(entries_.rbegin(), entries_.rend(), predicate);
        return found == entries_.rend() ? nullptr : &*found;
    }
    template <typename Predicate>
    T* latest(Predicate&& predicate) {
        return const_cast<T*>(std::as_const(*this).latest(std::forward<Predicate>(predicate)));
    }

  private:
    std::deque<T> entries_;
};

// Addresses of members by rank, as the application knows them.
using MemberList = std::shared_ptr<const std::vector<wire::ByteString>>;

// What a process remembers of joins for those who come too early or too late: greetings for joins that were
// not called here yet, and how joins and groups that are gone have ended. The oldest are forgotten.
class JoinMemory {
  public:
    EarlyGreetings& early() { return early_; }

    // A join that this member led has failed: for who greets it still.
    void keep_failed(const wire::JoinId& id, int error) {
        failed_.keep({wire::JoinKind::abort, id, static_cast<std::uint32_t>(error)});
    }
    // Null: none that is remembered.
    const wire::Answer* failed(const wire::JoinId& id) {
        return failed_.latest([&](const wire::Answer& one) { return one.id == id; });
    }

    // A join that this member has given up, whose leader has not been told; and where the leader is.
    void keep_given_up(const wire::JoinId& id, const wire::ByteString& leader) {
        given_up_.keep({id, leader});
    }
    // Once.
    std::optional<wire::ByteString> take_given_up(const wire::JoinId& id) {
        const auto of_this = [&](const GivenUp& one) { return one.id == id; };
        const GivenUp* found = given_up_.latest(of_this);
        if (found == nullptr) return {};
        std::optional<wire::ByteString> leader = found->leader;
        given_up_.forget_if(of_this);
        return leader;
    }

    // Who has greeted here, in a join that is over: what the same process has said of it, or of an earlier
    // one of the same list, may still come.
    void keep_greeted(std::uint64_t list, const std::vector<const wire::Hello*>& heard);
    bool comes_late(const wire::Hello& hello) const;

    // The key that joins of this list have, or had.
    void keep_key(std::uint64_t list, const wire::JoinKey& key) {
        if (key_of(list) == nullptr) keys_.keep({list, key});
    }
    // Null: none that is remembered.
    const wire::JoinKey* key_of(std::uint64_t list) {
        const ListKey* found = keys_.latest([&](const ListKey& one) { return one.list == list; });
        return found == nullptr ? nullptr : &found->key;
    }

    // A group that has failed and is closed here: somebody may still wait for this member.
    struct FailedGroup {
        wire::Ended word;
        MemberList members;
        Roster roster;
        wire::ByteString told{};  // the word with the tag of that group
    };
    void keep_failed_group(FailedGroup group) { failed_groups_.keep(std::move(group)); }
    // Null: none that is remembered.
    FailedGroup* failed_group(const wire::JoinId& id) {
        return failed_groups_.latest([&](const FailedGroup& one) { return one.word.id == id; });
    }

  private:
    struct GivenUp {
        wire::JoinId id;
        wire::ByteString leader;
    };
    struct ListKey {
        std::uint64_t list;
        wire::JoinKey key;
    };
    // By rank: its process, and the number of its latest join.
    struct Greeted {
        std::uint64_t list = 0;
        std::map<Rank, std::pair<std::uint64_t, std::uint32_t>> by{};
    };
    const Greeted* greeted(std::uint64_t list) const {
        return greeted_.latest([&](const Greeted& one) { return one.list == list; });
    }
    EarlyGreetings early_;
    Recent<Greeted, 64> greeted_;
    Recent<ListKey, 256> keys_;
    Recent<wire::Answer, 64> failed_;
    Recent<GivenUp, 64> given_up_;
    Recent<FailedGroup, 64> failed_groups_;
};

class Joins {
  public:
    // A group of this process.
    class Member {
      public:
        virtual Group& core() = 0;
        // As this process counts its joins; the group's words bear core().id().
        virtual const wire::JoinId& join_id() const = 0;
        virtual const MemberList& members() const = 0;
        // What its words are proven with.
        virtual const wire::JoinKey& key() const = 0;
        // Whether a datagram from there may be this member's. If so, the place is remembered.
        virtual bool comes_from(Rank rank, const Source& source) = 0;
        // Work of this group; what is thrown there ends it, and harms no other.
        virtual void within(Nanoseconds now, FunctionRef<void()> body) noexcept = 0;

      protected:
        ~Member() = default;
    };
    class Port {
      public:
        // Whether an endpoint with this address, which the application knows, may have sent from there.
        virtual bool may_be(const wire::ByteString& member, const Source& source) const = 0;
        virtual bool same_host(const wire::ByteString& one, const wire::ByteString& other) const = 0;
        virtual void reply(const Source& source, Bytes datagram) = 0;
        virtual Result<Outbox::Peer> peer(const wire::ByteString& private_address) = 0;
        virtual void tell(std::vector<Outbox::Peer> to, wire::ByteString word) = 0;
        // Somebody greets in this version of the join, which is not ours. Once.
        virtual void foreign_version(const Source& source, std::uint8_t version) = 0;

      protected:
        ~Port() = default;
    };

    explicit Joins(Port& port) : port_(port) {}

    void add(Member& member) { members_[member.join_id().list_hash].push_back(&member); }
    // Its join is called: greetings for it that have come before. The members' places are known by now.
    void deliver_early(Member& member, Nanoseconds now);
    void forget_early(const wire::JoinId& id) { memory_.early().forget(id); }
    // It is done. Who waits for a group that has failed is told so from now on, too.
    void remove(Member& member) noexcept;
    // Its join has ended without a group.
    void remember_ended(Member& member, int error);

    void on_datagram(Bytes bytes, const Source& source, Nanoseconds now);
    // What comes reliably, from somebody who knows this process's private address. False: no word of a join.
    bool on_word(Bytes word, Nanoseconds now);
    // The latest greeting of this rank for another join of the same list, which was not called here; or null.
    const wire::Hello* miscounted_hello(Member& member, Rank rank);
    // The latest greeting for a list that is not known here, as one of the missing members of this join would
    // send it that has another secret: that is in the list's number. Or null. It proves nothing.
    const EarlyHello* stray_hello(Member& member);

    // From who is no member.
    std::uint64_t foreign_datagrams() const { return foreign_datagrams_; }
    // The same, plus greetings for lists that are not known yet: only a later join shows whether their
    // senders are members.
    std::uint64_t doubtful_datagrams() const { return foreign_datagrams_ + early_datagrams_; }

  private:
    // The joins of one list of members, which may be called several times.
    const std::vector<Member*>& members_of(std::uint64_t list) const;
    Member* find(const wire::JoinId& id) const;
    Member* find_called(const wire::JoinId& id) const;
    // What somebody says of a list of members that were never called here.
    void on_unknown(Bytes word, const Source& source);
    // The process has greeted here for that join, or for a later one of its list: it was on its way long.
    bool comes_late(const wire::Hello& hello) const;
    // Null: no member of such a list is known.
    const wire::JoinKey* key_of(std::uint64_t list);
    static bool is_of(Member& member, const EarlyHello& early);
    void reply(const Source& source, const wire::Answer& answer);
    wire::ByteString prove(const wire::JoinId& id, Bytes word);
    void on_hello(const wire::Hello& hello, Bytes word, const Source& source, Nanoseconds now);
    void on_foreign(const wire::ForeignHello& foreign, const Source& source, Nanoseconds now);
    void on_answer(const wire::Answer& answer, const Source& source, Nanoseconds now);
    template <typename Message>
    void on_survey(const std::optional<Message>& message, void (Join::*take)(const Message&, Nanoseconds),
                   const Source& source, Nanoseconds now);
    void on_waiting(const wire::Waiting& waiting, const Source& source, Nanoseconds now);
    void welcome(const wire::WordHead& head, FunctionRef<void(Group&)> it, Nanoseconds now);
    bool on_word_of_group(Bytes word, Nanoseconds now);
    void on_guests(const wire::JoinId& id, FunctionRef<void(Join&)> it, Nanoseconds now);

    Port& port_;
    std::unordered_map<std::uint64_t, std::vector<Member*>> members_;  // by list
    JoinMemory memory_;
    std::uint64_t foreign_datagrams_ = 0, early_datagrams_ = 0;
    bool foreign_seen_ = false;  // a greeting of another version
    Nanoseconds foreign_since_{};
    std::uint32_t foreign_answers_ = 0;  // since then
};

}  // namespace mcastcoll::group
