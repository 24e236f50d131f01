// What the processes of a host have to know of all members of a group: where each is and how it is reached.
// The host's leader makes it of the welcome, and the others of its host read it in the memory that they
// share, so that a host has it once, however many of its processes are in the group.
#pragma once

#include <memory>
#include <optional>

#include "levels/placement.h"
#include "wire/join.h"

namespace mcastcoll::group {

// Bytes that stay as long as somebody has this.
struct SharedBytes {
    std::shared_ptr<const void> owner;
    Bytes bytes;
};

class MemberTable {
  public:
    // numbers: of levels::Places.
    static std::vector<std::byte> lay_out(const wire::Welcome& welcome, levels::Ranks numbers);
    // What is shared may be spoilt: nothing unless all of it can be read.
    static std::optional<MemberTable> view(SharedBytes shared);
    // In memory of its own.
    static MemberTable own(std::vector<std::byte> bytes);

    std::uint32_t size() const { return places_.members(); }
    const levels::Places& places() const { return places_; }
    wire::ByteString address(std::uint32_t rank) const { return addresses_.at(rank); }
    wire::ByteString watch_point(std::uint32_t rank) const { return watch_points_.at(rank); }
    // By which a member knows the join.
    std::uint32_t sequence(std::uint32_t rank) const { return sequences_[rank]; }

  private:
    // Byte strings by number, end to end.
    struct Strings {
        levels::Ranks ends;
        Bytes bytes;
        // Another process of the host may write there at any time: nothing, if it has written nonsense.
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
