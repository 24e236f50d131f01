// The member table of a group for the processes of one host: places, addresses, and watch points (the
// addresses at which a process is watched for its death). The host leader builds the table from the welcome,
// and the other processes read the table in the shared memory. A host has one copy for any number of
// processes.
#pragma once

#include <memory>
#include <optional>

#include "levels/places.h"
#include "wire/join.h"

namespace mcastcoll::group {

// Bytes that live as long as an owner is held.
struct SharedBytes {
    std::shared_ptr<const void> owner;
    Bytes bytes;
};

class MemberTable {
  public:
    // numbers: the places, from levels::Places::lay_out().
    static std::vector<std::byte> lay_out(const wire::Welcome& welcome, levels::Ranks numbers);
    // Shared bytes may be corrupt: returns nothing unless the whole table is readable.
    static std::optional<MemberTable> view(SharedBytes shared);
    // Makes the table from the bytes of lay_out(), in private memory.
    static MemberTable own(std::vector<std::byte> bytes);

    std::uint32_t size() const { return places_.members(); }
    const levels::Places& places() const { return places_; }
    wire::ByteString address(std::uint32_t rank) const { return addresses_.at(rank); }
    wire::ByteString watch_point(std::uint32_t rank) const { return watch_points_.at(rank); }
    // The number by which this member knows the join.
    std::uint32_t sequence(std::uint32_t rank) const { return sequences_[rank]; }

  private:
    // Byte strings by number, stored end to end.
    struct Strings {
        levels::Ranks ends;
        Bytes bytes;
        // Another process of the host may overwrite the table at any time. Returns nothing if the bounds are
        // invalid.
        wire::ByteString at(std::size_t number) const {
            const auto once = [this](std::size_t index) {
                return *const_cast<const volatile std::uint32_t*>(&ends[index]);
            };
            const std::uint32_t begin = number == 0 ? 0 : once(number - 1), end = once(number);
            if (begin > end || end > bytes.size()) return {};
            return {bytes.begin() + begin, bytes.begin() + end};
        }
        bool whole() const;
    };
    MemberTable(std::shared_ptr<const void> owner, const levels::Places& places)
        : owner_(std::move(owner)), places_(places) {}

    std::shared_ptr<const void> owner_;
    levels::Places places_;
    Strings addresses_, watch_points_;  // by rank
    levels::Ranks sequences_;           // by rank
};

}  // namespace mcastcoll::group
