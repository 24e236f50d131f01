#include "levels/segment_level.h"

#include <cerrno>

namespace mcastcoll::levels {
namespace {

engine::OperationKind kind_of(Kind kind) {
    switch (kind) {
        case Kind::broadcast:
            return engine::OperationKind::broadcast;
        case Kind::barrier:
            return engine::OperationKind::barrier;
        case Kind::reduce:
            return engine::OperationKind::reduce;
        case Kind::allreduce:
        case Kind::allgather:  // from here on never posted: post() refuses them
        case Kind::gather:
        case Kind::scatter:
        case Kind::alltoall:
        case Kind::reduce_scatter:
            break;
    }
    return engine::OperationKind::allreduce;
}

}  // namespace

SegmentLevel::SegmentLevel(engine::Engine& engine, std::size_t most_open)
    : engine_(engine), entries_(most_open) {
    free_.reserve(most_open);
    receiving_.reserve(most_open);
    for (std::size_t i = most_open; i > 0; --i) {
        entries_[i - 1].cookie = i - 1;
        free_.push_back(static_cast<std::uint32_t>(i - 1));
    }
}

int SegmentLevel::post(Leg& leg, Nanoseconds now) {
    if (moves_blocks(leg.kind)) return ENOSYS;
    if (free_.empty()) return EAGAIN;
    engine::Operation operation;
    operation.kind = kind_of(leg.kind);
    operation.root = rank_of(leg.root);
    operation.buffer = leg.buffer;
    operation.input = leg.input;
    operation.bytes = leg.bytes;
    operation.combiner = leg.combiner;
    operation.hold = leg.hold;
    if (leg.kind == Kind::broadcast) operation.ready = leg.ready;
    leg.handle = free_.back();
    Entry& entry = entries_[leg.handle];
    // Never the same twice: the engine may still know the last operation of this entry.
    operation.cookie = entry.cookie + entries_.size();
    if (auto accepted = engine_.submit(operation, now); !accepted) return accepted.error().code;
    free_.pop_back();
    entry = {&leg, operation.cookie};
    if (leg.kind == Kind::broadcast && operation.root != engine_.config().self)
        receiving_.push_back(leg.handle);
    return 0;
}

void SegmentLevel::advance(Leg& leg, Nanoseconds now) {
    if (leg.kind == Kind::broadcast)
        engine_.advance(entries_[leg.handle].cookie, leg.ready, now);
    else if (leg.released)
        engine_.release(entries_[leg.handle].cookie, now);
}

bool SegmentLevel::progress(Nanoseconds) {
    bool moved = moved_;
    moved_ = false;
    for (const std::uint32_t index : receiving_) {
        const Entry& entry = entries_[index];
        const std::size_t arrived = engine_.arrived(entry.cookie);
        moved = moved || arrived > entry.leg->arrived;
        entry.leg->arrived = arrived;
    }
    return moved;
}

SegmentLevel::Entry* SegmentLevel::find(std::uint64_t cookie) {
    Entry& entry = entries_[cookie % entries_.size()];
    return entry.leg != nullptr && entry.cookie == cookie ? &entry : nullptr;
}

void SegmentLevel::on_gathered(std::uint64_t cookie) {
    if (const Entry* entry = find(cookie)) entry->leg->gathered = moved_ = true;
}

void SegmentLevel::on_complete(std::uint64_t cookie, int status) {
    Entry* entry = find(cookie);
    if (entry == nullptr) return;
    entry->leg->error = status;
    entry->leg->done = moved_ = true;
    entry->leg = nullptr;
    std::erase(receiving_, static_cast<std::uint32_t>(cookie % entries_.size()));
    free_.push_back(static_cast<std::uint32_t>(cookie % entries_.size()));
}

// The group's end: completions that the engine still tells find no leg.
void SegmentLevel::fail(int error, Nanoseconds now) {
    if (engine_.phase() != engine::Phase::failed) engine_.give_up(error, now);
    for (Entry& entry : entries_) {
        if (entry.leg == nullptr) continue;
        entry.leg->error = error;
        entry.leg->done = true;
        entry.leg = nullptr;
    }
    receiving_.clear();
}

}  // namespace mcastcoll::levels
