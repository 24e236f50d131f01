#include "host_cases.h"

#include <algorithm>
#include <cstdio>

#include "host_shapes.h"

namespace mcastcoll::test {
namespace {

using host::Kind;
using host::Operation;
using host::Team;

constexpr std::uint64_t kUntouched = 0xdeadbeef;

// Returns a number that differs by member and place; sums of such numbers are exact.
std::uint64_t element(std::uint32_t member, std::size_t place, std::uint64_t salt) {
    return salt * 1'000'003 + (member + 1) * 7919 + place * 31;
}

// An operator that is neither commutative nor associative, so the result shows the order.
void order(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const std::uint64_t*>(one),
               *second = static_cast<const std::uint64_t*>(other);
    for (std::size_t i = 0; i < elements; ++i)
        static_cast<std::uint64_t*>(out)[i] = first[i] * 31 + second[i];
}

// Runs an operation and checks the result. Returns 0, or the number of the failed check.
int carry_out(Team& team, const Party& party, InPlace wanted, std::uint64_t salt) {
    const auto has = [&](std::uint32_t member, std::size_t place) { return element(member, place, salt); };
    const auto combined = [](std::uint64_t to, std::uint64_t from) { return to * 31 + from; };
    Material<std::uint64_t> material;
    material.lay_out(party, wanted == InPlace::all || (wanted == InPlace::odd_members && party.self % 2 == 1),
                     has);
    Operation op;
    material.put_into(op);
    op.root = party.root;
    op.ready = op.bytes;
    op.combiner = {order, sizeof(std::uint64_t)};
    if (const int code = team.run(op); code != 0) return 1000 + code;
    if (!op.done) return 2;
    for (std::size_t i = 0; i < material.shape.output; ++i)
        if (material.found(i) != material.expected(i, has, combined)) return 3;
    for (std::size_t i = 0; i < material.input.size(); ++i)
        if (material.input[i] != has(party.self, i)) return 4;
    // The operation is over: no member may read these buffers any more.
    std::fill(material.input.begin(), material.input.end(), kUntouched);
    std::fill(material.buffer.begin(), material.buffer.end(), kUntouched);
    return 0;
}

}  // namespace

int cases_of(Team& team, Kind kind, const std::vector<std::size_t>& sizes) {
    std::uint64_t salt = static_cast<std::uint64_t>(kind) * 1000;
    const std::uint32_t roots = host::is_rooted(kind) ? team.size() : 1;
    for (const std::size_t elements : sizes)
        for (std::uint32_t root = 0; root < roots; ++root)
            for (const InPlace in_place : {InPlace::none, InPlace::all, InPlace::odd_members}) {
                const std::size_t count = kind == Kind::barrier ? 0 : elements;
                const Party party{kind, root, count, team.self(), team.size()};
                if (const int code = carry_out(team, party, in_place, ++salt); code != 0) {
                    std::fprintf(stderr, "member %u of %u: %s root %u elements %zu in place %d: %d\n",
                                 team.self(), team.size(), name_of(kind).data(), root, elements,
                                 static_cast<int>(in_place), code);
                    return code;
                }
            }
    return 0;
}

int all_cases(Team& team, const std::vector<std::size_t>& sizes) {
    for (const Kind kind : kAllKinds)
        if (const int code = cases_of(team, kind, sizes); code != 0) return code;
    return 0;
}

}  // namespace mcastcoll::test
