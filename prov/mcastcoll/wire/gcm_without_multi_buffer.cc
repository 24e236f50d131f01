// For a build without Intel's multi-buffer library.
#include "wire/gcm.h"

namespace mcastcoll::wire {

std::unique_ptr<Gcm> make_gcm_by_multi_buffer(const Key&) {
    return {};
}

bool gmac_is_fast() {
    return false;
}

}  // namespace mcastcoll::wire
