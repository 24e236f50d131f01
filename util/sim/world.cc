// The world around the engines: input, output, time, failures. application.cc is the other half.
#include "world.h"

#include <fmt/format.h>

#include <cerrno>

#include "memory_meter.h"

namespace mcastcoll::sim {
namespace {

// The provider's condition for releasing a closed group.
bool is_over(const engine::Engine& engine) {
    return engine.phase() == engine::Phase::left ||
           (engine.phase() == engine::Phase::failed && engine.failure_sent());
}

// Limit of a member's packets in flight: for every slot a window of fragments to each downstream member, a
// window of multicasts and a few control messages; and a message of the join and of a failure to every
// member.
std::uint32_t max_in_flight(const engine::GroupConfig& config) {
    const std::uint64_t per_slot = (engine::kMaxArity + 2ULL) * config.window + 16;
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(UINT32_MAX, config.operation_slots * per_slot + 4ULL * config.members + 64));
}

// The host of every endpoint, group after group.
std::vector<std::uint32_t> hosts_of(const std::vector<EngineSetup>& setups) {
    std::vector<std::uint32_t> hosts;
    for (const EngineSetup& setup : setups) {
        const auto here = setup.hosts.empty() ? first_numbers(setup.config.members) : setup.hosts;
        hosts.insert(hosts.end(), here.begin(), here.end());
    }
    return hosts;
}

std::vector<std::uint32_t> groups_of(const std::vector<EngineSetup>& setups) {
    std::vector<std::uint32_t> groups;
    for (std::uint32_t group = 0; group < setups.size(); ++group)
        groups.insert(groups.end(), setups[group].config.members, group);
    return groups;
}

}  // namespace

World::World(Options options)
    : Simulation(options, hosts_of(options.setups), groups_of(options.setups), options.setups.size()),
      options_(std::move(options)) {
    for (std::uint32_t number = 0; number < options_.setups.size(); ++number) {
        const EngineSetup& setup = options_.setups[number];
        Group& group = groups_.emplace_back();
        group.begin = static_cast<std::uint32_t>(members_.size());
        group.members = setup.config.members;
        for (std::uint32_t rank = 0; rank < group.members; ++rank) {
            engine::GroupConfig config = setup.config;
            config.self = rank_of(rank);
            if (rank < setup.no_socket.size() && setup.no_socket[rank]) config.multicast = false;
            if (options_.each) options_.each(config);
            network_.listen(
                static_cast<std::uint32_t>(members_.size()),
                config.multicast ? static_cast<std::uint8_t>(config.range(config.self)) : Network::kNoRange);
            Member& member = members_.emplace_back();
            member.group = number;
            member.in_flight_limit = max_in_flight(config);
            const MemoryMeter meter;
            member.engine = std::make_unique<engine::Engine>(config);
            member.bytes = member.peak_bytes = meter.grown();
        }
    }
}

std::string World::name_of(std::uint32_t index) const {
    return groups_.size() == 1 ? fmt::format("member {}", rank_at(index))
                               : fmt::format("member {} of group {}", rank_at(index), members_[index].group);
}

void World::metered(std::uint32_t index, FunctionRef<void(engine::Engine&)> body) {
    Member& member = members_[index];
    const MemoryMeter meter;
    body(*member.engine);
    member.bytes += meter.grown();
    member.peak_bytes = std::max(member.peak_bytes, member.bytes);
}

void World::pump(std::uint32_t index) {
    Member& member = members_[index];
    engine::Effect effect;
    for (;;) {
        engine::Allowed allowed;
        allowed.multicast = network_.may_send(index);
        allowed.message = network_.may_send(index);
        bool any = false;
        metered(index, [&](engine::Engine& engine) { any = engine.poll_effects(allowed, effect); });
        if (any) {
            take_effect(index, effect);
            continue;
        }
        if ((!allowed.multicast || !allowed.message) && !member.poll_due) {
            member.poll_due = true;
            network_.wake(index, network_.free_at(index), kPoll);
        }
        break;
    }
    if (options_.check_invariants) {
        member.engine->check_invariants();
        check_arrived(index);
    }
    // Elections during operation may list more exceptions than the join's: ranks in two reachability maps and
    // a message.
    const std::int64_t bound = 48 * std::int64_t{group_at(index).members} + 256;
    if (member.joined && member.bytes > member.joined_bytes + bound)
        complain(fmt::format("the engine of {} has grown from {} to {} bytes since the join", name_of(index),
                             member.joined_bytes, member.bytes));
    if (network_.in_flight(index) > member.in_flight_limit)
        complain(fmt::format("{} has {} packets on their way", name_of(index), network_.in_flight(index)));
    if (!member.over && is_over(*member.engine)) {
        member.over = true;
        ++over_;
    }
    arm_timer(index);
}

