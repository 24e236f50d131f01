// The groups of one endpoint, including closed groups that linger for other members. Indexed by the
// application's token and by the keys of received packets. Also holds the counters of groups that are gone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "group/run_queue.h"
#include "ofi/group.h"
#include "ports/group_multicast.h"
#include "wire/peer.h"

namespace mcastcoll::ofi {

class GroupTable {
  public:
    // Takes ownership; after an exception the caller still has the group.
    void add(std::unique_ptr<Group>&& group);
    // Removes a group, even if add() has failed half way.
    void remove(Group& group) noexcept;
    // Finds a group by the application's token, until the application has closed the group.
    Group* find(fi_addr_t token) const { return look_up(by_token_, token); }
    void forget_token(Group& group) { by_token_.erase(group.fi_addr); }
    bool has_open() const { return !by_token_.empty(); }
    // Indexes the group by its own keys, once these are known.
    void keyed(Group& group) {
        for (const GroupKey key : group.keys()) by_key_[static_cast<std::uint64_t>(key)] = &group;
    }
    Group* find_keyed(GroupKey key) const { return look_up(by_key_, static_cast<std::uint64_t>(key)); }

    // Finds a multicast address for these listeners of a new group to borrow: from the group named by the
    // application, if possible; otherwise from the smallest group with all the members.
    std::optional<ports::BorrowedAddress> find_address_to_borrow(
        fi_addr_t named, const std::vector<wire::ByteString>& listeners) const;

    // Makes a group ready. Every action on a group calls wake(); busy groups, including groups that await
    // their welcome, stay ready.
    void wake(Group& group) noexcept { queue_.wake(group); }
    bool any_busy() const {
        return std::ranges::any_of(queue_.ready(), [](const Group* group) { return group->core().busy(); });
    }
    bool any_joining() const {
        return std::ranges::any_of(queue_.ready(), [](const Group* group) {
            return group->core().state() == group::Group::State::hello;
        });
    }
    Nanoseconds next_deadline() const;
    // Wakes groups whose deadline has passed and a few of the others in rotation: another process of the host
    // may have ended such a group, and only the shared memory shows this.
    void look_around(Nanoseconds now) noexcept;
    template <typename Body>
    void for_each_ready(Body&& body) {
        queue_.for_each_ready(body);
    }
    // Removes idle groups from the ready list, unless their failure is still to be reported.
    void settle() {
        queue_.settle(
            [](const Group& group) {
                return group.core().busy() || group.core().done() || group.core().is_informing();
            },
            [](const Group& group) { return group.next_deadline(); });
    }
    std::span<Group* const> ready() const { return queue_.ready(); }

    // Sums over all present and former groups.
    void sum_counters(engine::Counters& counters, group::LevelCounters& levels) const;
    // Counters for datagrams without a group.
    engine::Counters& strays() { return ended_counters_; }

    // Removes the newest groups first.
    void clear() {
        while (!groups_.empty()) {
            queue_.remove(*groups_.back());
            groups_.pop_back();
        }
    }
    bool empty() const { return groups_.empty(); }
    std::size_t size() const { return groups_.size(); }
    Group& operator[](std::size_t index) const { return *groups_[index]; }
    auto begin() const { return groups_.begin(); }
    auto end() const { return groups_.end(); }

  private:
    using Index = std::unordered_map<std::uint64_t, Group*>;
    static Group* look_up(const Index& index, std::uint64_t key) {
        const auto found = index.find(key);
        return found == index.end() ? nullptr : found->second;
    }

    std::vector<std::unique_ptr<Group>> groups_;
    Index by_token_, by_key_;
    group::RunQueue<Group> queue_;
    // Index in groups_ of the next idle group for look_around() to wake.
    std::size_t next_idle_ = 0;
    engine::Counters ended_counters_;
    group::LevelCounters ended_levels_;
};

}  // namespace mcastcoll::ofi
