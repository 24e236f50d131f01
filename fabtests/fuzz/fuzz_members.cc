// The table of members in a host's shared memory, which may be corrupt: reads every field.
#include <cstring>

#include "fuzz.h"
#include "group/member_table.h"
#include "levels/placement.h"

using namespace mcastcoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Numbers in the table are aligned, as in a segment; memory after it must not be accessed.
    const auto copy = std::shared_ptr<std::byte[]>(new std::byte[size]);
    if (size > 0) std::memcpy(copy.get(), data, size);
    const auto table = group::MemberTable::view({copy, {copy.get(), size}});
    if (!table) return 0;
    const levels::Places& places = table->places();
    for (std::uint32_t rank = 0; rank < table->size(); ++rank) {
        (void)table->address(rank);
        (void)table->watch_point(rank);
        (void)table->sequence(rank);
        const std::uint32_t segment = places.segment_of_host(places.host_of(rank));
        fuzz::check(places.segment_leaders()[segment] < table->size(), "who leads a segment is a member");
        (void)places.site_of_segment(segment);
        for (const std::uint32_t member : places.members_of(places.host_of(rank)))
            fuzz::check(member < table->size(), "who is on a host is a member");
    }
    if (table->size() <= 64)
        for (std::uint32_t rank = 0; rank < table->size(); ++rank) {
            const levels::Placement placement(rank, places);
            (void)placement.host_root(0);
            if (placement.leads_host()) (void)placement.segment_root(0);
        }
    return 0;
}
