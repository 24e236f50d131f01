#include "engine/ballots.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"

namespace mcastcoll::engine {

Ballots::Ballots(std::uint32_t members, std::uint32_t voters, std::size_t max_bytes)
    : members_(members),
      speakers_(members),
      ballot_bytes_(sizeof(Rank) + (Speakers::max(members) + 1 + 7) / 8),
      bytes_(std::min<std::size_t>(voters, max_bytes / ballot_bytes_) * ballot_bytes_) {}

void Ballots::cast(Rank voter, const std::vector<bool>& received, bool can_multicast) {
    const std::uint32_t speakers = speakers_.count();
    if (can_multicast &&
        std::find(received.begin(), received.begin() + speakers, false) == received.begin() + speakers)
        return;
    if (bytes_.size() - used_ < ballot_bytes_) {
        too_many_ = true;
        return;
    }
    std::byte* ballot = bytes_.data() + used_;
    used_ += ballot_bytes_;
    wire::put(ballot, index_of(voter));
    std::byte* bits = ballot + sizeof(Rank);
    std::fill(bits, ballot + ballot_bytes_, std::byte{});  // clear the bits of the last election
    for (std::uint32_t i = 0; i <= speakers; ++i)
        if (i < speakers ? received[i] : !can_multicast) wire::set_bit(bits, i);
}

bool Ballots::merge(Bytes ballots, bool too_many) {
    if (ballots.size() % ballot_bytes_ != 0) return false;
    for (std::size_t at = 0; at < ballots.size(); at += ballot_bytes_)
        if (wire::get<std::uint32_t>(ballots.data() + at) >= members_) return false;
    if (too_many || ballots.size() > bytes_.size() - used_) {
        too_many_ = true;
        return true;
    }
    if (!ballots.empty()) std::memcpy(bytes_.data() + used_, ballots.data(), ballots.size());
    used_ += ballots.size();
    return true;
}

Rank Ballots::voter(std::size_t ballot) const {
    return Rank{wire::get<std::uint32_t>(bytes_.data() + ballot * ballot_bytes_)};
}

bool Ballots::received(std::size_t ballot, std::uint32_t speaker) const {
    return wire::test_bit(bytes_.data() + ballot * ballot_bytes_ + sizeof(Rank), speaker);
}

bool Ballots::listens(std::size_t ballot) const {
    const std::uint32_t self = speakers_.place(voter(ballot));
    for (std::uint32_t i = 0; i < speakers_.count(); ++i)
        if (i != self && received(ballot, i)) return true;
    return false;
}

bool Ballots::is_mute(std::uint32_t speaker) const {
    const Rank rank = speakers_.rank(speaker);
    // A member without a ballot received all speakers.
    std::size_t listeners = members_ - 1, receivers = members_ - 1;
    for (std::size_t i = 0; i < count(); ++i) {
        if (voter(i) == rank) continue;
        listeners -= !listens(i);
        receivers -= !received(i, speaker);
    }
    return receivers == 0 || 2 * receivers < listeners;
}

ReachabilityMap Ballots::judge(const ReachabilityMap& so_far) const {
    ReachabilityMap map;
    if (too_many_) return map;
    std::vector<bool> mute(speakers_.count());
    for (std::uint32_t i = 0; i < mute.size(); ++i) mute[i] = is_mute(i);
    map.works = std::find(mute.begin(), mute.end(), false) != mute.end();
    if (!map.works) return map;
    for (std::uint32_t i = 0; i < mute.size(); ++i)
        if (mute[i]) map.mute.push_back(speakers_.rank(i));
    for (const Rank rank : so_far.mute)
        if (speakers_.place(rank) == kNoSpeaker) map.mute.push_back(rank);
    for (std::size_t i = 0; i < count(); ++i) {
        const std::uint32_t self = speakers_.place(voter(i));
        std::size_t speakers = 0, understood = 0;
        for (std::uint32_t j = 0; j < mute.size(); ++j) {
            if (j == self || mute[j]) continue;
            ++speakers;
            understood += received(i, j);
        }
        // With `speakers` 0 (no other speaker) the only speaker itself counts as receiving.
        if (2 * understood < speakers) map.deaf.push_back(voter(i));
        if (received(i, speakers_.count())) map.mute.push_back(voter(i));
    }
    for (std::vector<Rank>* list : {&map.deaf, &map.mute}) {
        std::sort(list->begin(), list->end());
        list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    return map;
}

}  // namespace mcastcoll::engine
