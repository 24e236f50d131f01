#include "ports/placing.h"

#include "group/places.h"
#include "host/segment.h"
#include "topology/discover.h"
#include "transport/socket_address.h"

namespace mcastcoll::ofi {
namespace {

// What a group of sixteen on one host takes.
constexpr std::size_t kRoomWanted = std::size_t{1} << 20;

}  // namespace

OwnPlace find_own_place(const topology::Override& given, const wire::ByteString& inner_address) {
    const auto address = SocketAddress::from_bytes(inner_address);
    topology::Discovery found =
        topology::discover(given, address ? address.value().address_bytes() : Bytes());
    if (const auto room = host::Segment::probe(kRoomWanted); !room && found.place.at(topology::Level::host)) {
        found.place.clear(topology::Level::host);
        found.notes.push_back("served as a host of its own: " + room.error().message);
    }
    return {.encoded = group::encode_place(found.place),
            .text = found.place.to_string(),
            .notes = std::move(found.notes)};
}

}  // namespace mcastcoll::ofi
