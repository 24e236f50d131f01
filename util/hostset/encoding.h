// Encoding of the messages of a host set: fields, sealed messages, and lists of hosts given by the user.
// Pure: no socket, no clock, no random numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "sites/endpoint.h"

namespace mcastcoll::hostset {

inline constexpr std::size_t kMaxHosts = 4096;
// Limit of one message. Before the connection is authenticated, the limit is kMaxHello.
inline constexpr std::size_t kMaxMessage = std::size_t{64} << 20;
inline constexpr std::size_t kMaxHello = 4096;

inline Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

// The hosts of "a,b,c", or of a file's lines with '#' comments, in the order of the list. A host named twice
// is an error.
Result<std::vector<std::string>> parse_hosts(std::string_view text, char separator);
// "10.0.0.1:4711,[fd00::1]:4711": each with a port.
Result<std::vector<sites::Endpoint>> parse_endpoints(std::string_view text);
std::string to_string(const std::vector<sites::Endpoint>& endpoints);

// Quotes a word for the shell.
std::string as_shell_word(std::string_view word);

}  // namespace mcastcoll::hostset
