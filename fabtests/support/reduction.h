// What reductions must give: every datatype, contents that everybody can compute from a seed, and each
// operator once more, element by element and as plainly as can be, so that nothing is shared with the
// provider's kernels.
//
// Contents come in two kinds. Exact ones give the same result in whatever order they are combined, and are
// compared by value. Rough ones round differently in every order: their result is compared within a bound,
// and its digest tells whether two members, or two runs, got the same bits.
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
    bool rounds;  // sums and products depend on their order: there are rough values
    bool (*allows)(fi_op op);
    // Vectors lie at any address.
    void (*fill)(std::byte* to, std::size_t count, fi_op op, Values values, std::uint64_t seed);
    void (*combine)(std::byte* inout, const std::byte* in, std::size_t count, fi_op op);
    // The first element that is not as wanted: by value if `roundings` is 0, else off by no more than so
    // many.
    std::optional<std::size_t> (*find_difference)(const std::byte* got, const std::byte* wanted,
                                                  std::size_t count, unsigned roundings);
    // Of all bits that make up the values; long doubles have others between.
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
