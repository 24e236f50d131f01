// Barriers and small broadcasts that are over at once: one line of each member, looked for a few microseconds
// at most. What takes longer goes the way of all operations, from where it stands.
#include <algorithm>
#include <cstring>

#include "host/pause.h"
#include "host/team.h"

namespace mcastcoll::host {
namespace {

// Looks for somebody's line; with fewer cores than members looking keeps him from writing it.
constexpr int kLooks = 64;

}  // namespace

bool Team::await_word(std::uint32_t member, Kind kind, std::uint64_t& word) {
    for (int left = crowded_ || shares_core_ ? 1 : kLooks;;) {
        word = look(member, step_, kind);
        if (word != 0) [[likely]]
            return true;
        if (--left == 0) return false;
        pause();
    }
}

void Team::finish_at_once() {
    leave(step_);
    ++step_;
    ++counters_.operations;
    ++counters_.inline_steps;
}

bool Team::barrier_at_once() {
    std::uint64_t word;
    if (!may_write(step_, kLines)) return false;
    publish(step_, Kind::barrier, true, 0);
    for (std::uint32_t member = 0; member < size_; ++member) {
        if (member == self_) continue;
        if (!await_word(member, Kind::barrier, word)) {
            // gather_one() goes on from here.
            course_.begun = true;
            course_.next = member;
            return false;
        }
    }
    floor_ = std::max(floor_, step_);
    return finish_at_once(), true;
}

bool Team::broadcast_at_once(const Plain& plain) {
    if (plain.root == self_) {
        if (!may_write(step_, kLines)) return false;
        std::memcpy(line_of(self_, step_).payload.data(), plain.buffer, plain.bytes);
        publish(step_, Kind::broadcast, true, plain.bytes);
        return finish_at_once(), true;
    }
    std::uint64_t word;
    if (!await_word(plain.root, Kind::broadcast, word)) return false;
    // A root with another length is told so by broadcast_inline().
    if (Word::count(word) != plain.bytes || !Word::final(word)) return false;
    std::memcpy(plain.buffer, line_of(plain.root, step_).payload.data(), plain.bytes);
    return finish_at_once(), true;
}

int Team::run_plain(const Plain& plain, int (*meanwhile)(void*), void* argument) {
    const bool is_barrier = plain.kind == Kind::barrier;
    if (formed_ && head_ == tail_ && failure() == 0 && leaders_.empty()) {
        if (is_barrier && barrier_at_once()) return 0;
        const bool fits = plain.bytes > 0 && plain.bytes <= kInlineBytes && plain.root < size_;
        if (!is_barrier && fits && broadcast_at_once(plain)) return 0;
    }
    Operation operation;
    operation.kind = plain.kind;
    operation.root = plain.root;
    operation.buffer = plain.buffer;
    operation.bytes = operation.ready = plain.bytes;
    return run(operation, meanwhile, argument);
}

}  // namespace mcastcoll::host
