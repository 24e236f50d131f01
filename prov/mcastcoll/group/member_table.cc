#include "group/member_table.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mcastcoll::group {
namespace {

// Layout: the three counts (numbers in the places, bytes of all addresses, bytes of all watch points), the
// places, the end offset of each address and each watch point, the sequences, the bytes of both.
enum Count : std::size_t { kPlaces, kAddresses, kWatchPoints, kCounts };

using Numbers = std::vector<std::uint32_t>;

Numbers ends_of(const std::vector<wire::Peer>& peers, wire::ByteString wire::Peer::*string) {
    Numbers ends;
    ends.reserve(peers.size());
    std::uint32_t end = 0;
    for (const wire::Peer& peer : peers)
        ends.push_back(end += static_cast<std::uint32_t>((peer.*string).size()));
    return ends;
}

}  // namespace

std::vector<std::byte> MemberTable::lay_out(const wire::Welcome& welcome, levels::Ranks numbers) {
    const Numbers addresses = ends_of(welcome.peers, &wire::Peer::private_address);
    const Numbers watch_points = ends_of(welcome.peers, &wire::Peer::watch_point);
    const Numbers counts{static_cast<std::uint32_t>(numbers.size()), addresses.back(), watch_points.back()};

    std::vector<std::byte> bytes;
    bytes.reserve(4 * (counts.size() + numbers.size() + 3 * addresses.size()) + addresses.back() +
                  watch_points.back());
    for (const levels::Ranks part : {levels::Ranks(counts), numbers, levels::Ranks(addresses),
                                     levels::Ranks(watch_points), levels::Ranks(welcome.sequences)}) {
        const Bytes raw = std::as_bytes(part);
        bytes.insert(bytes.end(), raw.begin(), raw.end());
    }
    for (const auto string : {&wire::Peer::private_address, &wire::Peer::watch_point})
        for (const wire::Peer& peer : welcome.peers)
            bytes.insert(bytes.end(), (peer.*string).begin(), (peer.*string).end());
    return bytes;
}

bool MemberTable::Strings::whole() const {
    return std::ranges::is_sorted(ends) && ends.back() == bytes.size();
}

std::optional<MemberTable> MemberTable::view(SharedBytes shared) {
    Bytes rest = shared.bytes;
    bool whole = true;
    const auto take = [&](std::size_t count) -> levels::Ranks {
        whole = whole && count <= rest.size() / sizeof(std::uint32_t);
        if (!whole) return {};
        const levels::Ranks numbers(reinterpret_cast<const std::uint32_t*>(rest.data()), count);
        rest = rest.subspan(numbers.size_bytes());
        return numbers;
    };
    const auto stored = take(kCounts);
    if (!whole) return {};
    // Another process of this host may write into the table meanwhile, so the counts are copied before they
    // are checked.
    std::array<std::uint32_t, kCounts> counts;
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] = *static_cast<const volatile std::uint32_t*>(&stored[i]);
    const auto places = levels::Places::view(take(counts[kPlaces]));
    if (!places || places->members() == 0) return {};
    MemberTable table(std::move(shared.owner), *places);
    table.addresses_.ends = take(places->members());
    table.watch_points_.ends = take(places->members());
    table.sequences_ = take(places->members());
    if (!whole || rest.size() != std::size_t{counts[kAddresses]} + counts[kWatchPoints]) return {};
    table.addresses_.bytes = rest.first(counts[kAddresses]);
    table.watch_points_.bytes = rest.last(counts[kWatchPoints]);
    if (!table.addresses_.whole() || !table.watch_points_.whole()) return {};
    return table;
}

MemberTable MemberTable::own(std::vector<std::byte> bytes) {
    const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return view({owner, *owner}).value();
}

}  // namespace mcastcoll::group
