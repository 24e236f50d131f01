// Kinds of messages between head and member, encoded in the first byte.
#pragma once

#include <string>

#include "hostset/encoding.h"

namespace mcastcoll::hostset {

inline const std::string kWelcome = "w", kRefused = "r", kGiven = "x", kEverything = "a", kDismissed = "d";
inline constexpr const char* kConnectionEnded = "its connection has ended";

// A member's first message.
struct Greeting {
    std::string program;
    std::uint32_t rank = 0;
    std::uint64_t host_id = 0;  // 0: unknown
    std::string host;
};

inline std::string as_bytes_of(const Greeting& greeting) {
    Writer writer;
    writer.text(greeting.program).number(greeting.rank).number(greeting.host_id).text(greeting.host);
    return writer.take();
}

inline Result<Greeting> parse_greeting(std::string_view bytes) {
    Reader reader(bytes);
    Greeting greeting;
    greeting.program = reader.text();
    greeting.rank = static_cast<std::uint32_t>(reader.number());
    greeting.host_id = reader.number();
    greeting.host = reader.text();
    if (!reader.at_end()) return Error{EBADMSG, "no greeting"};
    return greeting;
}

}  // namespace mcastcoll::hostset
