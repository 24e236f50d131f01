#include "group/join_memory.h"

#include <tuple>

namespace mcastcoll::group {
namespace {

// Distinguishes the hello's process from an earlier process with the same rank.
std::uint64_t process_of(const wire::Hello& hello) {
    return wire::hash_addresses({hello.peer.private_address, hello.peer.watch_point});
}

}  // namespace

void JoinMemory::keep_hellos(std::uint64_t list, const std::vector<const wire::Hello*>& received) {
    KnownHellos now{.list = list};
    if (const KnownHellos* before = known_hellos(list)) now = *before;
    for (const wire::Hello* hello : received) {
        const std::pair one(process_of(*hello), hello->id.sequence);
        auto& [process, sequence] = now.by.try_emplace(hello->rank, one).first->second;
        if (process != one.first || sequence < one.second) std::tie(process, sequence) = one;
    }
    known_hellos_.forget_if([&](const KnownHellos& one) { return one.list == list; });
    known_hellos_.keep(std::move(now));
}

bool JoinMemory::comes_late(const wire::Hello& hello) const {
    const KnownHellos* list = known_hellos(hello.id.list_hash);
    if (list == nullptr) return false;
    const auto known = list->by.find(hello.rank);
    return known != list->by.end() && known->second.first == process_of(hello) &&
           hello.id.sequence <= known->second.second;
}

}  // namespace mcastcoll::group
