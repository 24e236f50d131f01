#include "cp/queue.h"

#include <utility>

namespace mcastcoll::cp {

void Queue::put(Chunk chunk) {
    const std::lock_guard lock(mutex_);
    chunks_.push_back(std::move(chunk));
    changed_.notify_one();
}

void Queue::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_one();
}

Chunk Queue::take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !chunks_.empty(); });
    if (chunks_.empty()) return nullptr;
    Chunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    return chunk;
}

}  // namespace mcastcoll::cp
