// What a collective of host::Team makes of what: for programs that check or time all kinds alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "host/operation.h"

namespace mcastcoll::test {

inline constexpr host::Kind kAllKinds[] = {
    host::Kind::broadcast, host::Kind::barrier,   host::Kind::reduce,
    host::Kind::allreduce, host::Kind::allgather, host::Kind::gather,
    host::Kind::scatter,   host::Kind::alltoall,  host::Kind::reduce_scatter};
std::string_view name_of(host::Kind kind);
std::optional<host::Kind> kind_of(std::string_view name);

struct Party {
    host::Kind kind = host::Kind::barrier;
    std::uint32_t root = 0;
    std::size_t elements = 0;  // of the vector, or of one block
    std::uint32_t self = 0, size = 1;
};

// What a member has before and gets, in elements; and where in the longer of the two the other lies when they
// are in place.
struct Shape {
    std::size_t input = 0, output = 0;
    std::size_t own = 0;
    bool is_input_longer = false;
};
Shape shape_of(const Party& party);

// Where an element of the result comes from; reductions: from that place of everybody's input.
struct Origin {
    std::uint32_t member = 0;
    std::size_t place = 0;
};
Origin origin_of(const Party& party, std::size_t place);

}  // namespace mcastcoll::test
