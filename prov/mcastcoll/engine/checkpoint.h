// What everybody has finished (README.md: Checkpoints, and sync under Repair policies), and leaving
// (outcome.h).
#pragma once

#include "engine/core.h"

namespace mcastcoll::engine {

// The watermark: how many operations everybody has finished. Below it nobody can ask for anything, so slots
// and retransmit buffers are used again. This is what bounds the memory, and how far a fast member can run
// away from a slow one.
//
// Members agree on it up and down a tree of messages: each tells its parent what its subtree has finished
// (up), rank 0 tells its children what all have, and they theirs (down), or it multicasts that. Whoever waits
// for it asks its parent, which asks its own until one knows.
class Watermark {
  public:
    Watermark(const RankList& children, Rank parent)
        : children_(children), parent_(parent), untold_(children) {}

    // Operations below are finished everywhere, and this member has been told so.
    std::uint64_t opened() const { return opened_; }
    // Children that have not told that they have finished so many.
    RankList behind(std::uint64_t finished) const;

    // A child's subtree has finished so many.
    void on_up(std::uint32_t child, std::uint64_t finished) {
        finished_[child] = std::max(finished_[child], finished);
    }
    // This member has finished so many. Rank 0 alone may learn from it what all have; 0: nothing new.
    std::uint64_t agree(std::uint64_t own);

    // Told from above. True when it is news that may be followed: not before the verdict that it was told
    // with is known, then take_parked() has it.
    bool take(std::uint64_t told, bool verdict_known, Nanoseconds now);
    std::uint64_t take_parked();
    // It is followed, as far as this.
    void rise_to(std::uint64_t reached) {
        opened_ = std::max(opened_, reached);
        ask_at_ = awaited_since_ = kNever;
    }

    // Nothing can begin before it rises. Asks when it takes longer than usual, held between these.
    void await(Nanoseconds now, Nanoseconds least, Nanoseconds most);
    Nanoseconds next_deadline() const { return ask_at_; }
    void on_timeout(Nanoseconds now) {
        if (ask_at_ <= now) ask();
    }
    // A child asks for more than this.
    void on_ask(std::uint32_t child, std::uint64_t above);

    // False: next() has nothing.
    bool may_speak() const { return up_ > up_told_ || ask_due_ || child_asks_ != 0 || !untold_.over(); }
    // What is to be said next, and to whom: the operation number that it is about.
    struct Word {
        wire::Kind kind{};
        Rank to{};
        std::uint64_t number = 0;
    };
    // Children for which `heard` holds are told by multicast, and again when they ask.
    template <typename Heard>
    bool next(Word& word, Heard&& heard);
    // Of rank 0: what is to be multicast; 0: nothing.
    std::uint64_t to_cast() const { return cast_due_ ? down_ : 0; }
    void set_cast_due(bool due) { cast_due_ = due; }

  private:
    void ask();
    void tell_down(std::uint64_t told) {
        down_ = told;
        untold_.begin();
    }

    const RankList children_;
    const Rank parent_;
    std::uint64_t opened_ = 0;
    std::array<std::uint64_t, kMaxArity> finished_{};  // by child
    std::uint64_t up_told_ = 0, up_ = 0;               // to the parent; to be told
    std::uint64_t down_ = 0;                           // told from above, or agreed on by rank 0
    Round untold_;                                     // of that
    std::uint64_t parked_ = 0;
    bool cast_due_ = false;
    // Questions: this member's own, and the children's.
    Nanoseconds ask_at_ = kNever, awaited_since_ = kNever;
    RecentTimes waits_;
    std::uint64_t asked_ = 0;  // more than this one's predecessor was asked for
    bool ask_due_ = false;
    std::uint32_t child_asks_ = 0;  // bit i for child i
    std::array<std::uint64_t, kMaxArity> child_asks_above_{};
};

template <typename Heard>
bool Watermark::next(Word& word, Heard&& heard) {
    if (up_ > up_told_) {
        up_told_ = up_;
        word = {wire::Kind::watermark_up, parent_, up_};
        return true;
    }
    if (ask_due_) {
        ask_due_ = false;
        word = {wire::Kind::watermark_ask, parent_, opened_};
        return true;
    }
    for (std::uint32_t i = 0; i < children_.count; ++i) {
        if ((child_asks_ >> i & 1) == 0 || opened_ <= child_asks_above_[i]) continue;
        child_asks_ &= ~(1U << i);
        word = {wire::Kind::watermark_down, children_.ranks[i], opened_};
        return true;
    }
    while (!untold_.over()) {
        const Rank child = untold_.next();
        if (heard(child)) continue;
        word = {wire::Kind::watermark_down, child, down_};
        return true;
    }
    return false;
}

class Checkpoint {
  public:
    explicit Checkpoint(Core& core) : core_(core), watermark_(core.children, core.parent) {}

    // Operations below are finished everywhere, and this member has been told so.
    std::uint64_t opened() const { return watermark_.opened(); }
    // Children that are behind this member.
    RankList behind() const { return watermark_.behind(reached_); }
    // The next operation needs a slot, or a channel, that is not known to be free.
    void await();
    void on_up(const wire::Header& header);
    // The watermark, from the parent or from rank 0's multicast.
    void on_told(const wire::Header& header, Rank teller);
    void on_ask(const wire::Header& header);
    void on_leave_up(const wire::Header& header);
    void on_leave_down(const wire::Header& header);
    // After operations have finished, a verdict has come or the group was closed.
    void settle();
    Nanoseconds next_deadline() const { return watermark_.next_deadline(); }
    void on_timeout() { watermark_.on_timeout(core_.now); }
    bool next_multicast(Effect& effect) { return watermark_.to_cast() != 0 && make_multicast(effect); }
    bool next_message(Effect& effect) {
        return (watermark_.may_speak() || core_.departure.closing()) && make_message(effect);
    }

  private:
    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void follow_finished();
    void raise(std::uint64_t watermark);
    bool hears(Rank child) const;

    Core& core_;
    Watermark watermark_;
    std::uint64_t reached_ = 0;     // operations that this member has finished, in whole checkpoints
    std::uint64_t kept_until_ = 0;  // bytes that it had kept for repairs by then, released or not
    std::uint32_t parked_for_ = 0;  // the verdict that a watermark waits for
    std::uint32_t cast_target_ = 0;
};

}  // namespace mcastcoll::engine
