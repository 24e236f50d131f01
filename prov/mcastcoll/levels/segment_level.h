// Among the hosts of a segment, one member of each: the engine's multicast, and its tree of messages for
// reductions. The engine itself is pumped by its owner, who hands its completions here.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "levels/level.h"

namespace mcastcoll::levels {

class SegmentLevel final : public Level {
  public:
    SegmentLevel(engine::Engine& engine, std::size_t most_open);

    int post(Leg& leg, Nanoseconds now) override;
    void advance(Leg& leg, Nanoseconds now) override;
    bool progress(Nanoseconds now) override;
    Nanoseconds next_deadline() const override { return engine_.next_deadline(); }
    void fail(int error, Nanoseconds now) override;
    std::string_view algorithm() const override { return "multicast"; }

    // Effects of the engine.
    void on_gathered(std::uint64_t cookie);
    void on_complete(std::uint64_t cookie, int status);

  private:
    struct Entry {
        Leg* leg = nullptr;
        std::uint64_t cookie = 0;  // of its latest operation; modulo the number of entries its index
    };

    Entry* find(std::uint64_t cookie);

    engine::Engine& engine_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> receiving_;  // entries of broadcasts from others
    bool moved_ = false;
};

}  // namespace mcastcoll::levels
