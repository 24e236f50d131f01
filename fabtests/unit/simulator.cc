#include "simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace mcastcoll::sim {

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
    }
}

Nanoseconds World::up_to(Nanoseconds most) {
    return most.value <= 0
               ? Nanoseconds{}
               : Nanoseconds{static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most.value))};
}

void World::deliver(std::uint32_t to, std::vector<std::byte> bytes, bool multicast, Nanoseconds delay) {
    events_.push({now_ + delay, order_++, to, multicast, std::move(bytes)});
}

void World::send(std::uint32_t from, const engine::Effect& effect) {
    std::vector<std::byte> bytes(effect.header.begin(), effect.header.end());
    bytes.insert(bytes.end(), effect.payload.begin(), effect.payload.end());
    if (effect.kind == engine::Effect::Kind::message) {
        const std::uint32_t to = index_of(effect.to);
        Nanoseconds at = now_ + options_.latency + up_to(options_.faults.jitter);
        Nanoseconds& last = last_message_[std::size_t{from} * members_.size() + to];
        if (!options_.faults.messages_overtake) at = std::max(at, last + Nanoseconds{1});
        last = at;
        return deliver(to, std::move(bytes), false, at - now_);
    }
    const wire::Header header = wire::decode(bytes).header;
    for (std::uint32_t to = 0; to < members_.size(); ++to) {
        if (!members_[to].engine->config().multicast) continue;
        if (to != from) {  // own copies come back on real sockets too, and are never lost
            if (chance() < options_.faults.loss) continue;
            if (options_.faults.drop && options_.faults.drop(header, rank_of(to))) continue;
            if (options_.receive_buffer > 0 && queued_[to] >= options_.receive_buffer) continue;
        }
        const int copies = chance() < options_.faults.duplicate ? 2 : 1;
        for (int i = 0; i < copies; ++i) {
            std::vector<std::byte> copy = bytes;
            if (chance() < options_.faults.corrupt) copy[random_() % copy.size()] ^= std::byte{0x10};
            ++queued_[to];
            deliver(to, std::move(copy), true, options_.latency + up_to(options_.faults.jitter));
        }
    }
}

void World::pump(std::uint32_t index) {
    Member& member = members_[index];
    if (member.dead) return;
    engine::Effect effect;
    while (member.engine->poll_effects({}, effect)) {
        switch (effect.kind) {
            case engine::Effect::Kind::multicast:
            case engine::Effect::Kind::message:
                send(index, effect);
                break;
            case engine::Effect::Kind::complete: {
                Posted& posted = member.posted.at(effect.cookie);
                if (posted.done)
                    trouble_ = fmt::format("member {} completed step {} twice", index, effect.cookie);
                posted.done = true;
                posted.status = effect.status;
                ++member.completed;
                break;
            }
            case engine::Effect::Kind::watch:
                if (members_[index_of(effect.to)].dead)
                    member.engine->on_peer_lost(effect.to, ECONNRESET, now_);
                break;
            case engine::Effect::Kind::joined:
                member.joined = true;
                break;
            case engine::Effect::Kind::failed:
                member.failed = true;
                member.status = effect.status;
                break;
            case engine::Effect::Kind::left:
                member.left = true;
                break;
        }
    }
    member.engine->check_invariants();
}

void World::post(std::uint32_t index, const std::vector<Step>& script) {
    Member& member = members_[index];
    if (member.dead || !member.joined || member.failed || member.closed) return;
    while (member.posted.size() < script.size() &&
           member.posted.size() < member.completed + options_.in_flight && member.next_post <= now_) {
        const std::uint64_t number = member.posted.size();
        const Step& step = script[number];
        Posted& posted = member.posted.emplace_back();
        posted.buffer.resize(step.bytes);
        const bool root = index_of(step.root) == index;
        for (std::uint64_t i = 0; i < step.bytes; ++i)
            posted.buffer[i] = root ? pattern(number, i) : std::byte{0xee};
        const engine::Operation operation{step.kind, step.root, posted.buffer.data(), step.bytes, number};
        if (!member.engine->submit(operation, now_))
            trouble_ = fmt::format("member {} refused step {}", index, number);
        member.next_post = now_ + up_to(options_.think);
        pump(index);
    }
    if (member.completed == script.size() && !member.closed) {
        member.closed = true;
        member.engine->close(now_);
        pump(index);
    }
}

