// The channels of a trunk, by number. Those that are over go when the last call into the trunk returns.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trunk/channel.h"

namespace mcastcoll::trunk {

class Channels {
  public:
    using Map = std::unordered_map<ChannelId, std::unique_ptr<Channel>>;

    // Ours have even numbers or odd ones.
    explicit Channels(bool even) : next_(even ? 2 : 1) {}

    Channel* find(ChannelId id) const {
        const auto found = all_.find(id);
        return found == all_.end() ? nullptr : found->second.get();
    }
    // limit: what the peer takes; window: what this side takes.
    Channel& create(ChannelId id, bool ours, std::uint64_t limit, std::uint64_t window) {
        return *all_.emplace(id, std::make_unique<Channel>(id, ours, limit, window)).first->second;
    }
    // A free number of ours.
    ChannelId new_id() {
        while (all_.count(next_) != 0 || next_ == 0) next_ += 2;
        const ChannelId id = next_;
        next_ += 2;
        return id;
    }
    void note_over(const Channel& channel) {
        if (channel.over()) over_.push_back(channel.id);
    }
    template <typename Last>
    void bury(Last last) {
        for (std::size_t i = 0; i < over_.size(); ++i) {
            const auto found = all_.find(over_[i]);
            if (found == all_.end() || !found->second->over()) continue;
            last(*found->second);
            all_.erase(found);
        }
        over_.clear();
    }
    Map take_all() { return std::exchange(all_, {}); }
    std::size_t size() const { return all_.size(); }
    const Map& all() const { return all_; }

  private:
    Map all_;
    std::vector<ChannelId> over_;
    ChannelId next_;
};

}  // namespace mcastcoll::trunk
