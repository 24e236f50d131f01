// Packets, and the table of peers in a welcome (rank 0's answer to the members of a join): encoding a decoded
// packet or table gives the same bytes.
#include "fuzz.h"
#include "wire/peer_table.h"

using namespace mcastcoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Bytes raw = fuzz::bytes_of(data, size);
    (void)wire::decode(raw);
    fuzz::Input in(data, size);
    auto packet = fuzz::take_packet(in, GroupKey{in.any<std::uint64_t>()}, Epoch{1}, 7, 64);
    const wire::Decoded decoded = wire::decode(packet);
    if (decoded.refusal == wire::Refusal::none) {
        wire::HeaderBytes again;
        wire::encode(decoded.header, decoded.payload, again);
        fuzz::check(std::equal(again.begin(), again.end(), packet.begin()), "a packet is encoded as it came");
    }
    if (size == 0) return 0;
    const std::size_t members = data[0] % 16 + 1;
    const auto table = wire::unpack(raw.subspan(1), members);
    if (!table) return 0;
    fuzz::check(table->peers.size() == members, "a table has as many members as were requested");
    const auto packed = wire::pack(table->peers, table->range_of, table->sequences);
    const auto again = wire::unpack(packed, members);
    fuzz::check(again && again->peers == table->peers && again->range_of == table->range_of &&
                    again->sequences == table->sequences,
                "a table is the same after it was packed");
    return 0;
}
