// Encoding of the messages of a host set: fields, sealed messages, and lists of hosts given by the user.
// Pure: no socket, no clock, no random numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sites/endpoint.h"
#include "wire/crypto.h"

namespace mcastcoll::hostset {

inline constexpr std::size_t kMaxHosts = 4096;
// Limit of one message. Before the connection is authenticated, the limit is kMaxHello.
inline constexpr std::size_t kMaxMessage = std::size_t{64} << 20;
inline constexpr std::size_t kMaxHello = 4096;

inline Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

// Writes numbers and texts in sequence.
class Writer {
  public:
    Writer& number(std::uint64_t value);
    Writer& text(std::string_view value);
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

// Reads the output of a Writer. Missing fields read as 0 or empty, and then ok() is false.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}
    std::uint64_t number();
    std::string_view text();
    bool ok() const { return ok_; }
    bool at_end() const { return ok_ && rest_.empty(); }

  private:
    std::string_view take(std::size_t size);

    std::string_view rest_;
    bool ok_ = true;
};

// One direction of a connection. A message is its length, a tag, and its bytes. The tag covers the message's
// number, too, so messages cannot be omitted, repeated or reordered.
class Sealer {
  public:
    explicit Sealer(const wire::Key& key) : key_(key) {}
    std::string seal(std::string_view message);

  private:
    wire::Key key_;
    std::uint64_t number_ = 0;
};

class Opener {
  public:
    Opener(const wire::Key& key, std::size_t max) : key_(key), max_(max) {}
    void allow(std::size_t max) { max_ = max; }
    void append(std::string_view bytes) { waiting_.append(bytes); }
    // Returns the next complete message, or nothing. An error is final: the message is too long, or its tag
    // is wrong.
    Result<std::optional<std::string>> next();

  private:
    wire::Key key_;
    std::size_t max_;
    std::uint64_t number_ = 0;
    std::string waiting_;
};

// Passed by the head to a process that the head starts through an agent.
struct Invitation {
    wire::Key token{};
    std::uint32_t rank = 0;
    std::vector<std::string> environment;  // NAME=VALUE
};
std::string as_bytes_of(const Invitation& invitation);
Result<Invitation> parse_invitation(std::string_view bytes);

// The hosts of "a,b,c", or of a file's lines with '#' comments, in the order of the list. A host named twice
// is an error.
Result<std::vector<std::string>> parse_hosts(std::string_view text, char separator);
// "10.0.0.1:4711,[fd00::1]:4711": each with a port.
Result<std::vector<sites::Endpoint>> parse_endpoints(std::string_view text);
std::string to_string(const std::vector<sites::Endpoint>& endpoints);

// Quotes a word for the shell.
std::string as_shell_word(std::string_view word);

}  // namespace mcastcoll::hostset
