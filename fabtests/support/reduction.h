// Reference results of reductions: every datatype, contents that every process can compute from a seed, and
// each operator implemented again, element by element and as plainly as possible, so that no code is shared
// with the provider's kernels.
//
// Contents come in two kinds. Exact values give the same result in every order of combination, so results are
// compared by value. Rough values round differently in every order: their result is compared within a bound,
// and the digest shows whether two members, or two runs, have the same bits.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mcastcoll::fabtest {

enum class Values { exact, rough };

struct Datatype {
    fi_datatype type;
    const char* name;
    std::size_t bytes;
    bool rounds;  // sums and products depend on the order: rough values exist
    bool (*allows)(fi_op op);
    // The vectors passed to these functions may have any alignment.
    void (*fill)(std::byte* to, std::size_t count, fi_op op, Values values, std::uint64_t seed);
    void (*combine)(std::byte* inout, const std::byte* in, std::size_t count, fi_op op);
    // Returns the first element that differs: by value if `roundings` is 0, otherwise by more than
    // `roundings` roundings.
    std::optional<std::size_t> (*find_difference)(const std::byte* got, const std::byte* wanted,
                                                  std::size_t count, unsigned roundings);
    // Digest of the bits of the values, without the padding of long doubles.
    std::uint64_t (*digest)(const std::byte* data, std::size_t count);
};

const std::vector<Datatype>& datatypes();
const Datatype& datatype_of(fi_datatype type);

struct Operator {
    fi_op op;
    const char* name;
};
const std::vector<Operator>& operators();
const char* name_of(fi_op op);

}  // namespace mcastcoll::fabtest
