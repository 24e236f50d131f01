#include "group_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace mcastcoll::sim {
namespace {

// Beyond every deadline, and every patience.
constexpr Nanoseconds kTimeLimit = Nanoseconds::from_ms(120'000);
constexpr std::uint64_t kMostSteps = 20'000'000;
// Nobody waits longer than this for somebody who is dead, once it has joined: for 100 ms it does not ask for
// a watch, and each of those it waits for may itself wait so for the next.
constexpr Nanoseconds kPatience = Nanoseconds::from_ms(5'000);

bool has(const GroupPlan& plan, std::uint32_t process) {
    return std::find(plan.members.begin(), plan.members.end(), process) != plan.members.end();
}

}  // namespace

GroupWorld::GroupWorld(GroupOptions options) : options_(std::move(options)), random_(options_.network.seed) {
    const auto count = static_cast<std::uint32_t>(options_.host_of.size());
    paused_until_.resize(count);
    for (std::uint32_t number = 0; number < count; ++number)
        processes_.push_back(std::make_unique<GroupProcess>(*this, address_of(number, 0)));
    called_at_ = now_ + options_.calls_within;
    for (std::uint32_t group = 0; group < options_.groups.size(); ++group)
        for (const std::uint32_t process : options_.groups[group].members)
            if (const Nanoseconds when = now_ + random_.up_to(options_.calls_within);
                options_.never_calls != process)
                at(when, address_of(process, 0), [group](GroupProcess& called) { called.call(group); });
}

void GroupWorld::complain(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
}

void GroupWorld::at(Nanoseconds time, Address process, std::function<void(GroupProcess&)> what) {
    events_.emplace(time, Event{number_of(process), process, std::move(what)});
}

void GroupWorld::at_number(Nanoseconds time, std::uint32_t number, std::function<void(GroupProcess&)> what) {
    events_.emplace(time, Event{number, std::nullopt, std::move(what)});
}

bool GroupWorld::lives(Address process) const {
    const auto& one = processes_[number_of(process)];
    return one && one->address() == process;
}

Nanoseconds GroupWorld::delay(std::uint32_t from, std::uint32_t to) {
    const GroupNetwork& network = options_.network;
    const Nanoseconds far = site_of(from) == site_of(to) ? Nanoseconds{} : network.far;
    return network.delay + far + random_.up_to(network.jitter);
}

void GroupWorld::datagram(std::uint32_t from, std::uint32_t to, Bytes bytes) {
    for (int copies = random_.chance(options_.network.doubled) ? 2 : 1; copies > 0; --copies)
        if (!random_.chance(options_.network.loss))
            at_number(now_ + delay(from, to), to,
                      [from, copy = wire::ByteString(bytes.begin(), bytes.end())](GroupProcess& there) {
                          there.on_datagram(from, copy);
                      });
}

void GroupWorld::multicast(std::uint32_t from, const wire::ByteString& address, Bytes bytes) {
    const auto shared = std::make_shared<const wire::ByteString>(bytes.begin(), bytes.end());
    for (std::uint32_t to = 0; to < processes_.size(); ++to) {
        if (to == from || !processes_[to] || site_of(to) != site_of(from)) continue;
        for (int copies = random_.chance(options_.network.doubled) ? 2 : 1; copies > 0; --copies)
            if (!random_.chance(options_.network.loss))
                at_number(now_ + delay(from, to), to,
                          [address, shared](GroupProcess& there) { there.on_multicast(address, *shared); });
    }
}

void GroupWorld::message(Address from, Address to, Bytes bytes) {
    Nanoseconds& last = last_message_[{from, to}];
    last = std::max(now_ + delay(number_of(from), number_of(to)), last + Nanoseconds{1});
    const double doubled = wire::join_kind(bytes) ? options_.network.words_doubled : 0;
    for (int copies = doubled > 0 && random_.chance(doubled) ? 2 : 1; copies > 0; --copies)
        at(last, to, [copy = wire::ByteString(bytes.begin(), bytes.end())](GroupProcess& there) {
            there.on_message(copy);
        });
    at(last, from, [](GroupProcess& sender) { sender.sent(); });
    if (!lives(to) && options_.network.tells_failed_sends)
        at(last, from, [to](GroupProcess& sender) { sender.on_peer_lost(to, ECONNRESET); });
}

void GroupWorld::watch(Address watcher, Address peer) {
    if (!lives(peer))
        at(now_ + options_.network.watch_delay, watcher,
           [peer](GroupProcess& one) { one.on_peer_lost(peer, ECONNRESET); });
    watches_.emplace(watcher, peer);
}

std::shared_ptr<HostMemory> GroupWorld::memory(const group::HostMembers& members, std::uint32_t process) {
    const std::pair name{members.key, host_of(process)};
    const auto found = memories_.find(name);
    if (found == memories_.end() && members.self != 0) return nullptr;
    Shared& shared = memories_[name];
    if (!shared.memory) {
        shared.memory = std::make_shared<HostMemory>(members.size);
        shared.memory->changed = [this, &shared] {
            for (const std::uint32_t reader : shared.processes)
                at_number(now_ + Nanoseconds{200}, reader, [](GroupProcess&) {});
        };
        shared.processes.assign(members.size, process);
    }
    shared.processes[members.self] = process;
    return shared.memory;
}

void GroupWorld::kill(std::uint32_t process) {
    if (!processes_[process]) return;
    harmed_at_ = now_;
    const Address dead = processes_[process]->address();
    processes_[process].reset();
    const Nanoseconds known = now_ + options_.network.watch_delay;
    for (const auto& [watcher, peer] : watches_)
        if (peer == dead)
            at(known, watcher, [dead](GroupProcess& one) { one.on_peer_lost(dead, ECONNRESET); });
    for (auto& [name, shared] : memories_)
        for (std::uint32_t place = 0; place < shared.processes.size(); ++place) {
            if (name.second != host_of(process) || shared.processes[place] != process) continue;
            for (std::uint32_t reader = 0; reader < processes_.size(); ++reader)
                if (host_of(reader) == name.second)
                    at_number(known, reader, [&memory = *shared.memory, place](GroupProcess&) {
                        memory.dead[place] = true;
                    });
        }
}

void GroupWorld::start_again(std::uint32_t process) {
    if (!processes_[process]) return;
    const Address next = processes_[process]->address() + address_of(0, 1);
    kill(process);
    processes_[process] = std::make_unique<GroupProcess>(*this, next);
    called_at_ = std::max(called_at_, now_);
    for (std::uint32_t group = 0; group < options_.groups.size(); ++group)
        if (has(options_.groups[group], process))
            at(now_, next, [group](GroupProcess& called) { called.call(group); });
}

// What the plan has in store, when its time has come.
void GroupWorld::strike() {
    const auto due = [&](const std::optional<GroupOptions::Event>& event, bool& done) {
        if (!event || done || (now_ < event->at && completions_ < event->after)) return false;
        return done = true;
    };
    if (due(options_.death, died_)) kill(options_.death->process);
    if (due(options_.restart, restarted_)) start_again(options_.restart->process);
    if (due(options_.pause, paused_))
        harmed_at_ = paused_until_[options_.pause->process] = now_ + options_.pause_length;
    if (due(options_.gives_up, gave_up_) && processes_[options_.gives_up->process]) {
        harmed_at_ = now_;
        for (const auto& member : processes_[options_.gives_up->process]->members()) member->give_up();
        processes_[options_.gives_up->process]->turn();
    }
}

std::string GroupWorld::run() {
    while (wrong_.empty()) {
        std::uint32_t due = 0;
        Nanoseconds next = kNever;
        for (std::uint32_t number = 0; number < processes_.size(); ++number) {
            if (!processes_[number]) continue;
            const Nanoseconds deadline = std::max(processes_[number]->next_deadline(), paused_until_[number]);
            if (processes_[number]->next_deadline() == kNever || deadline >= next) continue;
            next = deadline;
            due = number;
        }
        const bool timer = events_.empty() || next < events_.begin()->first;
        if (!timer) next = events_.begin()->first;
        if (next == kNever || next > kTimeLimit) break;
        if (++steps_ > kMostSteps) return "it goes on and on";
        now_ = std::max(now_, next);
        if (timer) {
            processes_[due]->turn();
        } else {
            const Event event = std::move(events_.begin()->second);
            events_.erase(events_.begin());
            const auto& process = processes_[event.number];
            const bool here = process && event.only.value_or(process->address()) == process->address();
            if (here && paused_until_[event.number] > now_) {
                events_.emplace(paused_until_[event.number], event);
            } else if (here) {
                event.what(*process);
                process->turn();
            }
        }
        strike();
    }
    return wrong_.empty() ? judge() : wrong_;
}

// Whether a group of these has a reason to fail.
bool GroupWorld::harmed(const GroupPlan& plan) const {
    const bool stalls = paused_ && options_.stall_timeout <= options_.pause_length;
    return stalls || (died_ && has(plan, options_.death->process)) ||
           (restarted_ && has(plan, options_.restart->process)) ||
           (gave_up_ && has(plan, options_.gives_up->process)) ||
           (options_.no_memory && has(plan, *options_.no_memory)) ||
           (options_.never_calls && has(plan, *options_.never_calls));
}

std::string GroupWorld::judge() const {
    for (std::uint32_t number = 0; number < options_.groups.size(); ++number)
        if (std::string wrong = judge_group(number); !wrong.empty()) return wrong;
    for (const auto& process : processes_)
        if (process && !process->members().empty())
            return fmt::format("{}: closed, and not let go of", process->members().front()->state());
    return {};
}

// Everybody is through, or has been told that it will not be: soon after whoever died did.
std::string GroupWorld::judge_group(std::uint32_t number) const {
    const GroupMember* failed = nullptr;
    std::vector<const GroupMember*> all;
    const auto take = [&](const std::unique_ptr<GroupMember>& member) {
        if (member->join_id().list_hash == number + 1) all.push_back(member.get());
    };
    for (const auto& process : processes_)
        if (process) std::for_each(process->members().begin(), process->members().end(), take);
    std::for_each(retired_.begin(), retired_.end(), take);
    for (const GroupMember* member : all) {
        if (!member->over()) return member->state() + ": waits for ever";
        if (member->error() == 0) continue;
        if (!harmed(options_.groups[number])) return member->state() + ": for no reason";
        if (failed == nullptr || member->over_at() < failed->over_at()) failed = member;
    }
    if (failed == nullptr) return {};
    for (const GroupMember* member : all) {
        // Who has not been welcomed knows nobody, and waits until its own deadline.
        const Nanoseconds known = member->error() == ETIMEDOUT ? called_at_ + options_.join_timeout
                                                               : std::max(harmed_at_, failed->over_at());
        if (member->over_at() > known + kPatience)
            return fmt::format("{}: hears {} ms after the first that the group has failed", member->state(),
                               (member->over_at() - failed->over_at()).value / 1'000'000);
    }
    return {};
}

}  // namespace mcastcoll::sim
