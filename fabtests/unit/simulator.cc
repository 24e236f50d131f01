#include "simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace mcastcoll::sim {
namespace {

constexpr std::byte kUntouched{0xee};  // in a buffer that is to be filled
constexpr std::byte kScribble{0xdd};   // in a buffer that is the application's again

// The provider's own rule for when a closed group can go.
bool over(const engine::Engine& engine) {
    return engine.phase() == engine::Phase::left ||
           (engine.phase() == engine::Phase::failed && engine.failure_told());
}

}  // namespace

std::byte pattern(std::uint64_t index, std::uint64_t offset) {
    const std::uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15ULL + (offset >> 3) * 0xbf58476d1ce4e5b9ULL;
    return static_cast<std::byte>((mixed >> (8 * (offset & 7))) ^ (mixed >> 29));
}

std::vector<Step> mixed_script(std::uint64_t seed, std::uint32_t members, std::uint32_t count,
                               std::uint64_t most_bytes) {
    std::mt19937_64 random(seed);
    std::vector<Step> script;
    for (std::uint32_t i = 0; i < count; ++i) {
        Step step;
        step.root = rank_of(random() % members);
        if (random() % 5 == 0) {
            step.kind = engine::OperationKind::barrier;
            step.root = rank_of(0);
        } else {
            const int bits = static_cast<int>(random() % 64);
            step.bytes = bits > 40 ? random() % 64
                                   : random() % (std::min(most_bytes, std::uint64_t{1} << (bits % 25)) + 1);
        }
        script.push_back(step);
    }
    return script;
}

World::World(const Options& options)
    : options_(options),
      random_(options.seed),
      last_message_(std::size_t{options.group.members} * options.group.members),
      queued_(options.group.members) {
    for (std::uint32_t i = 0; i < options.group.members; ++i) {
        engine::GroupConfig config = options.group;
        config.self = rank_of(i);
        if (i < options.no_socket.size() && options.no_socket[i]) config.multicast = false;
        members_.emplace_back();
        members_.back().engine = std::make_unique<engine::Engine>(config);
        members_.back().watched.resize(options.group.members);
    }
}

void World::trouble(std::string what) {
    if (trouble_.empty()) trouble_ = std::move(what);
}

// Draws even when nothing can come of it, so that changing one fault leaves the others where they were.
bool World::chance(double share) {
    const bool hit = std::uniform_real_distribution<double>(0, 1)(random_) < share;
    return hit && !healed();
}

Nanoseconds World::up_to(Nanoseconds most) {
    return most.value <= 0
               ? Nanoseconds{}
               : Nanoseconds{static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most.value))};
}

// When a member that looks at the network now and then sees what is there at a moment.
Nanoseconds World::reading_time(std::uint32_t member, Nanoseconds at) const {
    if (member >= options_.read_every.size() || options_.read_every[member].value <= 0) return at;
    const std::int64_t every = options_.read_every[member].value;
    return {(at.value + every - 1) / every * every};
}

void World::schedule(Event event, Nanoseconds at) {
    event.at = reading_time(event.to, at);
    event.order = order_++;
    events_.push(std::move(event));
}

void World::send_message(std::uint32_t from, std::uint32_t to, std::vector<std::byte> bytes) {
    const Faults& faults = options_.faults;
    if (faults.lose_message && faults.lose_message(wire::decode(bytes).header, rank_of(to))) return;
    Nanoseconds at = now_ + options_.latency + up_to(healed() ? Nanoseconds{} : faults.jitter);
    if (chance(faults.spike)) at = at + faults.spike_delay;
    Nanoseconds& last = last_message_[std::size_t{from} * members_.size() + to];
    if (!faults.messages_overtake) at = std::max(at, last + Nanoseconds{1});
    last = at;
    schedule({.to = to, .what = Event::What::message, .bytes = std::move(bytes)}, at);
}

bool World::lost(std::uint32_t to, const wire::Header& header) {
    const Faults& faults = options_.faults;
    if (chance(faults.loss)) return true;
    if (!healed() && now_ >= faults.dead_from && now_ < faults.dead_to) return true;
    if (!healed() && faults.drop && faults.drop(header, rank_of(to))) return true;
    return options_.receive_buffer > 0 && queued_[to] >= options_.receive_buffer;
}

void World::send_multicast(std::uint32_t from, const std::vector<std::byte>& bytes) {
    if (tap) tap(bytes);
    const wire::Header header = wire::decode(bytes).header;
    for (std::uint32_t to = 0; to < members_.size(); ++to) {
        if (!members_[to].engine->config().multicast) continue;
        // Own copies come back on real sockets too, and are never lost.
        if (to != from && lost(to, header)) continue;
        const int copies = chance(options_.faults.duplicate) ? 2 : 1;
        for (int i = 0; i < copies; ++i) {
            std::vector<std::byte> copy = bytes;
            if (chance(options_.faults.corrupt)) copy[random_() % copy.size()] ^= std::byte{0x10};
            ++queued_[to];
            const Nanoseconds late = up_to(healed() ? Nanoseconds{} : options_.faults.jitter);
            schedule({.to = to, .what = Event::What::datagram, .bytes = std::move(copy)},
                     now_ + options_.latency + late);
        }
    }
}

