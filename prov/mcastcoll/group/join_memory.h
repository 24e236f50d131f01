// Join state that a process keeps for early and late messages: hellos for joins that the application has not
// called here yet, and how finished joins and groups ended. Each list has a limit, at which its oldest entry
// is removed.
#pragma once

#include <map>
#include <utility>

#include "group/group.h"
#include "group/pending_hellos.h"
#include "group/recent.h"

namespace mcastcoll::group {

// Addresses of members by rank, from the application's address list.
using MemberList = std::shared_ptr<const std::vector<wire::ByteString>>;

class JoinMemory {
  public:
    PendingHellos& pending_hellos() { return pending_hellos_; }

    // Records a failed join for members that still send hellos.
    void keep_failed(const wire::JoinId& id, int error) {
        failed_.keep({wire::JoinKind::abort, id, static_cast<std::uint32_t>(error)});
    }
    // Returns the record of a failed join, or null.
    const wire::Answer* failed(const wire::JoinId& id) {
        return failed_.latest([&](const wire::Answer& one) { return one.id == id; });
    }

    // Records a join that this member gave up before the leader was informed, and the leader's address.
    void keep_given_up(const wire::JoinId& id, const wire::ByteString& leader) {
        given_up_.keep({id, leader});
    }
    // Returns the leader's address and removes the entry.
    std::optional<wire::ByteString> take_given_up(const wire::JoinId& id) {
        const auto of_this = [&](const GivenUp& one) { return one.id == id; };
        const GivenUp* found = given_up_.latest(of_this);
        if (found == nullptr) return {};
        std::optional<wire::ByteString> leader = found->leader;
        given_up_.forget_if(of_this);
        return leader;
    }

    // Records the hellos of a finished join: late copies from the same process, for this or an earlier join
    // of the same list, may still arrive.
    void keep_hellos(std::uint64_t list, const std::vector<const wire::Hello*>& received);
    bool comes_late(const wire::Hello& hello) const;

    // Records the key that authenticates this list's join messages, for messages that arrive when no join of
    // the list is open here. The first key counts.
    void keep_key(std::uint64_t list, const wire::JoinKey& key) {
        if (key_of(list) == nullptr) keys_.keep({list, key});
    }
    // Returns the recorded key of this list, or null.
    const wire::JoinKey* key_of(std::uint64_t list) {
        const ListKey* found = keys_.latest([&](const ListKey& one) { return one.list == list; });
        return found == nullptr ? nullptr : &found->key;
    }

    // A failed group that is closed here: peers may still wait for this member.
    struct FailedGroup {
        wire::Ended ended;
        MemberList members;
        Roster roster;
        wire::ByteString sealed{};  // `ended`, encoded, with a tag under the group's own key
    };
    void keep_failed_group(FailedGroup group) { failed_groups_.keep(std::move(group)); }
    // Returns the recorded group, or null.
    FailedGroup* failed_group(const wire::JoinId& id) {
        return failed_groups_.latest([&](const FailedGroup& one) { return one.ended.id == id; });
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
    // For each rank: its process, and the sequence of its latest join.
    struct KnownHellos {
        std::uint64_t list = 0;
        std::map<Rank, std::pair<std::uint64_t, std::uint32_t>> by{};
    };
    const KnownHellos* known_hellos(std::uint64_t list) const {
        return known_hellos_.latest([&](const KnownHellos& one) { return one.list == list; });
    }
    PendingHellos pending_hellos_;
    Recent<KnownHellos, 64> known_hellos_;
    Recent<ListKey, 256> keys_;
    Recent<wire::Answer, 64> failed_;
    Recent<GivenUp, 64> given_up_;
    Recent<FailedGroup, 64> failed_groups_;
};

}  // namespace mcastcoll::group
