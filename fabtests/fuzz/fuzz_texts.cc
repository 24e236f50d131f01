// Texts that users write, and small records of a welcome (rank 0's answer to the members of a join).
#include <string_view>

#include "fuzz.h"
#include "gateway/preface.h"
#include "levels/selection.h"
#include "sites/reach.h"
#include "sites/sites.h"
#include "topology/override.h"

using namespace mcastcoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Bytes raw = fuzz::bytes_of(data, size);
    (void)topology::Override::parse_words(text);
    (void)topology::Override::parse_file(text, "file");
    (void)topology::algorithm_named(text);
    (void)topology::Subnet::parse(text);
    (void)sites::parse_sites(text, "file");
    (void)sites::Endpoint::parse(text);
    if (const auto reach = sites::Reach::parse(text)) {
        const sites::Reach& read = reach.value();
        fuzz::check(read.first_port >= 1 && read.first_port <= read.last_port,
                    "ports go from one to another");
        if (const auto preface = gateway::decode_preface(raw)) (void)read.contains(preface->target);
    }
    if (const auto rows = levels::parse_selection(text); rows.ok())
        for (const levels::Row& row : rows.value()) {
            const auto again = levels::parse_selection(levels::to_text(row));
            fuzz::check(again.ok() && again.value().size() == 1 && again.value()[0].choice == row.choice &&
                            again.value()[0].bytes == row.bytes,
                        "a row that is shown can be read");
        }
    if (const auto place = topology::decode_place(raw))
        fuzz::check(topology::decode_place(topology::encode(*place)).has_value(), "a place can be decoded");
    if (const auto policy = topology::decode_policy(raw))
        fuzz::check(topology::decode_policy(topology::encode(*policy)) == policy, "a policy stays the same");
    if (const auto selection = levels::Selection::decode(raw))
        fuzz::check(levels::Selection::decode(selection->encode()).has_value(), "a selection can be decoded");
    return 0;
}
