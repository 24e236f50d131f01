// The groups of one endpoint, including closed ones that still linger for others' sake: by what the
// application calls them and by the keys of what comes for them; and what those that are gone have counted.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ofi/group.h"

namespace mcastcoll::ofi {

class GroupTable {
  public:
    // Takes it over, or throws and leaves it where it is.
    void add(std::unique_ptr<Group>&& group);
    // Also of one that could not be added.
    void remove(Group& group) noexcept;
    // By what the application calls it, until it has closed it.
    Group* find(fi_addr_t token) const;
    void forget_token(Group& group) { by_token_.erase(group.token()); }
    bool has_open() const { return !by_token_.empty(); }
    // By a key of its own, once it has them.
    void keyed(Group& group);
    Group* find_keyed(GroupKey key) const;

    // What a new group can borrow of another's address, for those who are to listen: of the group that the
    // application names, if it can lend; else of the smallest that has all the members.
    std::optional<Loan> find_loan(fi_addr_t named, const std::vector<wire::ByteString>& listeners) const;

    bool any_busy() const;
    bool any_greeting() const;
    Nanoseconds next_deadline() const;

    // Of all groups that are here, and of those that were.
    void sum_counters(engine::Counters& counters, group::LevelCounters& levels) const;
    // What came for nobody.
    engine::Counters& strays() { return ended_counters_; }

    // The last ones to come go first.
    void clear();
    bool empty() const { return groups_.empty(); }
    std::size_t size() const { return groups_.size(); }
    Group& operator[](std::size_t index) const { return *groups_[index]; }
    auto begin() const { return groups_.begin(); }
    auto end() const { return groups_.end(); }

  private:
    std::vector<std::unique_ptr<Group>> groups_;
    std::unordered_map<fi_addr_t, Group*> by_token_;
    std::unordered_map<std::uint64_t, Group*> by_key_;
    engine::Counters ended_counters_;
    group::LevelCounters ended_levels_;
};

}  // namespace mcastcoll::ofi
