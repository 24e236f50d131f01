// Keeps the latest kMax entries: when full, keep() removes the oldest entry.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

namespace mcastcoll::group {

template <typename T, std::size_t kMax>
class Recent {
  public:
    void keep(T one) {
        if (entries_.size() == kMax) entries_.pop_front();
        entries_.push_back(std::move(one));
    }
    template <typename Predicate>
    void forget_if(Predicate&& predicate) {
        std::erase_if(entries_, predicate);
    }
    // Returns the latest entry for which the predicate holds, or null.
    template <typename Predicate>
    const T* latest(Predicate&& predicate) const {
        const auto found = std::find_if(entries_.rbegin(), entries_.rend(), predicate);
        return found == entries_.rend() ? nullptr : &*found;
    }
    template <typename Predicate>
    T* latest(Predicate&& predicate) {
        return const_cast<T*>(std::as_const(*this).latest(std::forward<Predicate>(predicate)));
    }

  private:
    std::deque<T> entries_;
};

}  // namespace mcastcoll::group
