#include "ports/team_level.h"

#include <fmt/format.h>

#include <cerrno>

#include "transport/watch_point.h"

namespace mcastcoll::ports {

TeamLevel::TeamLevel(std::unique_ptr<host::Team> team, std::size_t max_open)
    : team_(std::move(team)), entries_(max_open) {
    free_.reserve(max_open);
    order_.reserve(max_open);
    for (std::size_t i = max_open; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
}

int TeamLevel::post(levels::LevelOperation& operation, Nanoseconds) {
    if (free_.empty()) return EAGAIN;
    const std::uint32_t handle = free_.back();
    Entry& entry = entries_[handle];
    entry.operation = &operation;
    entry.two = operation.hold;
    entry.first = host::operation_of(operation);
    if (const int error = entry.two ? post_two(entry) : team_->post(entry.first); error != 0) return error;
    free_.pop_back();
    operation.handle = handle;
    order_.push_back(handle);
    return 0;
}

// Posts both operations or neither: a posted operation cannot be withdrawn.
int TeamLevel::post_two(Entry& entry) {
    if (2 * (order_.size() + 1) > host::Team::kMaxOpen) return EAGAIN;
    entry.first.kind = host::Kind::reduce;
    entry.first.root = 0;
    entry.second = {};
    entry.second.kind = host::Kind::broadcast;
    entry.second.buffer = entry.operation->bytes > 0 ? entry.operation->buffer : &entry.token;
    entry.second.bytes = std::max<std::size_t>(1, entry.operation->bytes);
    if (const int error = team_->post(entry.first); error != 0) return error;
    return team_->post(entry.second);
}

void TeamLevel::advance(levels::LevelOperation& operation, Nanoseconds) {
    Entry& entry = entries_[operation.handle];
    if (entry.operation != &operation) return;
    if (!entry.two)
        entry.first.ready = operation.ready;
    else if (operation.released)
        entry.second.ready = entry.second.bytes;
}

bool TeamLevel::update(Entry& entry) {
    levels::LevelOperation& operation = *entry.operation;
    bool moved = false;
    if (operation.kind == levels::Kind::broadcast && entry.first.arrived > operation.arrived) {
        operation.arrived = entry.first.arrived;
        moved = true;
    }
    if (entry.two && entry.first.done && entry.first.error == 0 && !operation.gathered &&
        team_->self() == 0) {
        operation.gathered = moved = true;
    }
    const host::Operation& last = entry.two ? entry.second : entry.first;
    const int error = entry.first.error != 0 ? entry.first.error : last.error;
    if (entry.first.done && (last.done || error != 0)) {
        end(entry, error);
        return true;
    }
    return moved;
}

void TeamLevel::end(Entry& entry, int error) {
    entry.operation->error = error;
    entry.operation->done = true;
    entry.operation = nullptr;
}

bool TeamLevel::progress(Nanoseconds) {
    if (order_.empty()) return false;
    bool moved = team_->progress();
    for (const std::uint32_t handle : order_) moved |= update(entries_[handle]);
    std::erase_if(order_, [this](std::uint32_t handle) {
        if (entries_[handle].operation != nullptr) return false;
        free_.push_back(handle);
        return true;
    });
    return moved;
}

void TeamLevel::add_counters(group::LevelCounters& sum) const {
    const host::TeamCounters& own = team_->counters();
    sum.host_operations += own.operations;
    sum.host_bytes += own.bytes;
    sum.host_single_copies += own.single_copies;
    sum.host_sleeps += own.sleeps;
}

// Makes the team release every buffer and ends the open operations. If this level has no open operation, only
// marks the team as failed, because a blocking call of another thread may be using the team.
void TeamLevel::fail(int error, Nanoseconds) {
    team_->fail(error);
    if (order_.empty()) return;
    team_->progress();
    team_->end_open();
    for (const std::uint32_t handle : order_) {
        Entry& entry = entries_[handle];
        if (entry.operation != nullptr) end(entry, error);
        free_.push_back(handle);
    }
    order_.clear();
}

group::SharedBytes TeamLevel::table() const {
    return {team_->segment(), team_->table()};
}

namespace {

// Returns the name of the shared memory. The name is derived from the leader's process and the group's key,
// so all members can compute it, and other processes can find and remove the segments left by a crash.
std::string segment_name(const group::HostMemoryName& name) {
    const auto leader = transport::decode_watch_point(name.leader_point);
    return host::Segment::name_of(leader ? leader.value().pid : 0, leader ? leader.value().start_time : 0,
                                  fmt::format("{:016x}{:08x}", static_cast<std::uint64_t>(name.key),
                                              static_cast<std::uint32_t>(name.epoch)));
}

}  // namespace

Result<group::SharedBytes> find_team_table(const group::HostMemoryName& name) {
    const auto found =
        host::Formation::find_segment(segment_name(name), static_cast<std::uint64_t>(name.key));
    if (!found) return found.error();
    return group::SharedBytes{found.value().segment, host::Formation::table_of(found.value())};
}

Result<std::unique_ptr<group::HostLevel>> open_team_level(const group::HostMembers& members,
                                                          std::size_t max_open) {
    host::TeamConfig config;
    config.key = static_cast<std::uint64_t>(members.name.key);
    config.name = segment_name(members.name);
    config.self = members.self;
    config.size = members.size;
    config.clusters = members.clusters;
    config.table = members.table;
    if (members.memory)
        config.segment = std::const_pointer_cast<host::Segment>(
            std::static_pointer_cast<const host::Segment>(members.memory));
    auto team = host::Team::open(config);
    if (!team) return team.error();
    return std::unique_ptr<group::HostLevel>(std::make_unique<TeamLevel>(std::move(team).value(), max_open));
}

}  // namespace mcastcoll::ports
