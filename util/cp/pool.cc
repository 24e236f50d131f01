#include "cp/pool.h"

#include <chrono>
#include <utility>

namespace mcastcoll::cp {
namespace {

constexpr std::chrono::seconds kTimeout{10};

}  // namespace

Chunk Pool::take() {
    std::unique_ptr<std::string> buffer;
    {
        std::unique_lock lock(mutex_);
        // A disk may stand still for long, but this thread must keep receiving: the peers would treat the
        // host as failed. So after kTimeout one more buffer is used.
        one_is_back_.wait_for(lock, kTimeout, [this] { return used_ < max_; });
        ++used_;
        if (!free_.empty()) {
            buffer = std::move(free_.front());
            free_.pop_front();
        }
    }
    if (buffer == nullptr) {
        buffer = std::make_unique<std::string>();
        buffer->reserve(kChunkBytes);
    }
    return {buffer.release(), [pool = shared_from_this()](std::string* back) {
                const std::lock_guard lock(pool->mutex_);
                pool->free_.emplace_back(back);
                --pool->used_;
                pool->one_is_back_.notify_one();
            }};
}

void Pool::open_up() {
    const std::lock_guard lock(mutex_);
    max_ = SIZE_MAX;
    one_is_back_.notify_all();
}

}  // namespace mcastcoll::cp
