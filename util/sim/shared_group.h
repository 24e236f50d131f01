// Data common to all members of a simulated group, stored once per group: the members, and the inputs and
// expected results of each operation.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "engine/group_config.h"
#include "group/join_memory.h"
#include "levels/selection.h"
#include "random.h"
#include "wire/join.h"

namespace mcastcoll::sim {

struct GroupSetup {
    std::vector<std::uint32_t> members;  // processes, by rank
    std::vector<Collective> script;      // without buffers
    std::vector<levels::Row> selection;  // of rank 0
    std::size_t in_flight = 1;
    // Separated operations: each begins this long after the previous one has completed everywhere.
    std::optional<Nanoseconds> settle;
    engine::Repair repair = engine::Repair::pull;
};

// Encodes an Address as a private address, or a process's number as a datagram address.
template <typename Number>
wire::ByteString bytes_of(Number number) {
    wire::ByteString bytes(sizeof number);
    number = little_endian(number);
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}
template <typename Number>
Number value_of(const wire::ByteString& bytes) {
    Number number = 0;
    std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
    return little_endian(number);
}

// The only combination for vectors of every length, in every order.
void combine_by_xor(void* out, const void* one, const void* other, std::size_t bytes);

class SharedGroup {
  public:
    using Content = std::shared_ptr<const std::vector<std::byte>>;

    // `number` counts the groups of a world, from 1 on.
    SharedGroup(std::uint64_t number, const GroupSetup& setup);

    const GroupSetup& setup() const { return setup_; }
    std::uint64_t number() const { return number_; }
    std::uint32_t members() const { return static_cast<std::uint32_t>(setup_.members.size()); }
    const group::MemberList& addresses() const { return addresses_; }  // by rank
    // The rank of a process, which must be a member.
    std::uint32_t rank_of(std::uint32_t process) const;

    // Returns a member's input of an operation.
    std::vector<std::byte> given(std::size_t operation, std::uint32_t rank) const;
    // Returns a member's result. A result common to all members is stored once, while it is referenced.
    Content expected(std::size_t operation, std::uint32_t rank);

  private:
    std::vector<std::byte> part_given(std::size_t operation, std::uint32_t rank, std::size_t offset,
                                      std::size_t bytes) const;
    Content computed(std::size_t operation, std::uint32_t rank) const;

    const std::uint64_t number_;
    const GroupSetup& setup_;
    group::MemberList addresses_;
    std::vector<std::uint32_t> rank_of_;  // by process
    std::vector<std::weak_ptr<const std::vector<std::byte>>> expected_;
};

}  // namespace mcastcoll::sim
