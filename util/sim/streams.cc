// What members put into their operations, and what comes of it before the end: bytes that come bit by bit, as
// if from another level of a hierarchy; reductions that rank 0 holds until it has added something; and the
// oracle of what has arrived: it grows, is there, and is right, at every moment that the application may
// look.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "world.h"

namespace mcastcoll::sim {

// Where the bytes are that a member brings to a step.
std::vector<std::byte>& World::streamed_into(Posted& posted) const {
    return posted.input.empty() ? posted.buffer : posted.input;
}

// A stream may have some of its bytes from the start. In the place of the others are wrong ones, so that a
// member that takes them too early is caught.
void World::fill(std::uint32_t index, std::uint64_t number) {
    Member& member = members_[index];
    Group& group = groups_[member.group];
    const Step& step = group.plan->script[number];
    Posted& posted = member.posted[number];
    const std::uint32_t rank = index - group.begin;
    const bool reduction = engine::reduces(step.kind);
    posted.buffer.assign(step.bytes, kUntouched);
    if (!reduction && rank != index_of(step.root)) return;
    std::vector<std::byte> right =
        reduction ? vector_of(member.group, number, rank, step.bytes) : content(group, number);
    if (reduction && !step.in_place) posted.input.assign(step.bytes, kUntouched);
    std::vector<std::byte>& into = streamed_into(posted);
    if (!step.streamed || step.bytes == 0) {
        into = std::move(right);
        return;
    }
    posted.ready = random_.chance(0.5) ? 0 : random_.below(step.bytes);
    std::memcpy(into.data(), right.data(), posted.ready);
    posted.source = std::move(right);
    if (member.streams.empty()) network_->wake(index, now() + random_.up_to(options_.stream_pace), kAdvance);
    member.streams.push_back(number);
}

void World::advance_streams(std::uint32_t index) {
    Member& member = members_[index];
    for (std::size_t i = 0; i < member.streams.size() && !member.failed;) {
        const std::uint64_t step = member.streams[i];
        Posted& posted = member.posted[step];
        const std::uint64_t bytes = posted.source.size(), before = posted.ready;
        const std::uint64_t most = random_.chance(0.2) ? bytes : bytes / 8 + 1;
        posted.ready = std::min(bytes, before + 1 + random_.below(most));
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
    if (!member.streams.empty()) network_->wake(index, now() + random_.up_to(options_.stream_pace), kAdvance);
    post_pipelined(index);
}

// Only now may rank 0 change the buffer, which it does a little later.
void World::take_gathered(std::uint32_t index, std::uint64_t number) {
    Member& member = members_[index];
    const Group& group = groups_[member.group];
    if (number >= member.posted.size() || member.posted[number].done || index != group.begin ||
        !group.plan->script[number].hold)
        return trouble(fmt::format("{} was told that step {} is gathered", name_of(index), number));
    if (member.held.empty()) network_->wake(index, now() + random_.up_to(options_.stream_pace), kRelease);
    member.held.push_back(number);
}

void World::release_held(std::uint32_t index) {
    Member& member = members_[index];
    while (!member.held.empty() && !member.failed) {
        const std::uint64_t number = member.held.back();
        member.held.pop_back();
        const Step& step = groups_[member.group].plan->script[number];
        if (step.bytes > 0)
            combiner_of(step.combination)(member.posted[number].buffer.data(),
                                          vector_of(member.group, number, kOutside, step.bytes).data(),
                                          step.bytes);
        bool released = false;
        call(index, [&](engine::Engine& engine) { released = engine.release(operation_of(number), now()); });
        if (!released && !member.failed)
            trouble(fmt::format("{} could not release step {}", name_of(index), number));
    }
    if (!member.failed) post_pipelined(index);
}

bool World::gets_result(std::uint32_t index, std::uint64_t step) const {
    const Group& group = groups_[members_[index].group];
    return group.plan->script[step].kind != CollectiveKind::reduce || index == group.begin;
}

// Of the operation that was posted last.
void World::check_arrived(std::uint32_t index) {
    Member& member = members_[index];
    if (member.posted.empty() || member.posted.back().done || member.failed) return;
    const std::uint64_t step = member.posted.size() - 1;
    Posted& posted = member.posted.back();
    const std::uint64_t arrived = member.engine->arrived(operation_of(step));
    if (arrived == posted.arrived) return;
    const std::uint64_t most = std::min<std::uint64_t>(posted.buffer.size(), posted.ready);
    if (arrived < posted.arrived || arrived > most)
        return trouble(fmt::format("{} has {} bytes of step {} after {}, of {}", name_of(index), arrived,
                                   step, posted.arrived, most));
    Group& group = groups_[member.group];
    const bool unreleased = index == group.begin && group.plan->script[step].hold;  // with more to come
    if (unreleased) {
        posted.arrived = arrived;
        return;
    }
    const std::vector<std::byte>& right = content(group, step);
    if (std::memcmp(posted.buffer.data() + posted.arrived, right.data() + posted.arrived,
                    arrived - posted.arrived) != 0)
        trouble(fmt::format("{} says that {} bytes of step {} have arrived, but not all are right",
                            name_of(index), arrived, step));
    posted.arrived = arrived;
}

}  // namespace mcastcoll::sim
