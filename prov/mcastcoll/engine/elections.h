// Who hears the multicast and who is heard: the election of the join, and those that follow when somebody
// finds that the last verdict is no longer true.
//
// Rank 0 opens an election (go, down the gather tree); speakers multicast a few probes and everybody notes
// whom it hears; the votes are gathered (vote, up the tree), rank 0 judges, and everybody learns who is deaf
// and who is mute (verdict, down the tree).
//
// In mid-run a member asks for an election, up the tree, when too many operations in a row were silent, or
// when it hears what it should not be able to hear. A root that is mute multicasts a beacon now and then, so
// that there is something to hear. Operations go on meanwhile: who hears nothing is supplied all the same. A
// new verdict is valid from an operation on that nobody can have begun, a window above the last watermark,
// and every later one names the verdict that one must have to act on it. So all members use the same graph
// for an operation, and two graphs at a time are enough.
#pragma once

#include <algorithm>
#include <utility>

#include "engine/core.h"
#include "engine/poll.h"

namespace mcastcoll::engine {

class Elections {
  public:
    explicit Elections(Core& core) : core_(core), poll_(core.config, core.children, core.parent) {}

    // As rank 0: the election of the join.
    void begin_first();
    void on_go(const wire::Header& header);
    void on_probe(const wire::Header& header);
    void on_vote(const wire::Header& header, Bytes payload);
    void on_verdict(const wire::Header& header, Bytes payload);
    void on_request(const wire::Header& header);
    // What any fragment tells of the multicast.
    void on_fragment(const wire::Header& header);
    // A root begins an operation that it is not to multicast.
    void want_beacon();
    // After operations have finished: whether too many were silent.
    void settle() {
        if (std::exchange(core_.doubtful, false)) request();
    }
    Nanoseconds next_deadline() const { return std::min(poll_.next_deadline(), core_.doubts.elect_at()); }
    void on_timeout();
    bool next_multicast(Effect& effect) {
        return (core_.doubts.beacon_due() || poll_.next_probe() != 0) && make_multicast(effect);
    }
    bool next_message(Effect& effect) { return has_message() && make_message(effect); }

  private:
    bool has_message() const {
        return poll_.has_word() || core_.verdicts.untold() || core_.doubts.request_due();
    }
    bool make_multicast(Effect& effect);
    bool make_message(Effect& effect);
    void begin(std::uint64_t number);
    void follow_poll();
    void decide(Verdict verdict);
    void take_first(Verdict verdict);
    void take_next(Verdict verdict, std::uint64_t from);
    void request();

    Core& core_;
    Poll poll_;
    std::uint32_t probe_target_ = 0, beacon_target_ = 0;  // of the targets, where the next copy goes
};

}  // namespace mcastcoll::engine
