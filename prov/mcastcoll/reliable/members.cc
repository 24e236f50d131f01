#include "reliable/members.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace mcastcoll::reliable {
namespace {

bool is_receiver(const std::unique_ptr<Member>& member) {
    return member->receives && !member->gone;
}

}  // namespace

Member* Members::find(MemberId id) {
    for (const auto& member : all_)
        if (member->id == id && !member->gone) return member.get();
    return nullptr;
}

Member& Members::add(MemberId id, const Place& place, Nanoseconds now) {
    return *all_.emplace_back(std::make_unique<Member>(id, place, now));
}

std::unique_ptr<Member> Members::evict(Nanoseconds now, Nanoseconds peer_timeout) {
    // A receiver that has answered stays: if it is too slow, it is expelled instead.
    const auto stays = [&](const auto& one) {
        return one->answered && (one->receives || now - one->last_received <= peer_timeout);
    };
    const auto min = std::ranges::min_element(
        all_, {}, [&](const auto& one) { return std::tuple(stays(one), one->answered, one->last_received); });
    if (min == all_.end() || stays(*min)) return nullptr;
    auto evicted = std::move(*min);
    all_.erase(min);
    return evicted;
}

void Members::remove_gone() {
    std::erase_if(all_, [](const auto& member) { return member->gone; });
}

void Members::forgive(Nanoseconds pause, Nanoseconds now) {
    for (const auto& member : all_) {
        member->moved = std::min(now, member->moved + pause);
        member->last_received = std::min(now, member->last_received + pause);
    }
}

bool Members::all_answered() const {
    return std::ranges::all_of(all_, [](const auto& member) { return member->answered || member->gone; });
}

std::size_t Members::receivers() const {
    return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), is_receiver));
}

std::uint64_t Members::acked_by_all(std::uint64_t next) const {
    for (const auto& member : all_)
        if (is_receiver(member)) next = std::min(next, member->acked);
    return next;
}

std::size_t Members::min_room(std::size_t packets) const {
    for (const auto& member : all_)
        if (is_receiver(member) && member->answered) packets = std::min(packets, member->room);
    return packets;
}

}  // namespace mcastcoll::reliable