void World::take_completion(std::uint32_t index, const engine::Effect& effect) {
    Member& member = members_[index];
    Posted& posted = member.posted.at(effect.cookie);
    if (posted.done) return trouble(fmt::format("member {} completed step {} twice", index, effect.cookie));
    posted.done = true;
    posted.status = effect.status;
    posted.done_at = now_;
    ++member.completed;
    if (effect.status == 0)
        for (std::uint64_t i = 0; i < posted.buffer.size(); ++i)
            if (posted.buffer[i] != pattern(effect.cookie, i)) {
                trouble(fmt::format("member {} has a wrong byte {} in step {}", index, i, effect.cookie));
                break;
            }
    std::fill(posted.buffer.begin(), posted.buffer.end(), kScribble);
}

void World::take_effect(std::uint32_t index, const engine::Effect& effect) {
    Member& member = members_[index];
    switch (effect.kind) {
        case engine::Effect::Kind::multicast:
        case engine::Effect::Kind::message: {
            std::vector<std::byte> bytes(effect.header.begin(), effect.header.end());
            bytes.insert(bytes.end(), effect.payload.begin(), effect.payload.end());
            if (effect.kind == engine::Effect::Kind::multicast) return send_multicast(index, bytes);
            if (bytes.size() > member.engine->config().message_bytes)
                return trouble(fmt::format("member {} sent a message of {} bytes", index, bytes.size()));
            return send_message(index, index_of(effect.to), std::move(bytes));
        }
        case engine::Effect::Kind::complete:
            return take_completion(index, effect);
        case engine::Effect::Kind::watch:
            member.watched[index_of(effect.to)] = true;
            if (members_[index_of(effect.to)].dead)
                schedule({.to = index, .what = Event::What::peer_lost, .lost = effect.to},
                         now_ + options_.latency);
            return;
        case engine::Effect::Kind::joined:
            member.joined = true;
            joined_at_ = now_;
            return;
        case engine::Effect::Kind::failed:
            member.failed = true;
            member.status = effect.status;
            return;
        case engine::Effect::Kind::left:
            member.left = true;
            return;
    }
}

void World::pump(std::uint32_t index) {
    Member& member = members_[index];
    if (member.dead) return;
    engine::Effect effect;
    for (;;) {
        engine::Allowed allowed;
        if (options_.faults.backpressure > 0) {
            allowed.multicast = !chance(options_.faults.backpressure);
            allowed.message = !chance(options_.faults.backpressure);
        }
        if (member.engine->poll_effects(allowed, effect)) {
            take_effect(index, effect);
            continue;
        }
        if (!allowed.multicast || !allowed.message)
            schedule({.to = index, .what = Event::What::poll}, now_ + options_.latency);
        break;
    }
    member.engine->check_invariants();
    member.deadline = member.engine->next_deadline();
}

bool World::can_post(const Member& member) const {
    return !member.dead && member.joined && !member.failed && !member.closed &&
           member.posted.size() < script_.size() &&
           member.posted.size() < member.completed + options_.in_flight;
}

void World::post(std::uint32_t index) {
    Member& member = members_[index];
    while (can_post(member) && member.next_post <= now_) {
        const std::uint64_t number = member.posted.size();
        const Step& step = script_[number];
        Posted& posted = member.posted.emplace_back();
        posted.posted_at = now_;
        posted.buffer.resize(step.bytes);
        const bool root = index_of(step.root) == index;
        for (std::uint64_t i = 0; i < step.bytes; ++i)
            posted.buffer[i] = root ? pattern(number, i) : kUntouched;
        engine::Operation operation{step.kind, step.root, posted.buffer.data(), step.bytes, number};
        if (options_.tamper) options_.tamper(rank_of(index), number, operation);
        if (!member.engine->submit(operation, now_))
            trouble(fmt::format("member {} refused step {}", index, number));
        member.next_post = now_ + up_to(options_.think);
        pump(index);
    }
    if (!member.dead && member.joined && !member.failed && !member.closed &&
        member.completed == script_.size()) {
        member.closed = true;
        member.engine->close(now_);
        pump(index);
    }
}

void World::take_event(const Event& event) {
    if (event.what == Event::What::datagram) --queued_[event.to];
    auto mix = [this](std::uint64_t value) { digest_ = (digest_ ^ value) * 1099511628211ULL; };
    mix(static_cast<std::uint64_t>(event.at.value));
    for (std::byte byte : event.bytes) mix(std::to_integer<std::uint64_t>(byte));
    Member& member = members_[event.to];
    if (member.dead) return;
    switch (event.what) {
        case Event::What::datagram:
            member.engine->on_packet(event.bytes, now_);
            break;
        case Event::What::message:
            member.engine->on_message(event.bytes, now_);
            break;
        case Event::What::peer_lost:
            member.engine->on_peer_lost(event.lost, ECONNRESET, now_);
            break;
        case Event::What::poll:
            break;
    }
    pump(event.to);
    post(event.to);
}

