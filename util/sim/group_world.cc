#include "group_world.h"

#include <fmt/format.h>

#include <cerrno>

#include "memory_meter.h"

namespace mcastcoll::sim {
namespace {

// Beyond every deadline and timeout.
constexpr Nanoseconds kTimeLimit = Nanoseconds::from_ms(120'000);
// Events: for any group, and for each member and each of its operations. Only an endless run needs more.
constexpr std::uint64_t kMinSteps = 20'000'000;
constexpr std::uint64_t kStepsPerOperation = 2'000;
// A message is repeated up to this late: long enough for its join to be over, and short enough for the group
// to be at work.
constexpr Nanoseconds kRepeatedWithin = Nanoseconds::from_ms(10);
// The longest wait for a failed member after the join: for 100 ms a member does not request a watch, and each
// awaited peer may itself wait for the next in the same way.
constexpr Nanoseconds kTimeout = Nanoseconds::from_ms(5'000);

bool has(const GroupSetup& setup, std::uint32_t process) {
    return std::find(setup.members.begin(), setup.members.end(), process) != setup.members.end();
}

// Returns the number of endpoints: one for each process, and one more for a restarted process.
std::uint32_t endpoints_of(const GroupOptions& options) {
    return static_cast<std::uint32_t>(options.host_of.size()) + (options.restart ? 1 : 0);
}

Model model_of(const GroupOptions& options) {
    Model model = options.model;
    model.layout = {options.host_of, options.site_of};
    if (options.restart) model.layout.machine_of.push_back(options.host_of[options.restart->host]);
    return model;
}

}  // namespace

GroupOptions one_group(Model model) {
    GroupOptions options;
    options.host_of = model.layout.machine_of;
    options.site_of = model.layout.site_of;
    options.groups.emplace_back().members = first_numbers(static_cast<std::uint32_t>(options.host_of.size()));
    options.messages_at_once = 1024;
    options.model = std::move(model);
    return options;
}

std::uint64_t max_steps(const GroupOptions& options) {
    std::uint64_t steps = kMinSteps;
    for (const GroupSetup& setup : options.groups)
        steps += kStepsPerOperation * setup.members.size() * (setup.script.size() + 10);
    return steps;
}

GroupWorld::GroupWorld(GroupOptions options)
    : GroupEnvironment({model_of(options), options.faults, options.seed}, endpoints_of(options),
                       std::move(options)),
      death_(options_.death),
      slots_(endpoints_of(options_)) {
    for (std::uint32_t endpoint = 0; endpoint < slots_.size(); ++endpoint)
        network_.listen(endpoint, Network::kNoRange);
    for (std::uint32_t number = 0; number < processes(); ++number)
        slots_[number].process = std::make_unique<GroupProcess>(*this, address_of(number, 0));
    called_at_ = now() + options_.calls_within;
    for (std::uint32_t group = 0; group < options_.groups.size(); ++group) {
        tracks_[group].unfinished = options_.groups[group].members.size();
        for (const std::uint32_t process : options_.groups[group].members)
            if (const Nanoseconds when = now() + random_.up_to(options_.calls_within);
                options_.never_calls != process)
                start(process, group, when);
    }
}

void GroupWorld::schedule(std::uint32_t endpoint, Nanoseconds at, Task task) {
    const Unmetered own;
    slots_[endpoint].tasks.emplace_back(at, std::move(task));
    wake(endpoint, at);
}

void GroupWorld::start(std::uint32_t endpoint, std::uint32_t group, Nanoseconds at) {
    schedule(endpoint, at, [group](GroupProcess& process) { process.call(group); });
}

// Later deadlines are checked again after every turn, so one wake-up, the earliest, is enough.
void GroupWorld::wake(std::uint32_t endpoint, Nanoseconds at) {
    if (at >= slots_[endpoint].wake_at) return;
    slots_[endpoint].wake_at = at;
    network_.wake(endpoint, at, 0);
}

void GroupWorld::on_wake(std::uint32_t endpoint, std::uint32_t) {
    Slot& slot = slots_[endpoint];
    if (slot.wake_at > now()) return;  // an earlier wake-up has handled it
    slot.wake_at = kNever;
    if (const Nanoseconds busy = network_.busy_until(endpoint); busy > now()) return wake(endpoint, busy);
    progress(endpoint, [](GroupProcess&) {});
}

namespace {

// The forger has all information except the key.
std::vector<std::byte> forge(Bytes packet) {
    const Unmetered own;
    std::vector<std::byte> forged(packet.begin(), packet.end());
    wire::Header header = wire::decode(packet, wire::Checksum::none).header;
    const std::span payload(forged.begin() + wire::kHeaderBytes, forged.end());
    for (std::byte& byte : payload) byte ^= std::byte{0xff};
    if (payload.empty()) header.total ^= 1;
    wire::HeaderBytes encoded;
    wire::encode(header, payload, encoded);
    std::copy_n(encoded.begin(), wire::kNumberOffset, forged.begin());
    return forged;
}

}  // namespace

// Delivers input and due deadlines to a live process, and runs the process.
void GroupWorld::progress(std::uint32_t endpoint, FunctionRef<void(GroupProcess&)> given) {
    Slot& slot = slots_[endpoint];
    if (!slot.process) return;
    metered(slot, given);
    const auto due = std::stable_partition(slot.tasks.begin(), slot.tasks.end(),
                                           [this](const auto& one) { return one.first > now(); });
    const std::vector taken(due, slot.tasks.end());
    slot.tasks.erase(due, slot.tasks.end());
    for (const auto& [at, task] : taken) metered(slot, task);
    for (const auto& [at, task] : slot.tasks) wake(endpoint, at);
    metered(slot, [](GroupProcess& process) { process.progress(); });
    if (slot.process->next_deadline() != kNever) wake(endpoint, slot.process->next_deadline());
}

void GroupWorld::metered(Slot& slot, FunctionRef<void(GroupProcess&)> body) {
    const MemoryMeter meter;
    body(*slot.process);
    slot.bytes += meter.grown();
    slot.peak_bytes = std::max(slot.peak_bytes, slot.bytes);
}

void GroupWorld::on_packet(std::uint32_t endpoint, Bytes datagram) {
    progress(endpoint, [&](GroupProcess& process) {
        if (random_.chance(options_.forged)) process.on_multicast(forge(datagram));
        process.on_multicast(datagram);
    });
}

void GroupWorld::on_message(std::uint32_t endpoint, std::uint32_t, Bytes message) {
    progress(endpoint, [&](GroupProcess& process) {
        if (options_.ends_repeated > 0 && random_.chance(options_.ends_repeated)) process.on_earlier_ends();
        const bool is_join_message = wire::peek_list(message).has_value();
        const bool forges = !is_join_message && random_.chance(options_.forged);
        if (forges) process.on_message(forge(message));
        process.on_message(message);
        if (forges) process.on_message(message);
    });
}

void GroupWorld::on_datagram(std::uint32_t endpoint, std::uint32_t from, Bytes bytes) {
    progress(endpoint,
             [&](GroupProcess& process) { process.on_datagram(number_of(address_at(from)), bytes); });
}

void GroupWorld::on_sent(std::uint32_t from, std::uint32_t to) {
    progress(from, [&](GroupProcess& process) {
        process.sent();
        if (network_.dead(to) && options_.reports_failed_sends) process.on_peer_lost(address_at(to));
    });
}

bool GroupWorld::may_send(std::uint32_t endpoint) {
    if (network_.may_send(endpoint)) return true;
    wake(endpoint, network_.free_at(endpoint));
    return false;
}

void GroupWorld::message(std::uint32_t endpoint, Address to, Bytes header, Bytes payload) {
    const Unmetered own;
    network_.send_message(endpoint, endpoint_of(to), header, payload);
    if (!payload.empty() || !wire::peek_list(header) || !random_.chance(options_.messages_doubled)) return;
    schedule(endpoint_of(to), now() + random_.up_to(kRepeatedWithin),
             [copy = std::vector(header.begin(), header.end())](GroupProcess& process) {
                 process.on_message(copy);
             });
}

void GroupWorld::report_lost(std::uint32_t endpoint, Address peer, Nanoseconds at) {
    schedule(endpoint, at, [peer](GroupProcess& process) { process.on_peer_lost(peer); });
}

void GroupWorld::watch(std::uint32_t endpoint, Address peer) {
    const Unmetered own;
    if (network_.dead(endpoint_of(peer))) report_lost(endpoint, peer, now() + options_.watch_delay);
    watches_.emplace(endpoint, peer);
}

std::shared_ptr<HostMemory> GroupWorld::make_memory(const group::HostMembers& members,
                                                    const GroupProcess& leader) {
    std::vector<std::byte> table(members.table.begin(), members.table.end());  // part of the leader's memory
    const Unmetered own;
    auto memory = std::make_shared<HostMemory>(*this, members.size, leader.endpoint(), std::move(table));
    return memories_[{members.name.key, host_of(leader.number())}] = std::move(memory);
}

std::shared_ptr<HostMemory> GroupWorld::find_memory(GroupKey key, const GroupProcess& process) const {
    const auto found = memories_.find({key, host_of(process.number())});
    return found == memories_.end() ? nullptr : found->second;
}

void GroupWorld::look(std::uint32_t endpoint) {
    wake(endpoint, now() + options_.model.memory.latency);
}

void GroupWorld::has_read(std::uint32_t endpoint, std::size_t bytes) {
    network_.occupy(endpoint, options_.model.memory.copy_time(bytes));
}

void GroupWorld::retire(std::unique_ptr<GroupMember> member) {
    const Unmetered own;
    retired_.push_back(std::move(member));
    left_at_ = now();
}

void GroupWorld::step_completed(std::uint32_t group, std::uint32_t rank, std::uint32_t endpoint,
                                bool joined) {
    completions_ += joined ? 0 : 1;
    const GroupSetup& setup = options_.groups[group];
    if (!setup.settle) return;
    const Nanoseconds at = std::max(now(), network_.busy_until(endpoint));
    if (!mark_done(group, rank, at) || begun(group) == setup.script.size()) return;
    const auto living = std::ranges::count_if(setup.members, [this](std::uint32_t member) {
        return slots_[endpoint_now(member)].process != nullptr;
    });
    begin(group, setup.members.size(), static_cast<std::size_t>(living), now() + *setup.settle);
    for (const std::uint32_t member : setup.members)
        schedule(endpoint_now(member), now() + *setup.settle, [](GroupProcess&) {});
}

std::size_t GroupWorld::may_post(std::uint32_t group) const {
    if (!options_.groups[group].settle) return options_.groups[group].script.size();
    return begun(group) > 0 && tracks_[group].began_at > now() ? begun(group) - 1 : begun(group);
}

void GroupWorld::kill(std::uint32_t process) {
    const std::uint32_t endpoint = endpoint_now(process);
    if (!slots_[endpoint].process) return;
    last_failure_at_ = now();
    const std::unique_ptr<GroupProcess> dead = std::move(slots_[endpoint].process);
    network_.kill(endpoint);
    const Nanoseconds known = now() + options_.watch_delay;
    for (const auto& [watcher, peer] : watches_)
        if (peer == address_at(endpoint)) report_lost(watcher, peer, known);
    for (auto& [name, memory] : memories_) memory->dies(endpoint, known);
    for (const auto& member : dead->members()) member->dies();
}

void GroupWorld::start_again(std::uint32_t process) {
    if (!slots_[process].process) return;
    kill(process);
    restarted_ = true;
    const std::uint32_t next = processes();
    slots_[next].process = std::make_unique<GroupProcess>(*this, address_at(next));
    network_.replace_process(process, next);
    called_at_ = std::max(called_at_, now());
    for (std::uint32_t group = 0; group < options_.groups.size(); ++group)
        if (has(options_.groups[group], process)) start(next, group, now());
}

// Applies the faults of the options at their time.
void GroupWorld::trigger_events() {
    const auto due = [&](const std::optional<HostEvent>& event, bool& done) {
        if (!event || done || (now() < event->at && completions_ < event->after)) return false;
        return done = true;
    };
    if (due(death_, died_)) kill(death_->host);
    if (bool begun = restarted_; due(options_.restart, begun)) start_again(options_.restart->host);
    if (due(options_.pause, paused_)) {
        last_failure_at_ = now() + options_.pause_length;
        network_.occupy_until(endpoint_now(options_.pause->host), last_failure_at_);
    }
    const std::uint32_t leaves = options_.gives_up ? endpoint_now(options_.gives_up->host) : 0;
    if (due(options_.gives_up, gave_up_))
        progress(leaves, [&](GroupProcess& process) {
            last_failure_at_ = now();
            for (const auto& member : process.members()) member->give_up();
        });
}

std::string GroupWorld::run() {
    const std::uint64_t max = max_steps(options_);
    while (wrong_.empty() && network_.step() && now() <= kTimeLimit) {
        if (++steps_ > max) return "it goes on and on";
        trigger_events();
    }
    return wrong_.empty() ? judge() : wrong_;
}

// Whether a group has a reason to fail.
bool GroupWorld::affected(const GroupSetup& setup) const {
    const bool stalls = paused_ && options_.stall_timeout <= options_.pause_length;
    return stalls || (died_ && has(setup, death_->host)) ||
           (restarted_ && has(setup, options_.restart->host)) ||
           (gave_up_ && has(setup, options_.gives_up->host)) ||
           (options_.no_memory && has(setup, *options_.no_memory)) ||
           (options_.never_calls && has(setup, *options_.never_calls)) ||
           (options_.other_secret && has(setup, *options_.other_secret));
}

std::string GroupWorld::judge() const {
    for (std::uint32_t number = 0; number < options_.groups.size(); ++number)
        if (std::string wrong = judge_group(number); !wrong.empty()) return wrong;
    for (const Slot& slot : slots_)
        if (slot.process && !slot.process->members().empty())
            return fmt::format("{}: closed, and not let go of", slot.process->members().front()->state());
    return {};
}

std::vector<const GroupMember*> GroupWorld::members_of(std::uint32_t group) const {
    std::vector<const GroupMember*> all;
    const auto take = [&](const std::unique_ptr<GroupMember>& member) {
        if (member->join_id().list_hash == group + 1) all.push_back(member.get());
    };
    for (const Slot& slot : slots_)
        if (slot.process) std::ranges::for_each(slot.process->members(), take);
    std::ranges::for_each(retired_, take);
    return all;
}

// Checks that every member has completed, or has been notified soon after a failure.
std::string GroupWorld::judge_group(std::uint32_t number) const {
    const GroupMember* failed = nullptr;
    const std::vector<const GroupMember*> all = members_of(number);
    const bool excused = affected(options_.groups[number]);
    for (const GroupMember* member : all) {
        if (!member->over()) return member->state() + ": waits for ever";
        if (!member->scribbled()) return member->state() + ": wrote after the end";
        if (member->error() == 0) continue;
        if (!excused) return member->state() + ": for no reason";
        if (failed == nullptr || member->over_at() < failed->over_at()) failed = member;
    }
    if (failed == nullptr) return {};
    for (const GroupMember* member : all) {
        // A member without a welcome has no addresses, and waits until its own deadline.
        const Nanoseconds known = member->error() == ETIMEDOUT
                                      ? called_at_ + options_.join_timeout
                                      : std::max(last_failure_at_, failed->over_at());
        if (member->over_at() > known + kTimeout)
            return fmt::format("{}: ends {} ms after the first member of the failed group", member->state(),
                               (member->over_at() - failed->over_at()).value / 1'000'000);
    }
    return {};
}

}  // namespace mcastcoll::sim
