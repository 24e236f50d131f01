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

// Numbers whose sums are exact and differ by member and place.
std::uint64_t element(std::uint32_t member, std::size_t place, std::uint64_t salt) {
    return salt * 1'000'003 + (member + 1) * 7919 + place * 31;
}

// Neither commutative nor associative: shows the order.
void order(void* inout, const void* in, std::size_t elements) {
    auto* to = static_cast<std::uint64_t*>(inout);
    const auto* from = static_cast<const std::uint64_t*>(in);
    for (std::size_t i = 0; i < elements; ++i) to[i] = to[i] * 31 + from[i];
}

std::byte* bytes_of(std::vector<std::uint64_t>& data, std::size_t from = 0) {
    return reinterpret_cast<std::byte*>(data.data() + from);
}

std::uint64_t expected(const Party& party, std::size_t place, std::uint64_t salt) {
    const Origin from = origin_of(party, place);
    std::uint64_t value = element(from.member, from.place, salt);
    for (std::uint32_t member = 1; member < party.size && host::is_reduction(party.kind); ++member)
        value = value * 31 + element(member, from.place, salt);
    return value;
}

bool is_in_place(const Party& party, const Shape& shape, InPlace in_place) {
    if (party.kind == Kind::broadcast) return true;
    if (shape.input == 0 || shape.output == 0) return false;
    return in_place == InPlace::everybody || (in_place == InPlace::odd_members && party.self % 2 == 1);
}

// 0, or where it went wrong.
int carry_out(Team& team, const Party& party, InPlace wanted, std::uint64_t salt) {
    const Shape shape = shape_of(party);
    const bool in_place = is_in_place(party, shape, wanted);
    std::vector<std::uint64_t> input(shape.input), output(shape.output, kUntouched);
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = element(team.self(), i, salt);
    Operation op;
    op.kind = party.kind;
    op.root = party.root;
    op.bytes = op.ready = party.elements * sizeof(std::uint64_t);
    op.combiner = {order, sizeof(std::uint64_t)};
    // Nobody looks at what is not there.
    op.input = shape.input > 0 ? bytes_of(input) : nullptr;
    op.buffer = shape.output > 0 ? bytes_of(output) : nullptr;
    std::size_t result_at = 0;
    std::vector<std::uint64_t>* result = &output;
    if (in_place && shape.is_input_longer) {
        result = &input;
        result_at = shape.own;
        op.buffer = bytes_of(input, shape.own);
    } else if (in_place) {
        std::copy(input.begin(), input.end(), output.begin() + static_cast<std::ptrdiff_t>(shape.own));
        op.input = bytes_of(output, shape.own);
    }
    if (const int code = team.run(op); code != 0) return 1000 + code;
    if (!op.done) return 2;
    for (std::size_t i = 0; i < shape.output; ++i)
        if ((*result)[result_at + i] != expected(party, i, salt)) return 3;
    for (std::size_t i = 0; i < input.size() && !in_place; ++i)
        if (input[i] != element(team.self(), i, salt)) return 4;
    // It is over: nobody reads this any more.
    std::fill(input.begin(), input.end(), kUntouched);
    std::fill(output.begin(), output.end(), kUntouched);
    return 0;
}

}  // namespace

int cases_of(Team& team, Kind kind, const std::vector<std::size_t>& sizes) {
    std::uint64_t salt = static_cast<std::uint64_t>(kind) * 1000;
    const std::uint32_t roots = host::is_rooted(kind) ? team.size() : 1;
    for (const std::size_t elements : sizes)
        for (std::uint32_t root = 0; root < roots; ++root)
            for (const InPlace in_place : {InPlace::nobody, InPlace::everybody, InPlace::odd_members}) {
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
