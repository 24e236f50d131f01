#include "levels/segment_level.h"

#include <cerrno>
#include <utility>

namespace mcastcoll::levels {

// One place per slot and per pending operation of the engine: open operations never span more numbers.
SegmentLevel::SegmentLevel(engine::Engine& engine)
    : engine_(engine),
      legs_(std::size_t{engine.config().operation_slots} + engine.config().pending_operations) {
    receiving_.reserve(legs_.size());
}

int SegmentLevel::post(Leg& leg, Nanoseconds now) {
    if (at(engine_.next_operation()) != nullptr) return EAGAIN;  // its operation is not complete yet
    const auto accepted = engine_.submit(leg, now);
    if (!accepted) return accepted.error().code;
    leg.handle = number_of(accepted.value());
    at(accepted.value()) = &leg;
    if (leg.kind == Kind::broadcast && leg.root != engine_.config().self) receiving_.push_back(&leg);
    return 0;
}

void SegmentLevel::advance(Leg& leg, Nanoseconds now) {
    if (leg.kind == Kind::broadcast)
        engine_.advance(operation_of(leg.handle), leg.ready, now);
    else if (leg.released)
        engine_.release(operation_of(leg.handle), now);
}

bool SegmentLevel::progress(Nanoseconds) {
    bool moved = moved_;
    moved_ = false;
    for (Leg* leg : receiving_) {
        const std::size_t arrived = engine_.arrived(operation_of(leg->handle));
        moved = moved || arrived > leg->arrived;
        leg->arrived = arrived;
    }
    return moved;
}

void SegmentLevel::on_gathered(OperationId operation) {
    if (Leg* const leg = at(operation)) leg->gathered = moved_ = true;
}

void SegmentLevel::on_complete(OperationId operation, int status) {
    Leg* const leg = std::exchange(at(operation), nullptr);
    if (leg == nullptr) return;
    leg->error = status;
    leg->done = moved_ = true;
    std::erase(receiving_, leg);
}

// The group's end: later completions of the engine are ignored.
void SegmentLevel::fail(int error, Nanoseconds now) {
    if (engine_.phase() != engine::Phase::failed) engine_.give_up(error, now);
    for (Leg*& leg : legs_) {
        if (leg == nullptr) continue;
        leg->error = error;
        leg->done = true;
        leg = nullptr;
    }
    receiving_.clear();
}

}  // namespace mcastcoll::levels
