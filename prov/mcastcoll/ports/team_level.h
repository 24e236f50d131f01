// The host level: the shared memory of a host::Team, as a level. A level operation with `hold` becomes two
// team operations, a reduction to the leader and a broadcast from the leader that waits for the release.
#pragma once

#include "group/host_level.h"
#include "group/level_counters.h"
#include "group/port.h"
#include "host/team.h"

namespace mcastcoll::ports {

class TeamLevel final : public group::HostLevel {
  public:
    TeamLevel(std::unique_ptr<host::Team> team, std::size_t max_open);
    // Destroys the team first: the team may still access operations, which are stored in the entries.
    ~TeamLevel() override { team_.reset(); }

    int post(levels::LevelOperation& operation, Nanoseconds now) override;
    void advance(levels::LevelOperation& operation, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override { return order_.empty() ? kNever : team_->next_deadline(); }
    void fail(int error, Nanoseconds now) override;

    void end_because_of(std::uint32_t member, int error) override { team_->fail(error, member); }
    int failure() const override { return team_->failure(); }
    std::uint32_t lost() const override { return team_->lost(); }
    Rank lost_elsewhere() const override { return static_cast<Rank>(team_->lost_elsewhere()); }
    void name_lost_elsewhere(Rank rank) override { team_->name_lost_elsewhere(index_of(rank)); }
    std::uint32_t awaited() const override { return team_->awaited(); }
    std::string explain() const override { return team_->explain(); }
    void add_counters(group::LevelCounters& sum) const override;
    group::SharedBytes table() const override;

    host::Team& team() { return *team_; }

  private:
    struct Entry {
        levels::LevelOperation* operation = nullptr;
        host::Operation first, second;
        bool two = false;
        std::byte token{};  // content of an empty broadcast, so that it can wait for its release
    };

    bool update(Entry& entry);
    void end(Entry& entry, int error);
    int post_two(Entry& entry);

    std::unique_ptr<host::Team> team_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> order_;  // entries in use
};

// Finds the table in the shared memory of this name, which the host's leader has created.
Result<group::SharedBytes> find_team_table(const group::HostMemoryName& name);
Result<std::unique_ptr<group::HostLevel>> open_team_level(const group::HostMembers& members,
                                                          std::size_t max_open);

}  // namespace mcastcoll::ports
