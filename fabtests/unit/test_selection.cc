// The table of algorithms: the meaning of rows, errors in rows, and its encoding.
#include <criterion/criterion.h>

#include <cstring>

#include "levels/selection.h"

namespace mcastcoll::levels {
namespace {

Selection selection_of(const char* text, std::uint32_t members, std::size_t hosts) {
    const auto rows = parse_selection(text);
    cr_assert(rows.ok(), "%s", rows.ok() ? "" : rows.error().message.c_str());
    return {rows.value(), members, hosts};
}

constexpr const char* kTable =
    "# a comment\n"
    "\n"
    "allgather   *     2-  -4K    reduction   # small ones\n"
    "allgather   2-8   *   *      chains:7\n"
    "allgather   9-    2   1M-2M  messages\n"
    "\tallreduce 4\t3-4 64K- split\r\n"
    "bcast 3 * 7 levels";

}  // namespace

Test(selection, the_first_row_that_matches_decides) {
    const auto choice = [](std::uint32_t members, std::size_t hosts, Kind kind, std::uint64_t bytes) {
        return selection_of(kTable, members, hosts).decide(kind, bytes);
    };
    cr_assert(choice(4, 2, Kind::allgather, 4096) == (Choice{Algorithm::reduction, 0}));
    cr_assert(choice(4, 2, Kind::allgather, 4097) == (Choice{Algorithm::chains, 7}));
    cr_assert(choice(4, 1, Kind::allgather, 1) == (Choice{Algorithm::chains, 7}));
    cr_assert(choice(9, 2, Kind::allgather, 1 << 20) == (Choice{Algorithm::messages, 0}));
    cr_assert(choice(4, 3, Kind::allreduce, 65536) == (Choice{Algorithm::split, 2}));
    cr_assert(choice(4, 3, Kind::allreduce, 65535) == (Choice{Algorithm::levels, 0}));
    cr_assert(choice(5, 3, Kind::allreduce, 65536) == (Choice{Algorithm::levels, 0}));
    cr_assert(choice(4, 4, Kind::alltoall, 8) == (Choice{Algorithm::messages, 0}));
}

Test(selection, what_is_printed_is_what_was_read) {
    const auto rows = parse_selection(kTable);
    std::string text;
    for (const Row& row : rows.value()) text += to_text(row) + "\n";
    const auto again = parse_selection(text);
    cr_assert(again.ok(), "%s", again.ok() ? "" : again.error().message.c_str());
    cr_assert_eq(again.value().size(), rows.value().size());
    for (std::size_t i = 0; i < rows.value().size(); ++i) {
        const Row &a = rows.value()[i], &b = again.value()[i];
        cr_assert(a.kind == b.kind && a.members == b.members && a.hosts == b.hosts && a.bytes == b.bytes &&
                  a.choice == b.choice);
    }
    for (const Row& row : built_in_rows()) cr_assert(parse_selection(to_text(row)).ok());
}

Test(selection, errors_name_the_line_and_what_may_stand_there) {
    const struct {
        const char *text, *complaint;
    } cases[] = {
        {"allgather * * *", "line 1: a row must have five columns"},
        {"\n#\nbroad * * * levels", "line 3: operation 'broad' may be broadcast, barrier,"},
        {"allgather 3-2 * * chains", "line 1: members '3-2' may be *, N, N-M, N- or -M"},
        {"allgather * 2K * chains", "line 1: hosts '2K' may be"},
        {"allgather * * 2X chains", "line 1: bytes '2X' may be"},
        {"allgather * * - chains", "line 1: bytes '-' may be"},
        {"allgather * * 17179869184G chains", "line 1: bytes '17179869184G' may be"},
        {"allgather * * * chains:0",
         "line 1: algorithm 'chains:0' of allgather may be messages, reduction, "},
        {"allgather * * * chains:65", "chains[:1 to 64]"},
        {"allgather * * * reduction:4", "line 1: algorithm 'reduction:4'"},
        {"barrier * * * split", "line 1: algorithm 'split' of barrier may be levels"},
        {"alltoall * * * none", "line 1: algorithm 'none' of alltoall may be messages"},
    };
    for (const auto& one : cases) {
        const auto rows = parse_selection(one.text);
        cr_assert_not(rows.ok(), "%s", one.text);
        cr_assert(rows.error().message.find(one.complaint) != std::string::npos, "%s: %s", one.text,
                  rows.error().message.c_str());
    }
    std::string many;
    for (std::size_t i = 0; i <= kMaxRows - kMaxBuiltIn; ++i) many += "barrier * * * levels\n";
    cr_assert_not(parse_selection(many).ok());
}

Test(selection, the_journey_in_the_welcome) {
    const Selection selection = selection_of(kTable, 4, 3);
    const auto bytes = selection.encode();
    const auto decoded = Selection::decode(bytes);
    cr_assert(decoded.has_value());
    for (const std::uint64_t size : {0, 100, 4096, 4097, 65536, 1 << 20})
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            const auto a = selection.decide(static_cast<Kind>(kind), size);
            const auto b = decoded->decide(static_cast<Kind>(kind), size);
            cr_assert(a == b);
        }
    // Every other encoding is refused.
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
        cr_assert_not(Selection::decode(Bytes(bytes).first(cut)).has_value());
    for (const auto& [at, value] : {std::pair{0, 2}, {1, 200}, {2, 9}, {3, 5}, {3, 0}, {5, 65}}) {
        auto bad = bytes;
        bad[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        cr_assert_not(Selection::decode(bad).has_value(), "byte %d", at);
    }
}

Test(selection, bytes_are_those_of_the_longest_buffer) {
    cr_assert_eq(longest_buffer(Kind::broadcast, 10, 4), 10);
    cr_assert_eq(longest_buffer(Kind::reduce_scatter, 10, 4), 10);
    cr_assert_eq(longest_buffer(Kind::gather, 10, 4), 40);
    cr_assert_eq(longest_buffer(Kind::alltoall, 10, 4), 40);
}

}  // namespace mcastcoll::levels
