// The latest of something, at most so many: who has no room for another forgets the oldest.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mcastcoll::group {

template <typename T, std::size_t kMost>
class Recent {
  public:
    void keep(T one) {
        if (entries_.size() == kMost) entries_.erase(entries_.begin());
        entries_.push_back(std::move(one));
    }
    template <typename Predicate>
    void forget_if(Predicate&& predicate) {
        std::erase_if(entries_, predicate);
    }
    // The latest for which this holds, or null.
    template <typename Predicate>
    const T* latest(Predicate&& predicate) const {
        for (auto one = entries_.rbegin(); one != entries_.rend(); ++one)
            if (predicate(*one)) return &*one;
        return nullptr;
    }
    template <typename Predicate>
    T* latest(Predicate&& predicate) {
        return const_cast<T*>(std::as_const(*this).latest(predicate));
    }
    // From the latest to the oldest.
    auto begin() const { return entries_.rbegin(); }
    auto end() const { return entries_.rend(); }

  private:
    std::vector<T> entries_;
};

}  // namespace mcastcoll::group
