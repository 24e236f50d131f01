// Calls libmunge in the calling thread.
#pragma once

#include "ports/munge_call.h"

namespace mcastcoll::ports {

struct MungeAnswer {
    MungeCall::State state = MungeCall::State::unavailable;
    wire::ByteString bytes{};
    std::string reason{};
};

MungeAnswer munge_encode_bytes(const std::string& socket, Bytes payload);
MungeAnswer munge_decode_bytes(const std::string& socket, Bytes credential);

}  // namespace mcastcoll::ports
