#include "measure_groups.h"

#include <fmt/format.h>

#include "group_world.h"

namespace mcastcoll::sim {
namespace {

// The time of a rank's failure after the start of an operation: all ranks have begun the operation, and no
// message from another host can have arrived.
constexpr Nanoseconds kInTheMiddle = Nanoseconds::from_us(5);

GroupOptions group_options_for(const GroupExperiment& experiment) {
    Model model = experiment.model;
    model.layout = Layout::of({std::vector(experiment.hosts, experiment.per_host)});
    GroupOptions options = one_group(std::move(model));
    options.faults = experiment.faults;
    options.seed = experiment.seed;
    GroupSetup& setup = options.groups.front();
    setup.settle = experiment.settle;
    setup.repair = experiment.policy;
    for (const CollectiveKind kind : experiment.kinds)
        for (std::uint32_t i = 0; i < experiment.operations; ++i) {
            const std::uint32_t root = experiment.root.value_or(i % experiment.members());
            const bool empty = kind == CollectiveKind::barrier;
            setup.script.push_back(
                {.kind = kind, .root = rank_of(root), .bytes = empty ? 0 : experiment.bytes});
        }
    return options;
}

// Statistics of `pick` over the processes, whose numbers are the ranks.
template <typename Pick>
GroupMeasured::Share share_of(std::uint32_t members, Pick&& pick) {
    GroupMeasured::Share share;
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < members; ++rank) {
        const auto its = static_cast<std::uint64_t>(pick(rank));
        sum += its;
        (rank == 0 ? share.rank0 : share.max) = rank == 0 ? its : std::max(share.max, its);
    }
    share.mean = static_cast<double>(sum) / members;
    return share;
}

void take_join(GroupMeasured& result, const GroupWorld& world, std::uint32_t members) {
    const std::vector<Network::Exchanged>& all = world.network().exchanged();
    result.join = world.now();
    result.join_messages = share_of(members, [&](std::uint32_t rank) { return all[rank].sent.messages; });
    result.join_datagrams = share_of(members, [&](std::uint32_t rank) { return all[rank].sent.datagrams; });
    result.join_bytes_sent = share_of(members, [&](std::uint32_t rank) { return all[rank].bytes_sent; });
    result.join_bytes_received =
        share_of(members, [&](std::uint32_t rank) { return all[rank].bytes_received; });
}

void take_operations(GroupMeasured& result, const GroupWorld& world, const GroupExperiment& experiment) {
    std::size_t step = 0;
    for (const CollectiveKind kind : experiment.kinds) {
        Measured& measured = result.operations.emplace_back(kind, Measured{}).second;
        for (std::uint32_t i = 0; i < experiment.operations; ++i, ++step) {
            if (experiment.kill && step >= experiment.kill->operation) return;
            measured.times.push_back(world.times(step));
            measured.roots.push_back(index_of(world.options().groups.front().script[step].root));
        }
    }
}

// Stores the time until the last survivor was notified of a death. Returns an error message or "".
std::string take_death(GroupMeasured& result, const GroupWorld& world, Nanoseconds died_at) {
    const std::vector<const GroupMember*> living = world.members_of(0);
    const auto failed = [](const GroupMember* member) { return member->error() != 0; };
    if (const auto count = std::ranges::count_if(living, failed); std::cmp_less(count, living.size()))
        return fmt::format("{} of {} living members did not learn of the death", living.size() - count,
                           living.size());
    for (const GroupMember* member : living)
        result.known = std::max(result.known, member->over_at() - died_at);
    return {};
}

}  // namespace

GroupMeasured measure_groups(const GroupExperiment& experiment) {
    GroupMeasured result;
    GroupWorld world(group_options_for(experiment));
    Nanoseconds done_at{}, dies_at = kNever;
    world.step_over = [&](std::size_t done) {
        if (done == 0) take_join(result, world, experiment.members());
        done_at = world.now();
        if (!experiment.kill || done != experiment.kill->operation) return;
        dies_at = done_at + experiment.settle + kInTheMiddle;
        world.kill_at(experiment.kill->rank, dies_at);
    };
    result.first_failure = world.run();
    if (experiment.kill && result.first_failure.empty())
        result.first_failure = take_death(result, world, dies_at);
    result.failures = result.first_failure.empty() ? 0 : 1;
    result.peak_bytes =
        share_of(experiment.members(), [&](std::uint32_t rank) { return world.peak_bytes(rank); });
    take_operations(result, world, experiment);
    result.events = world.events();
    result.leave = std::max(world.left_at(), done_at) - done_at;
    return result;
}

}  // namespace mcastcoll::sim
