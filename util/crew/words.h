// What the processes of a crew say to each other, as bytes: fields, sealed messages, and what a user writes
// of hosts. Pure: no socket, no clock, no chance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "relay/endpoint.h"
#include "wire/crypto.h"

namespace mcastcoll::crew {

inline constexpr std::size_t kMaxHosts = 4096;
// Of one message. Before a connection has proved anything, much less is taken.
inline constexpr std::size_t kMaxMessage = std::size_t{64} << 20;
inline constexpr std::size_t kMaxGreeting = 4096;

inline Bytes bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

// Numbers and texts, one behind the other.
class Writer {
  public:
    Writer& number(std::uint64_t value);
    Writer& text(std::string_view value);
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

// Reads what a Writer has written. After what is not there everything is 0 and empty, and ok() is false.
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

// One direction of a connection. A message is its length, a tag, and its bytes. The tag is of the message's
// number, too: none can be left out, repeated, or put elsewhere.
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
    Opener(const wire::Key& key, std::size_t most) : key_(key), most_(most) {}
    void allow(std::size_t most) { most_ = most; }
    void feed(std::string_view bytes) { waiting_.append(bytes); }
    // The next message, or nothing as long as not all of it is there. An error is final: it is too long, or
    // not from who has the key.
    Result<std::optional<std::string>> next();

  private:
    wire::Key key_;
    std::size_t most_;
    std::uint64_t number_ = 0;
    std::string waiting_;
};

// What the head hands to a process that it starts through an agent.
struct Invitation {
    wire::Key token{};
    std::uint32_t rank = 0;
    std::vector<std::string> environment;  // NAME=VALUE
};
std::string as_bytes_of(const Invitation& invitation);
Result<Invitation> parse_invitation(std::string_view bytes);

// The hosts of "a,b,c", or of a file's lines, where '#' begins a comment; each once, in that order.
Result<std::vector<std::string>> parse_hosts(std::string_view text, char separator);
// "10.0.0.1:4711,[fd00::1]:4711": each with a port.
Result<std::vector<relay::Endpoint>> parse_endpoints(std::string_view text);
std::string to_string(const std::vector<relay::Endpoint>& endpoints);

// A word for the shell, whatever is in it.
std::string as_shell_word(std::string_view word);

}  // namespace mcastcoll::crew
