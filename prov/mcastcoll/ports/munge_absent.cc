// Replaces munge_library.cc in a build without MUNGE.
#include "ports/munge_library.h"

namespace mcastcoll::ports {

MungeAnswer munge_encode_bytes(const std::string&, Bytes) {
    return {.reason = "this build of mcastcoll does not support MUNGE"};
}

MungeAnswer munge_decode_bytes(const std::string& socket, Bytes credential) {
    return munge_encode_bytes(socket, credential);
}

}  // namespace mcastcoll::ports
