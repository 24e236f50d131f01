// What is relayed: bytes as fast as they go, or a small message to and fro; and the sockets that they take,
// on this host or in the network namespaces of others.
#pragma once

#include <netinet/in.h>

#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "gateway/ways/way.h"

namespace mcastcoll::ways {

// Where an end's sockets are made: in this namespace, or in another (/run/netns/NAME).
class Host {
  public:
    static Result<Host> open(const std::string& name);
    Host() = default;
    // Made there; the thread comes back whatever happens.
    Result<FileDescriptor> socket_here() const;

  private:
    FileDescriptor there_, here_;
};

struct Ends {
    FileDescriptor from, to;
};
// A connection of TCP between the two, to this address of the second.
Result<Ends> connect(const Host& from, const Host& to, in_addr address);

// Sockets for one run: the process's, both of the relay, and the other gateway's.
struct Line {
    FileDescriptor process, connection, stream, peer;
};

// Keeps this thread, and those that it will start, on one processor, or on all of those it has but one.
Result<void> stay_on(int processor);
Result<void> stay_off(int processor);

enum class Direction { out, in };  // into frames, or out of them

struct Bulk {
    double seconds = 0;
    std::uint64_t bytes = 0;  // of payload, that arrived
    double relay_cpu_s = 0, all_cpu_s = 0;
    Counters counters;
};
// Sends for so long; nothing of it is looked at.
Result<Bulk> measure_bulk(Way& way, const Line& line, Direction direction, double seconds,
                          const Settings& settings);

// Sends so many bytes in pieces of many sizes, and looks at every one that arrives.
Result<void> check_bytes(Way& way, const Line& line, Direction direction, std::size_t bytes,
                         const Settings& settings);

// Half of a round trip of `size` bytes, the median of so many, in microseconds; without a way straight from
// the process to the peer, whose connection is then the line's first two sockets.
Result<double> measure_latency(Way* way, const Line& line, std::size_t size, unsigned count,
                               const Settings& settings);

}  // namespace mcastcoll::ways