void World::take_effect(std::uint32_t index, const engine::Effect& effect) {
    Member& member = members_[index];
    switch (effect.kind) {
        case engine::Effect::Kind::multicast:
            if (tap) {
                std::vector<std::byte> bytes(effect.header.begin(), effect.header.end());
                bytes.insert(bytes.end(), effect.payload.begin(), effect.payload.end());
                tap(bytes);
            }
            return network_.multicast(index, effect.range, effect.header, effect.payload);
        case engine::Effect::Kind::message:
            if (effect.header.size() + effect.payload.size() > member.engine->config().message_bytes)
                complain(fmt::format("{} sent a message with {} bytes of payload", name_of(index),
                                     effect.payload.size()));
            return network_.send_message(index, fellow(index, effect.to), effect.header, effect.payload);
        case engine::Effect::Kind::complete:
            return take_completion(index, effect);
        case engine::Effect::Kind::gathered:
            return take_gathered(index, number_of(effect.operation));
        case engine::Effect::Kind::watch:
            member.watched.push_back(effect.to);
            if (network_.dead(fellow(index, effect.to)))
                network_.wake(index, now() + options_.model.latency, kPeerLost);
            return;
        case engine::Effect::Kind::joined:
            return member_joined(index);
        case engine::Effect::Kind::failed:
            member.failed = true;
            member.status = effect.status;
            return;
        case engine::Effect::Kind::left:
            member.left = true;
            return;
    }
}

void World::read(std::uint32_t index, FunctionRef<void(engine::Engine&, Nanoseconds)> body) {
    Nanoseconds& turn_at = members_[index].turn_at;
    if (now() - turn_at > options_.turn) turn_at = now();
    metered(index, [&](engine::Engine& engine) { body(engine, turn_at); });
    pump(index);
}

void World::on_packet(std::uint32_t index, Bytes datagram) {
    read(index, [&](engine::Engine& engine, Nanoseconds at) { engine.on_packet(datagram, at); });
    post_pipelined(index);
}

void World::on_message(std::uint32_t index, std::uint32_t from, Bytes message) {
    if (members_[from].group != members_[index].group)
        complain(fmt::format("{} got a message from another group", name_of(index)));
    read(index, [&](engine::Engine& engine, Nanoseconds at) { engine.on_message(message, at); });
    post_pipelined(index);
}

// A timer that moves into the future stays in the queue and is checked again when it expires: most timers
// move.
void World::arm_timer(std::uint32_t index) {
    Member& member = members_[index];
    const Nanoseconds deadline = std::max(member.engine->next_deadline(), now());
    if (deadline >= member.timer) return;
    member.timer = deadline;
    network_.wake(index, deadline, kTimer);
}

void World::on_timer(std::uint32_t index) {
    Member& member = members_[index];
    if (member.timer > now()) return;  // an earlier timer has handled it
    const Nanoseconds busy = network_.busy_until(index);
    if (busy > now()) {
        member.timer = busy;
        return network_.wake(index, busy, kTimer);
    }
    member.timer = kNever;
    if (member.engine->next_deadline() > now()) return arm_timer(index);
    call(index, [&](engine::Engine& engine) { engine.on_timeout(now()); });
    post_pipelined(index);
}

void World::report_lost(std::uint32_t index) {
    const Member& member = members_[index];
    for (std::size_t i = 0; i < member.watched.size(); ++i)
        if (const Rank lost = member.watched[i]; network_.dead(fellow(index, lost)))
            call(index, [&](engine::Engine& engine) { engine.on_peer_lost(lost, ECONNRESET, now()); });
}

