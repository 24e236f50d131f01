// The channels of a gateway session, by number. Finished channels stay until remove_finished(), which is
// called when no caller holds a reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/session/channel.h"
#include "gateway/session/frame.h"
#include "gateway/session/receive_window.h"

namespace mcastcoll::gateway::session {

class Channels {
  public:
    using Map = std::unordered_map<ChannelId, std::unique_ptr<Channel>>;

    // `even`: whether this side's numbers are even; the peer's numbers are then odd, or the reverse.
    Channels(bool even, WindowPool& pool) : next_(even ? 2 : 1), pool_(pool) {}

    Channel* find(ChannelId id) const {
        const auto found = all_.find(id);
        return found == all_.end() ? nullptr : found->second.get();
    }
    // limit: cost accepted by the peer; window: cost accepted by this side.
    Channel& create(ChannelId id, bool opened_here, std::uint64_t limit, std::uint64_t window) {
        return *all_.emplace(id, std::make_unique<Channel>(id, opened_here, limit, window, pool_))
                    .first->second;
    }
    // Returns a free number of this side.
    ChannelId new_id() {
        while (all_.count(next_) != 0 || next_ == 0) next_ += 2;
        const ChannelId id = next_;
        next_ += 2;
        return id;
    }
    void note_over(const Channel& channel) {
        if (channel.over()) over_.push_back(channel.id);
    }
    void remove_finished() {
        for (const ChannelId id : over_) all_.erase(id);
        over_.clear();
    }
    Map take_all() { return std::exchange(all_, {}); }
    std::size_t size() const { return all_.size(); }

  private:
    Map all_;
    std::vector<ChannelId> over_;
    ChannelId next_;
    WindowPool& pool_;
};

}  // namespace mcastcoll::gateway::session
