// A queue with little overhead when empty: a member has three queues for each contacted peer, mostly empty.
// An empty std::deque takes 600 bytes.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mcastcoll::levels {

template <typename T>
class Queue {
  public:
    using Iterator = typename std::vector<T>::iterator;

    bool empty() const { return first_ == items_.size(); }
    auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
    auto end() { return items_.end(); }
    auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
    auto end() const { return items_.end(); }
    T& front() { return items_[first_]; }

    void push_back(T item) {
        if (first_ > items_.size() / 2) {
            items_.erase(items_.begin(), begin());
            first_ = 0;
        }
        items_.push_back(std::move(item));
    }
    // Cheap at the front, where nearly all elements are removed.
    void erase(Iterator at) {
        if (at == begin()) return pop_front();
        items_.erase(at);
    }
    void pop_front() {
        items_[first_] = T{};
        if (++first_ == items_.size()) clear();
    }
    void clear() {
        items_.clear();
        first_ = 0;
    }

  private:
    std::vector<T> items_;
    std::size_t first_ = 0;
};

}  // namespace mcastcoll::levels
