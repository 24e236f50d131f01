// The kernel of every datatype and operator of libfabric's reductions (fi_atomic(3), fi_collective(3)).
//
//     integers, 8 to 128 bits      MIN MAX SUM PROD LOR LAND BOR BAND LXOR BXOR; sums and products wrap
//     float, double, long double   MIN MAX SUM PROD LOR LAND LXOR
//     complex of these             SUM PROD LOR LAND LXOR
//
// FI_ATOMIC_READ and FI_ATOMIC_WRITE, which fi_query_collective(3) also lists, mean "the first" and "the
// last" vector. Vectors have no order in a group whose levels combine neighbours first, so there is no
// kernel.
//
// Each result depends only on its own two elements, however the loop was vectorised: no reassociation, no
// contraction into fused multiply-add. So the same vectors combined in the same order give the same bits on
// every processor of one architecture. MIN is inout = in < inout ? in : inout, and MAX the same with >: a NaN
// in inout stays, a NaN in `in` is ignored, and of 0.0 and -0.0 the value in inout stays. A logical result is
// 0 or 1; a NaN counts as true, and a complex number is false when both its parts are zero. Complex products
// are C99's (Annex G).
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <optional>

#include "base/combiner.h"

namespace mcastcoll::reduce {

// Returns the kernel, or nothing for an invalid datatype or operator, or if the operator does not apply to
// the datatype. The kernels accept vectors at any address, aligned or not.
std::optional<Combiner> combiner(fi_datatype datatype, fi_op op);

// Bytes of one element; nothing for an invalid datatype or FI_VOID.
std::optional<std::size_t> element_bytes(fi_datatype datatype);

}  // namespace mcastcoll::reduce
