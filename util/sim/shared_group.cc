#include "shared_group.h"

#include <algorithm>

#include "script.h"

namespace mcastcoll::sim {

using levels::Kind;

namespace {

bool takes_blocks(Kind kind) {
    return kind == Kind::scatter || kind == Kind::alltoall;
}

bool same_for_all(Kind kind) {
    return !takes_blocks(kind) && kind != Kind::reduce_scatter;
}

bool only_for_root(Kind kind) {
    return kind == Kind::reduce || kind == Kind::gather;
}

// Different for every member of every group. Ranks above 999 use higher bits than the group.
std::uint64_t content_seed(std::uint64_t group, std::uint32_t rank) {
    return group * 1000 + rank % 1000 + (std::uint64_t{rank / 1000} << 32);
}

}  // namespace

void combine_by_xor(void* out, const void* one, const void* other, std::size_t bytes) {
    const auto *first = static_cast<const std::byte*>(one), *second = static_cast<const std::byte*>(other);
    for (std::size_t i = 0; i < bytes; ++i) static_cast<std::byte*>(out)[i] = first[i] ^ second[i];
}

SharedGroup::SharedGroup(std::uint64_t number, const GroupSetup& setup)
    : number_(number), setup_(setup), expected_(setup.script.size()) {
    std::vector<wire::ByteString> addresses;
    rank_of_.resize(setup.members.empty() ? 0 : std::ranges::max(setup.members) + 1);
    for (std::uint32_t rank = 0; rank < members(); ++rank) {
        addresses.push_back(bytes_of(setup.members[rank]));
        rank_of_[setup.members[rank]] = rank;
    }
    addresses_ = std::make_shared<const std::vector<wire::ByteString>>(std::move(addresses));
}

std::uint32_t SharedGroup::rank_of(std::uint32_t process) const {
    return rank_of_[process];
}

std::vector<std::byte> SharedGroup::given(std::size_t operation, std::uint32_t rank) const {
    const Collective& what = setup_.script[operation];
    return part_given(operation, rank, 0, takes_blocks(what.kind) ? what.bytes * members() : what.bytes);
}

std::vector<std::byte> SharedGroup::part_given(std::size_t operation, std::uint32_t rank, std::size_t offset,
                                               std::size_t bytes) const {
    return content_of(content_seed(number_, rank), operation, bytes, offset);
}

SharedGroup::Content SharedGroup::expected(std::size_t operation, std::uint32_t rank) {
    const Collective& what = setup_.script[operation];
    if (!same_for_all(what.kind) || (only_for_root(what.kind) && rank != index_of(what.root)))
        return computed(operation, rank);
    Content content = expected_[operation].lock();
    if (content == nullptr) expected_[operation] = content = computed(operation, rank);
    return content;
}

SharedGroup::Content SharedGroup::computed(std::size_t operation, std::uint32_t rank) const {
    Collective what = setup_.script[operation];
    what.combiner = {combine_by_xor, 1};
    return std::make_shared<const std::vector<std::byte>>(
        outcome(what, rank, members(), [&](std::uint32_t other, std::size_t offset, std::size_t bytes) {
            return part_given(operation, other, offset, bytes);
        }));
}

}  // namespace mcastcoll::sim
