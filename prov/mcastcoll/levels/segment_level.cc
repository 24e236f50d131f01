#include "levels/segment_level.h"

#include <cerrno>
#include <utility>

namespace mcastcoll::levels {

// One place per slot and per pending operation of the engine: open operations never span more numbers.
SegmentLevel::SegmentLevel(engine::Engine& engine)
    : engine_(engine),
      level_operations_(std::size_t{engine.config().operation_slots} + engine.config().pending_operations) {
    receiving_.reserve(level_operations_.size());
}

int SegmentLevel::post(LevelOperation& level_operation, Nanoseconds now) {
    if (at(engine_.next_operation()) != nullptr) return EAGAIN;  // an earlier operation is still there
    const auto accepted = engine_.submit(level_operation, now);
    if (!accepted) return accepted.error().code;
    level_operation.handle = number_of(accepted.value());
    at(accepted.value()) = &level_operation;
    if (level_operation.kind == Kind::broadcast && level_operation.root != engine_.config().self)
        receiving_.push_back(&level_operation);
    return 0;
}

void SegmentLevel::advance(LevelOperation& level_operation, Nanoseconds now) {
    if (level_operation.kind == Kind::broadcast)
        engine_.advance(operation_of(level_operation.handle), level_operation.ready, now);
    else if (level_operation.released)
        engine_.release(operation_of(level_operation.handle), now);
}

bool SegmentLevel::progress(Nanoseconds) {
    bool moved = moved_;
    moved_ = false;
    for (LevelOperation* level_operation : receiving_) {
        const std::size_t arrived = engine_.arrived(operation_of(level_operation->handle));
        moved = moved || arrived > level_operation->arrived;
        level_operation->arrived = arrived;
    }
    return moved;
}

void SegmentLevel::on_gathered(OperationId operation) {
    if (LevelOperation* const level_operation = at(operation)) level_operation->gathered = moved_ = true;
}

void SegmentLevel::on_complete(OperationId operation, int status) {
    LevelOperation* const level_operation = std::exchange(at(operation), nullptr);
    if (level_operation == nullptr) return;
    level_operation->error = status;
    level_operation->done = moved_ = true;
    std::erase(receiving_, level_operation);
}

// Ends all operations at the end of the group. Later completions of the engine are ignored.
void SegmentLevel::fail(int error, Nanoseconds now) {
    if (engine_.phase() != engine::Phase::failed) engine_.give_up(error, now);
    for (LevelOperation*& level_operation : level_operations_) {
        if (level_operation == nullptr) continue;
        level_operation->error = error;
        level_operation->done = true;
        level_operation = nullptr;
    }
    receiving_.clear();
}

}  // namespace mcastcoll::levels