// Moves the world to its next event, timer or post; false when nothing is left to happen.
bool World::step(const std::vector<Step>& script) {
    Nanoseconds next = events_.empty() ? kNever : events_.top().at;
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
        const Member& member = members_[i];
        if (member.dead || member.left) continue;
        next = std::min(next, member.engine->next_deadline());
        const bool can_post = member.joined && !member.failed && member.posted.size() < script.size() &&
                              member.posted.size() < member.completed + options_.in_flight;
        if (can_post) next = std::min(next, member.next_post);
    }
    if (next == kNever) return false;
    now_ = std::max(now_, next);
    ++steps_;
    if (!events_.empty() && events_.top().at <= now_) {
        Event event = events_.top();
        events_.pop();
        if (event.multicast) --queued_[event.to];
        for (std::byte byte : event.bytes)
            digest_ = (digest_ ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211ULL;
        Member& member = members_[event.to];
        if (!member.dead) {
            if (event.multicast)
                member.engine->on_packet(event.bytes, now_);
            else
                member.engine->on_message(event.bytes, now_);
            pump(event.to);
            post(event.to, script);
        }
        return true;
    }
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
        if (members_[i].dead) continue;
        if (members_[i].engine->next_deadline() <= now_) {
            members_[i].engine->on_timeout(now_);
            pump(i);
        }
        post(i, script);
    }
    return true;
}

std::string World::check(const std::vector<Step>& script, bool must_succeed) const {
    if (!trouble_.empty()) return trouble_;
    for (std::uint32_t m = 0; m < members_.size(); ++m) {
        const Member& member = members_[m];
        if (member.dead) continue;
        if (must_succeed && member.failed) return fmt::format("member {} failed with {}", m, member.status);
        if (must_succeed && member.posted.size() != script.size())
            return fmt::format("member {} posted {} of {}", m, member.posted.size(), script.size());
        for (std::uint64_t number = 0; number < member.posted.size(); ++number) {
            const Posted& posted = member.posted[number];
            if (!posted.done)
                return fmt::format("member {} never ended step {} of {} bytes from {}", m, number,
                                   script[number].bytes, index_of(script[number].root));
            if (must_succeed && posted.status != 0)
                return fmt::format("member {} ended step {} with {}", m, number, posted.status);
            if (posted.status != 0) continue;
            for (std::uint64_t i = 0; i < posted.buffer.size(); ++i)
                if (posted.buffer[i] != pattern(number, i))
                    return fmt::format("member {} has a wrong byte {} in step {}", m, i, number);
        }
        if (must_succeed && !member.left) return fmt::format("member {} never left", m);
    }
    return {};
}

std::string World::run(const std::vector<Step>& script) {
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
        members_[i].engine->start(now_);
        pump(i);
    }
    const std::uint64_t most = 2'000'000 + 20'000 * script.size() * members_.size();
    auto all_left = [this] {
        return std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.left; });
    };
    while (!all_left() && trouble_.empty() && steps_ < most && step(script)) {
    }
    return check(script, true);
}

void World::kill(std::uint32_t index) {
    members_[index].dead = true;
}

std::string World::run_killing(const std::vector<Step>& script, Rank rank, std::uint64_t after) {
    for (std::uint32_t i = 0; i < members_.size(); ++i) {
        members_[i].engine->start(now_);
        pump(i);
    }
    const std::uint64_t most = 2'000'000;
    auto ended = [this](const Member& m) { return m.dead || m.failed || m.left; };
    while (!std::all_of(members_.begin(), members_.end(), ended) && trouble_.empty() && steps_ < most) {
        for (const Member& member : members_)
            if (member.completed >= after && !members_[index_of(rank)].dead) kill(index_of(rank));
        if (!step(script)) break;
    }
    if (!std::all_of(members_.begin(), members_.end(), ended))
        return fmt::format("somebody still waits for member {} after {} us", index_of(rank),
                           now_.value / 1000);
    return check(script, false);
}

engine::Counters World::total() const {
    engine::Counters sum;
    for (const Member& member : members_) {
        engine::Counters one = member.engine->counters();
        std::vector<std::uint64_t> values;
        engine::for_each_counter(one, [&](const char*, std::uint64_t value) { values.push_back(value); });
        std::size_t i = 0;
        engine::for_each_counter(sum, [&](const char*, std::uint64_t& value) { value += values[i++]; });
    }
    return sum;
}

}  // namespace mcastcoll::sim
