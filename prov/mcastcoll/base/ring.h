// A queue of fixed capacity, so that the engine allocates no memory after its construction. Only grow()
// allocates.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mcastcoll {

template <typename T>
class Ring {
  public:
    explicit Ring(std::size_t capacity) : items_(capacity) {}
    bool empty() const { return count_ == 0; }
    bool full() const { return count_ == items_.size(); }
    std::size_t size() const { return count_; }
    std::size_t capacity() const { return items_.size(); }
    // The new capacity must not be smaller than the present one.
    void grow(std::size_t capacity) {
        std::vector<T> larger(capacity);
        for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(at(i));
        items_.swap(larger);
        head_ = 0;
    }
    T& at(std::size_t i) { return items_[wrapped(head_ + i)]; }
    T& front() { return items_[head_]; }
    const T& front() const { return items_[head_]; }
    bool push(T item) {
        if (full()) return false;
        items_[wrapped(head_ + count_++)] = std::move(item);
        return true;
    }
    void pop() {
        head_ = wrapped(head_ + 1);
        --count_;
    }

  private:
    // Wraps a position below twice the capacity, without a division, whose cost is noticeable here.
    std::size_t wrapped(std::size_t position) const {
        return position < items_.size() ? position : position - items_.size();
    }

    std::vector<T> items_;
    std::size_t head_ = 0, count_ = 0;
};

}  // namespace mcastcoll
