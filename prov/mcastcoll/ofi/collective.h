// The collective operations of an endpoint's table: checks arguments, then hands over to the station.
#pragma once

#include <rdma/fi_collective.h>

#include <cstddef>
#include <optional>

namespace mcastcoll::ofi {

// Makes every operation of the table ours; what there is not answers -FI_ENOSYS.
void set_collectives(fi_ops_collective& table);
// Bytes of one element; FI_VOID counts bytes. None for what is no datatype.
std::optional<std::size_t> datatype_bytes(fi_datatype datatype);

}  // namespace mcastcoll::ofi
