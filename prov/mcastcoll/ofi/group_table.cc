#include "ofi/group_table.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::ofi {

void GroupTable::add(std::unique_ptr<Group>&& group) {
    if (groups_.size() == groups_.capacity()) groups_.reserve(2 * groups_.size() + 1);
    by_token_[group->fi_addr] = group.get();
    queue_.reserve(groups_.size() + 1);
    queue_.wake(*group);
    groups_.push_back(std::move(group));
}

void GroupTable::remove(Group& group) noexcept {
    group.add_counters(ended_counters_, ended_levels_);
    by_token_.erase(group.fi_addr);
    if (group.core().formed())
        for (const GroupKey key : group.keys()) by_key_.erase(static_cast<std::uint64_t>(key));
    queue_.remove(group);
    std::erase_if(groups_, [&](const auto& candidate) { return candidate.get() == &group; });
}

std::optional<ports::BorrowedAddress> GroupTable::find_address_to_borrow(
    fi_addr_t named, const std::vector<wire::ByteString>& listeners) const {
    std::optional<ports::BorrowedAddress> best;
    std::size_t size = 0;  // size of the lending group
    const auto consider = [&](Group* group) {
        if (group == nullptr || (best && size <= group->size())) return;
        auto borrowed = group->share_address(listeners);
        if (!borrowed) return;
        best = std::move(borrowed);
        size = group->size();
    };
    consider(find(named));
    if (best) return best;
    for (const auto& group : groups_) consider(group.get());
    return best;
}

Nanoseconds GroupTable::next_deadline() const {
    Nanoseconds next = queue_.next_deadline();
    for (const Group* group : queue_.ready()) next = std::min(next, group->next_deadline());
    return next;
}

void GroupTable::look_around(Nanoseconds now) noexcept {
    constexpr std::size_t kIdleAtOnce = 4;
    queue_.wake_due(now);
    for (std::size_t i = 0; i < std::min(kIdleAtOnce, groups_.size()); ++i)
        queue_.wake(*groups_[next_idle_++ % groups_.size()]);
}

void GroupTable::sum_counters(engine::Counters& counters, group::LevelCounters& levels) const {
    counters = ended_counters_;
    levels = ended_levels_;
    for (const auto& group : groups_) group->add_counters(counters, levels);
}

}  // namespace mcastcoll::ofi
