// Shared by the tests of host::Team.
#pragma once

#include <criterion/criterion.h>

#include <cstddef>
#include <cstdint>

#include "host/team.h"
#include "host_members.h"

namespace mcastcoll::test {

inline MembersOptions members(std::uint32_t count) {
    MembersOptions options;
    options.count = count;
    return options;
}

// Runs `body` on each member; `failures` members must not return 0, such as members that die.
inline void expect(const MembersOptions& options, const std::function<int(host::Team&)>& body,
                   int failures = 0) {
    cr_assert_eq(run_members(options, body), failures, "%u members, threads %d, single copy %d",
                 options.count, options.threads, options.config.single_copy);
}

inline int barrier(host::Team& team) {
    host::Operation op;
    return team.run(op);
}

inline void add(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const std::uint64_t*>(one),
               *second = static_cast<const std::uint64_t*>(other);
    for (std::size_t i = 0; i < elements; ++i) static_cast<std::uint64_t*>(out)[i] = first[i] + second[i];
}

}  // namespace mcastcoll::test
