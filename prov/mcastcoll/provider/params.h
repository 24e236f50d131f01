// Tells libfabric about the FI_MCASTCOLL_* variables, which is what `fi_info -e` lists.
#pragma once

namespace mcastcoll::ofi {

void define_params();

}  // namespace mcastcoll::ofi
