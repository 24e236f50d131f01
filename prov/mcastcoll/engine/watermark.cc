#include "engine/watermark.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::engine {

RankList Watermark::behind(std::uint64_t finished) const {
    RankList late;
    for (std::uint32_t i = 0; i < children_.count; ++i)
        if (finished_[i] < finished) late.add(children_.ranks[i]);
    return late;
}

std::uint64_t Watermark::agree(std::uint64_t own) {
    for (std::uint32_t i = 0; i < children_.count; ++i) own = std::min(own, finished_[i]);
    if (own <= up_told_) return 0;
    if (parent_ != kNoRank) {
        up_ = own;
        return 0;
    }
    up_told_ = up_ = own;
    tell_down(own);
    return own;
}

bool Watermark::take(std::uint64_t told, bool verdict_known, Nanoseconds now) {
    if (told <= down_) return false;
    if (!verdict_known) {
        parked_ = std::max(parked_, told);
        return false;
    }
    if (awaited_since_ != kNever) waits_.sample(now - awaited_since_);
    tell_down(told);
    return true;
}

std::uint64_t Watermark::take_parked() {
    if (parked_ <= down_) return 0;
    tell_down(parked_);
    return parked_;
}

void Watermark::await(Nanoseconds now, Nanoseconds least, Nanoseconds most) {
    if (parent_ == kNoRank || ask_at_ != kNever || asked_ > opened_) return;
    ask_at_ = now + waits_.deadline(least, most);
    awaited_since_ = now;
}

// Once for each: whoever was asked answers as soon as it knows.
void Watermark::ask() {
    ask_at_ = kNever;
    if (asked_ > opened_) return;
    asked_ = opened_ + 1;
    ask_due_ = parent_ != kNoRank;
}

void Watermark::on_ask(std::uint32_t child, std::uint64_t above) {
    // An older question may come after a newer one.
    if (child_asks_[child]) above = std::max(above, child_asks_above_[child]);
    child_asks_above_[child] = above;
    if (!std::exchange(child_asks_[child], true)) ++askers_;
    if (opened_ <= above) ask();  // onward
}

}  // namespace mcastcoll::engine
