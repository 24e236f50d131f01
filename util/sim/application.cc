// The applications of a world: they post, check every byte when an operation completes, and overwrite the
// buffer, since from then on the engine may neither read nor write it.
#include <fmt/format.h>

#include <algorithm>

#include "levels/selection.h"
#include "world.h"

namespace mcastcoll::sim {
namespace {

// Completed buffers are watched for late writes up to this total size; beyond it, the oldest is checked a
// last time and freed.
constexpr std::uint64_t kMaxRetiredBytes = 256ULL << 20;

// The buffer with a member's input of a step.
template <typename Posted>
std::vector<std::byte>& streamed_into(Posted& posted) {
    return posted.input.empty() ? posted.buffer : posted.input;
}

}  // namespace

World::Content World::expected_content(std::uint32_t group, std::uint64_t step) {
    auto& known = groups_[group].expected[step];
    Content content = known.lock();
    if (content == nullptr) {
        const EngineSetup& setup = options_.setups[group];
        const Step& what = setup.script[step];
        content = std::make_shared<const std::vector<std::byte>>(
            engine::reduces(what.kind)
                ? reduced(group, step, what, setup.config.members, setup.config.tree_arity)
                : content_of(group, step, what.bytes));
        known = content;
    }
    return content;
}

bool World::can_post(const Member& member) const {
    return member.joined && !member.failed && !member.closed &&
           member.posted.size() < options_.setups[member.group].script.size() &&
           member.posted.size() < member.completed + options_.in_flight;
}

void World::post_pipelined(std::uint32_t index) {
    Member& member = members_[index];
    if (options_.separated) return;
    while (can_post(member)) {
        if (member.next_post > now()) {
            if (!member.post_due) network_.wake(index, member.next_post, kPost);
            member.post_due = true;
            return;
        }
        member.next_post = now() + random_.up_to(options_.think);
        post_one(index);
    }
    if (member.joined && member.completed == script_of(index).size()) close(index);
}

void World::post_one(std::uint32_t index) {
    Member& member = members_[index];
    if (member.failed || member.closed) return;
    const std::uint64_t number = member.posted.size();
    const Step& step = script_of(index)[number];
    Posted& posted = member.posted.emplace_back();
    posted.posted_at = now();
    fill(index, number);
    const Collective wanted{.kind = step.kind,
                            .root = step.root,
                            .buffer = posted.buffer.data(),
                            .bytes = step.bytes,
                            .ready = posted.ready,
                            .input = posted.input.empty() ? nullptr : posted.input.data(),
                            .combiner = combiner_of(step.combination),
                            .hold = step.hold};
    Collective operation = wanted;
    if (options_.tamper) options_.tamper(rank_of(rank_at(index)), number, operation);
    bool taken = false;
    call(index, [&](engine::Engine& engine) { taken = engine.submit(operation, now()).ok(); });
    if (!taken && !member.failed) complain(fmt::format("{} refused step {}", name_of(index), number));
}

void World::close(std::uint32_t index) {
    Member& member = members_[index];
    if (member.failed || member.closed) return;
    member.closed = true;
    call(index, [&](engine::Engine& engine) { engine.close(now()); });
}

void World::take_completion(std::uint32_t index, const engine::Effect& effect) {
    Member& member = members_[index];
    const std::uint64_t number = number_of(effect.operation);
    if (number >= member.posted.size())
        return complain(fmt::format("{} completed step {}, which it never posted", name_of(index), number));
    Posted& posted = member.posted[number];
    if (posted.done) return complain(fmt::format("{} completed step {} twice", name_of(index), number));
    posted.done = true;
    posted.status = effect.status;
    posted.done_at = now();
    ++member.completed;
    failed_operations_ += effect.status != 0;
    if (effect.status == 0 && !posted.buffer.empty() && gets_result(index, number)) {
        const std::vector<std::byte>& expected = *posted.expected;
        if (expected != posted.buffer) {
            const auto wrong = std::mismatch(expected.begin(), expected.end(), posted.buffer.begin()).first;
            complain(fmt::format("{} has a wrong byte {} in step {}", name_of(index),
                                 wrong - expected.begin(), number));
        }
    }
    std::ranges::fill(posted.buffer, kScribble);
    std::ranges::fill(posted.input, kScribble);  // late reads then get wrong bytes
    posted.expected.reset();
    retire(index, number);
    if (!options_.deaths.empty()) kill_after(member.completed);
    complete_step(index);
}

// A member has joined, has completed a step, or is no longer waited for.
void World::complete_step(std::uint32_t index) {
    const std::uint32_t group = members_[index].group;
    if (options_.separated && mark_done(group, rank_at(index), now())) begin_step(group);
}

void World::retire(std::uint32_t index, std::uint64_t step) {
    const std::size_t bytes = members_[index].posted[step].buffer.size();
    if (bytes == 0) return;
    retired_.emplace_back(index, step);
    retired_bytes_ += bytes;
    while (retired_bytes_ > kMaxRetiredBytes) {
        const auto [member, oldest] = retired_.front();
        retired_.pop_front();
        std::vector<std::byte>& buffer = members_[member].posted[oldest].buffer;
        if (!scribbled(buffer))
            complain(fmt::format("{} wrote into step {} after its end", name_of(member), oldest));
        retired_bytes_ -= buffer.size();
        std::vector<std::byte>().swap(buffer);
    }
}

void World::member_joined(std::uint32_t index) {
    Member& member = members_[index];
    if (member.joined) return complain(fmt::format("{} joined twice", name_of(index)));
    member.joined = true;
    member.joined_bytes = member.bytes;
    complete_step(index);
    if (!options_.separated && member.next_post <= now() && !member.post_due) {
        member.post_due = true;
        network_.wake(index, now(), kPost);
    }
}

// Begins the next separated operation, or the close after the last.
void World::begin_step(std::uint32_t number) {
    const Group& group = groups_[number];
    const std::vector<Step>& script = options_.setups[number].script;
    const std::size_t step = begun(number);
    const Nanoseconds start = now() + options_.settle;
    if (step == script.size()) {
        if (++groups_done_ == groups_.size()) {
            traffic_of_operations_ = network_.traffic();
            traffic_of_operations_.datagrams -= traffic_at_begin_.datagrams;
            traffic_of_operations_.messages -= traffic_at_begin_.messages;
        }
        return network_.wake_run(group.begin, group.members, start, kClose);
    }
    if (step == 0 && ++groups_begun_ == groups_.size()) traffic_at_begin_ = network_.traffic();
    std::size_t living = 0;
    for (std::uint32_t index = group.begin; index < group.begin + group.members; ++index)
        living += !network_.dead(index);
    begin(number, group.members, living, start);
    options_.arrival.wake(network_, group.begin, group.members, script[step], start, kPost, random_);
}

std::string World::check_member(std::uint32_t index, bool must_succeed) const {
    const Member& member = members_[index];
    const std::vector<Step>& script = script_of(index);
    if (must_succeed && member.failed) return fmt::format("{} failed with {}", name_of(index), member.status);
    if (must_succeed && !member.joined) return fmt::format("{} never joined", name_of(index));
    for (std::uint64_t number = 0; number < member.posted.size(); ++number) {
        const Posted& posted = member.posted[number];
        const Step& step = script[number];
        if (!posted.done)
            return fmt::format("{} never ended step {} ({} of {} bytes from {})", name_of(index), number,
                               levels::name_of(step.kind), step.bytes, index_of(step.root));
        if (must_succeed && posted.status != 0)
            return fmt::format("{} ended step {} with {}", name_of(index), number, posted.status);
        if (!scribbled(posted.buffer))
            return fmt::format("{} wrote into step {} after its end", name_of(index), number);
    }
    if (must_succeed && member.posted.size() != script.size())
        return fmt::format("{} posted {} of {}", name_of(index), member.posted.size(), script.size());
    if (must_succeed && !member.left) return fmt::format("{} never left", name_of(index));
    if (!member.over)
        return fmt::format("{} neither failed nor left: posted {}, completed {}, {}closed, phase {}",
                           name_of(index), member.posted.size(), member.completed,
                           member.closed ? "" : "not ", static_cast<int>(member.engine->phase()));
    return {};
}

std::string World::first_unfinished() const {
    for (std::uint32_t index = 0; index < members_.size(); ++index)
        if (!members_[index].over) return check_member(index, true);
    return "no member";
}

std::string World::check() const {
    if (!wrong_.empty()) return wrong_;
    // A group that lost a member may have failed; the other groups must have succeeded.
    for (const Group& group : groups_) {
        const std::uint32_t end = group.begin + group.members;
        bool bereaved = false;
        for (std::uint32_t index = group.begin; index < end; ++index)
            bereaved = bereaved || network_.dead(index);
        for (std::uint32_t index = group.begin; index < end; ++index) {
            if (network_.dead(index)) continue;
            if (std::string wrong = check_member(index, !bereaved); !wrong.empty())
                return fmt::format("{} (at {} us)", wrong, now().value / 1000);
        }
    }
    return {};
}

Nanoseconds World::span(std::uint64_t from, std::uint64_t to, std::uint32_t group) const {
    Nanoseconds first = kNever, last{};
    for (const Member& member : std::span(members_).subspan(groups_[group].begin, groups_[group].members)) {
        if (from < member.posted.size()) first = std::min(first, member.posted[from].posted_at);
        if (to < member.posted.size()) last = std::max(last, member.posted[to].done_at);
    }
    return first == kNever ? kNever : last - first;
}

engine::Counters World::total() const {
    engine::Counters sum;
    for (const Member& member : members_) engine::add(sum, member.engine->counters());
    return sum;
}

std::int64_t World::peak_bytes_per_member() const {
    std::int64_t max = 0;
    for (const Member& member : members_) max = std::max(max, member.peak_bytes);
    return max;
}

// Fills in a member's input. The bytes of a streamed step come bit by bit, as if from another level of a
// hierarchy; some may be there from the start. The places of the missing bytes have wrong bytes, to detect a
// member that reads too early.
void World::fill(std::uint32_t index, std::uint64_t number) {
    Member& member = members_[index];
    const Step& step = script_of(index)[number];
    Posted& posted = member.posted[number];
    const std::uint32_t rank = rank_at(index);
    const bool reduction = engine::reduces(step.kind);
    if (gets_result(index, number)) posted.expected = expected_content(member.group, number);
    posted.buffer.assign(step.bytes, kUntouched);
    if (!reduction && rank != index_of(step.root)) return;
    std::vector<std::byte> expected =
        reduction ? vector_of(member.group, number, rank, step.bytes) : *posted.expected;
    if (reduction && !step.in_place) posted.input.assign(step.bytes, kUntouched);
    std::vector<std::byte>& into = streamed_into(posted);
    if (!step.streamed || step.bytes == 0) {
        into = std::move(expected);
        return;
    }
    posted.ready = random_.chance(0.5) ? 0 : random_.below(step.bytes);
    std::memcpy(into.data(), expected.data(), posted.ready);
    posted.source = std::move(expected);
    if (member.streams.empty()) network_.wake(index, now() + random_.up_to(options_.stream_pace), kAdvance);
    member.streams.push_back(number);
}

void World::advance_streams(std::uint32_t index) {
    Member& member = members_[index];
    for (std::size_t i = 0; i < member.streams.size() && !member.failed;) {
        const std::uint64_t step = member.streams[i];
        Posted& posted = member.posted[step];
        const std::uint64_t bytes = posted.source.size(), before = posted.ready;
        const std::uint64_t max = random_.chance(0.2) ? bytes : bytes / 8 + 1;
        posted.ready = std::min(bytes, before + 1 + random_.below(max));
        const std::uint64_t ready = posted.ready;
        std::memcpy(streamed_into(posted).data() + before, posted.source.data() + before, ready - before);
        if (ready == bytes) {
            std::vector<std::byte>().swap(posted.source);
            member.streams.erase(member.streams.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
        call(index, [&](engine::Engine& engine) { engine.advance(operation_of(step), ready, now()); });
    }
    if (member.failed) return;
    if (!member.streams.empty()) network_.wake(index, now() + random_.up_to(options_.stream_pace), kAdvance);
    post_pipelined(index);
}

// A reduction that rank 0 holds is gathered: only now may rank 0 add its vector to the buffer, and it does so
// a little later.
void World::take_gathered(std::uint32_t index, std::uint64_t number) {
    Member& member = members_[index];
    if (number >= member.posted.size() || member.posted[number].done || rank_at(index) != 0 ||
        !script_of(index)[number].hold)
        return complain(fmt::format("{} got a report that step {} is gathered", name_of(index), number));
    if (member.held.empty()) network_.wake(index, now() + random_.up_to(options_.stream_pace), kRelease);
    member.held.push_back(number);
}

void World::release_held(std::uint32_t index) {
    Member& member = members_[index];
    while (!member.held.empty() && !member.failed) {
        const std::uint64_t number = member.held.back();
        member.held.pop_back();
        const Step& step = script_of(index)[number];
        if (step.bytes > 0)
            combiner_of(step.combination)(member.posted[number].buffer.data(),
                                          vector_of(member.group, number, kOutside, step.bytes).data(),
                                          step.bytes);
        bool released = false;
        call(index, [&](engine::Engine& engine) { released = engine.release(operation_of(number), now()); });
        if (!released && !member.failed)
            complain(fmt::format("{} could not release step {}", name_of(index), number));
    }
    if (!member.failed) post_pipelined(index);
}

bool World::gets_result(std::uint32_t index, std::uint64_t step) const {
    return script_of(index)[step].kind != CollectiveKind::reduce || rank_at(index) == 0;
}

// The oracle of arrived bytes, for the operation that was posted last: their number grows, and they are
// present and right as soon as the engine reports them.
void World::check_arrived(std::uint32_t index) {
    Member& member = members_[index];
    if (member.posted.empty() || member.posted.back().done || member.failed) return;
    const std::uint64_t step = member.posted.size() - 1;
    Posted& posted = member.posted.back();
    const std::uint64_t arrived = member.engine->arrived(operation_of(step));
    if (arrived == posted.arrived) return;
    const std::uint64_t max = std::min<std::uint64_t>(posted.buffer.size(), posted.ready);
    if (arrived < posted.arrived || arrived > max)
        return complain(fmt::format("{} has {} bytes of step {} after {}, of {}", name_of(index), arrived,
                                    step, posted.arrived, max));
    const bool unreleased = rank_at(index) == 0 && script_of(index)[step].hold;  // more is added later
    const std::size_t more = arrived - posted.arrived;
    if (!unreleased && posted.expected != nullptr &&
        std::memcmp(posted.buffer.data() + posted.arrived, posted.expected->data() + posted.arrived, more) !=
            0)
        complain(fmt::format("{} reports that {} bytes of step {} have arrived, but not all are right",
                             name_of(index), arrived, step));
    posted.arrived = arrived;
}

}  // namespace mcastcoll::sim