// Moves the world to its next event, timer or post; false when nothing is left to happen.
bool World::step() {
    Nanoseconds next = events_.empty() ? kNever : events_.top().at;
    for (const Member& member : members_) {
        if (member.dead) continue;
        next = std::min(next, member.deadline);
        if (can_post(member)) next = std::min(next, member.next_post);
    }
    if (next == kNever) return false;
    now_ = std::max(now_, next);
    ++steps_;
    if (!events_.empty() && events_.top().at <= now_) {
        const Event event = events_.top();
        events_.pop();
        take_event(event);
        return true;
    }
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
        if (members_[i].dead) continue;
        if (members_[i].deadline <= now_) {
            members_[i].engine->on_timeout(now_);
            pump(i);
        }
        post(i);
    }
    return true;
}

void World::start(const std::vector<Step>& script) {
    script_ = script;
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
        if (members_[i].dead) continue;
        members_[i].engine->start(now_);
        pump(i);
    }
}

bool World::ended() const {
    return std::all_of(members_.begin(), members_.end(),
                       [](const Member& m) { return m.dead || over(*m.engine); });
}

bool World::in_time() {
    if (now_ > options_.time_limit) trouble(fmt::format("still at work after {} us", now_.value / 1000));
    if (steps_ > 2'000'000 + 20'000 * script_.size() * members_.size())
        trouble(fmt::format("no end in sight after {} events, {} us", steps_, now_.value / 1000));
    return trouble_.empty();
}

std::string World::check(bool must_succeed) const {
    if (!trouble_.empty()) return trouble_;
    for (std::uint32_t m = 0; m < members_.size(); ++m) {
        const Member& member = members_[m];
        if (member.dead) continue;
        if (must_succeed && member.failed) return fmt::format("member {} failed with {}", m, member.status);
        if (must_succeed && !member.joined) return fmt::format("member {} never joined", m);
        for (std::uint64_t number = 0; number < member.posted.size(); ++number) {
            const Posted& posted = member.posted[number];
            if (!posted.done)
                return fmt::format("member {} never ended step {} of {} bytes from {}", m, number,
                                   script_[number].bytes, index_of(script_[number].root));
            if (must_succeed && posted.status != 0)
                return fmt::format("member {} ended step {} with {}", m, number, posted.status);
            if (std::any_of(posted.buffer.begin(), posted.buffer.end(),
                            [](std::byte byte) { return byte != kScribble; }))
                return fmt::format("member {} wrote into step {} after its end", m, number);
        }
        if (must_succeed && member.posted.size() != script_.size())
            return fmt::format("member {} posted {} of {}", m, member.posted.size(), script_.size());
        if (must_succeed && !member.left) return fmt::format("member {} never left", m);
    }
    return {};
}

std::string World::run(const std::vector<Step>& script) {
    start(script);
    while (!ended() && in_time() && step()) {
    }
    return check(true);
}

void World::kill(std::uint32_t index) {
    if (members_[index].dead) return;
    members_[index].dead = true;
    killed_at_ = now_;
    for (std::uint32_t i = 0; i < members_.size(); ++i)
        if (!members_[i].dead && members_[i].watched[index])
            schedule({.to = i, .what = Event::What::peer_lost, .lost = rank_of(index)},
                     now_ + options_.latency);
}

std::string World::run_killing(const std::vector<Step>& script, Rank rank, std::uint64_t after) {
    start(script);
    while (!ended() && in_time()) {
        if (std::any_of(members_.begin(), members_.end(),
                        [after](const Member& m) { return m.completed >= after; }))
            kill(index_of(rank));
        if (!step()) break;
    }
    if (trouble_.empty() && !ended())
        return fmt::format("somebody still waits for member {} after {} us", index_of(rank),
                           now_.value / 1000);
    return check(false);
}

std::string World::run_killing_at(const std::vector<Step>& script, Rank rank, Nanoseconds at) {
    if (at <= now_) kill(index_of(rank));
    start(script);
    while (!ended() && in_time()) {
        if (now_ >= at) kill(index_of(rank));
        if (!step()) break;
    }
    if (trouble_.empty() && !ended())
        return fmt::format("somebody still waits for member {} after {} us", index_of(rank),
                           now_.value / 1000);
    return check(false);
}

Nanoseconds World::duration(std::uint64_t step) const {
    Nanoseconds first = kNever, last{};
    for (const Member& member : members_) {
        if (step >= member.posted.size()) continue;
        first = std::min(first, member.posted[step].posted_at);
        last = std::max(last, member.posted[step].done_at);
    }
    return first == kNever ? kNever : last - first;
}

engine::Counters World::total() const {
    engine::Counters sum;
    for (const Member& member : members_) engine::add(sum, member.engine->counters());
    return sum;
}

}  // namespace mcastcoll::sim
