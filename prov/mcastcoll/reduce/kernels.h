// The kernel of every datatype and operator that libfabric's reductions know (fi_atomic(3),
// fi_collective(3)).
//
//     integers, 8 to 128 bits      MIN MAX SUM PROD LOR LAND BOR BAND LXOR BXOR; sums and products wrap
//     float, double, long double   MIN MAX SUM PROD LOR LAND LXOR
//     complex of these             SUM PROD LOR LAND LXOR
//
// FI_ATOMIC_READ and FI_ATOMIC_WRITE, which fi_query_collective(3) lists, too, mean "the first" and "the
// last" of vectors that have no order in a group whose levels combine neighbours first: there is no kernel.
//
// Each result depends on its own two elements only, however the loop was vectorised: no reassociation, no
// contraction into fused multiply-add. So the same vectors combined in the same order give the same bits on
// every processor of one architecture. MIN and MAX are inout = in < inout ? in : inout and the like: a NaN in
// inout stays, one in `in` is passed over, and of 0.0 and -0.0 inout's stays. A logical result is 0 or 1; a
// NaN counts as true, and a complex number is false when both its parts are zero. Complex products are C99's
// (Annex G).
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <optional>

#include "base/collective.h"

namespace mcastcoll {

// None for what is no datatype, no operator, or no operator of that datatype. The kernels take vectors at any
// address, aligned or not.
std::optional<Combiner> combiner(fi_datatype datatype, fi_op op);

// Bytes of one element; none for what is no datatype, FI_VOID among them.
std::optional<std::size_t> element_bytes(fi_datatype datatype);

}  // namespace mcastcoll
