#include "ofi/group_table.h"

#include <algorithm>

namespace mcastcoll::ofi {

void GroupTable::add(std::unique_ptr<Group>&& group) {
    groups_.reserve(groups_.size() + 1);
    by_token_[group->token()] = group.get();
    groups_.push_back(std::move(group));
}

void GroupTable::remove(Group& group) noexcept {
    group.add_counters(ended_counters_, ended_levels_);
    by_token_.erase(group.token());
    for (const GroupKey key : group.keys()) by_key_.erase(static_cast<std::uint64_t>(key));
    const auto place = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const auto& candidate) { return candidate.get() == &group; });
    if (place != groups_.end()) groups_.erase(place);
}

void GroupTable::clear() {
    while (!groups_.empty()) groups_.pop_back();
}

Group* GroupTable::find(fi_addr_t token) const {
    const auto found = by_token_.find(token);
    return found == by_token_.end() ? nullptr : found->second;
}

void GroupTable::keyed(Group& group) {
    for (const GroupKey key : group.keys()) by_key_[static_cast<std::uint64_t>(key)] = &group;
}

Group* GroupTable::find_keyed(GroupKey key) const {
    const auto found = by_key_.find(static_cast<std::uint64_t>(key));
    return found == by_key_.end() ? nullptr : found->second;
}

std::optional<Loan> GroupTable::find_loan(fi_addr_t named,
                                          const std::vector<wire::ByteString>& listeners) const {
    std::optional<Loan> best;
    std::size_t size = 0;  // of the group that lends
    const auto consider = [&](Group* group) {
        if (group == nullptr || !group->can_lend() || (best && size <= group->size())) return;
        auto loan = group->lend(listeners);
        if (!loan) return;
        best = std::move(loan);
        size = group->size();
    };
    consider(find(named));
    if (best) return best;
    for (const auto& group : groups_) consider(group.get());
    return best;
}

bool GroupTable::any_busy() const {
    return std::any_of(groups_.begin(), groups_.end(),
                       [](const auto& group) { return group->core().busy(); });
}

bool GroupTable::any_greeting() const {
    return std::any_of(groups_.begin(), groups_.end(), [](const auto& group) {
        return group->core().state() == group::Group::State::greeting;
    });
}

Nanoseconds GroupTable::next_deadline() const {
    Nanoseconds next = kNever;
    for (const auto& group : groups_) next = std::min(next, group->core().next_deadline());
    return next;
}

void GroupTable::sum_counters(engine::Counters& counters, group::LevelCounters& levels) const {
    counters = ended_counters_;
    levels = ended_levels_;
    for (const auto& group : groups_) group->add_counters(counters, levels);
}

}  // namespace mcastcoll::ofi