void World::on_wake(std::uint32_t index, std::uint32_t tag) {
    switch (static_cast<Tag>(tag)) {
        case kStart:
            return call(index, [&](engine::Engine& engine) { engine.start(now()); });
        case kTimer:
            return on_timer(index);
        case kPost:
            members_[index].post_due = false;
            return options_.separated ? post_one(index) : post_pipelined(index);
        case kPoll:
            members_[index].poll_due = false;
            pump(index);
            return post_pipelined(index);
        case kPeerLost:
            return report_lost(index);
        case kDeath:
            hosts_to_kill_.push_back(network_.host_of(index));
            return;
        case kClose:
            return close(index);
        case kAdvance:
            return advance_streams(index);
        case kRelease:
            return release_held(index);
    }
}

void World::kill_after(std::uint64_t completed) {
    for (const HostEvent& death : options_.deaths)
        if (death.after <= completed && !network_.host_dead(death.host)) hosts_to_kill_.push_back(death.host);
}

// A process ends: all its members stop at once, and its watchers are notified.
void World::kill(std::uint32_t host) {
    if (network_.host_dead(host)) return;
    for (std::uint32_t index = 0; index < members_.size(); ++index) {
        Member& member = members_[index];
        if (network_.host_of(index) != host) continue;
        killed_at_ = std::min(killed_at_, now());
        if (!member.over) ++over_;
        member.over = true;
        const Group& group = group_at(index);
        for (std::uint32_t other = group.begin; other < group.begin + group.members; ++other)
            if (std::ranges::count(members_[other].watched, rank_of(rank_at(index))) > 0)
                network_.wake(other, now() + options_.model.latency, kPeerLost);
    }
    network_.kill(host);
    // The survivors no longer wait for its arrival at an operation.
    for (std::uint32_t index = 0; index < members_.size(); ++index) {
        const Member& member = members_[index];
        const bool waited_for = !member.joined || member.posted.size() < begun(member.group) ||
                                (!member.posted.empty() && !member.posted.back().done);
        if (network_.host_of(index) == host && waited_for) complete_step(index);
    }
}

bool World::in_time() {
    if (now() > options_.time_limit)
        complain(fmt::format("still at work after {} us: {}", now().value / 1000, first_unfinished()));
    std::uint64_t work = 0;
    for (std::uint32_t index = 0; index < members_.size(); ++index) work += 100 + script_of(index).size();
    if (steps_ > 2'000'000 + 20'000 * work)
        complain(fmt::format("no end in sight after {} events, {} us: {}", steps_, now().value / 1000,
                             first_unfinished()));
    return wrong_.empty();
}

void World::inject(std::uint32_t index, Bytes datagram) {
    members_[index].turn_at = now();
    members_[index].engine->on_packet(datagram, now());
    network_.wake(index, now(), kPoll);
}

std::string World::run(std::vector<Step> script) {
    options_.setups[0].script = std::move(script);
    return run();
}

void World::start() {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        groups_[group].expected.resize(options_.setups[group].script.size());
        tracks_[group].unfinished = groups_[group].members;
    }
    for (std::uint32_t index = 0; index < members_.size(); ++index) {
        if (options_.start_skew.value > 0)
            network_.wake(index, now() + random_.up_to(options_.start_skew), kStart);
        for (const HostEvent& death : options_.deaths)
            if (death.at != kNever && network_.host_of(index) == death.host)
                network_.wake(index, death.at, kDeath);
    }
    if (options_.start_skew.value <= 0)
        network_.wake_run(0, static_cast<std::uint32_t>(members_.size()), now(), kStart);
    kill_after(0);
}

std::string World::run() {
    start();
    constexpr std::uint64_t kLookEvery = 1024;
    while (over_ < members_.size() && wrong_.empty()) {
        while (!hosts_to_kill_.empty()) {
            const std::uint32_t host = hosts_to_kill_.back();
            hosts_to_kill_.pop_back();
            kill(host);
        }
        if (++steps_ % kLookEvery == 0) {
            if (!in_time()) break;
            if (options_.progress) options_.progress(now(), steps_);
        }
        if (!network_.step()) break;
    }
    if (wrong_.empty()) in_time();
    return check();
}

}  // namespace mcastcoll::sim
