// Kinds of messages between head and member, encoded in the first byte.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hostset/reader.h"
#include "hostset/writer.h"

namespace mcastcoll::hostset {

inline const std::string kWelcome = "w", kRefused = "r", kContribution = "x", kAllContributions = "a",
                         kExcluded = "d";
inline constexpr const char* kConnectionEnded = "its connection has ended";

// A member's first message.
struct Hello {
    std::string program;
    std::uint32_t rank = 0;
    std::uint64_t host_id = 0;  // 0: unknown
    std::string host;
};

inline std::string as_bytes_of(const Hello& hello) {
    Writer writer;
    writer.text(hello.program).number(hello.rank).number(hello.host_id).text(hello.host);
    return writer.take();
}

inline Result<Hello> parse_hello(std::string_view bytes) {
    Reader reader(bytes);
    Hello hello;
    hello.program = reader.text();
    hello.rank = static_cast<std::uint32_t>(reader.number());
    hello.host_id = reader.number();
    hello.host = reader.text();
    if (!reader.at_end()) return Error{EBADMSG, "no hello"};
    return hello;
}

}  // namespace mcastcoll::hostset
