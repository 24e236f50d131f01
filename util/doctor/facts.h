// What the doctor has seen: of one host, and of all of them. Facts only: what they mean is judge.h's affair.
// What could not be looked at is a fact, too, with its reason, and never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace mcastcoll::doctor {

// What was seen, or why it was not.
template <typename T>
struct Look {
    std::optional<T> seen;
    std::string why_not;

    Look() = default;
    Look(T value) : seen(std::move(value)) {}
    static Look failed(std::string why) {
        Look look;
        look.why_not = std::move(why);
        return look;
    }
    explicit operator bool() const { return seen.has_value(); }
    const T& operator*() const { return *seen; }
};

struct Machine {
    std::string name, kernel;
    std::string boot;        // which running kernel: the same for all containers of a machine
    std::uint64_t host = 0;  // what the provider takes for one host; 0: shares memory with nobody
    std::uint64_t net_namespace = 0, pid_namespace = 0, user_namespace = 0, user = 0;
    std::string shm;          // the very folder that /dev/shm is
    unsigned cores = 0;       // that this process may use
    bool is_virtual = false;  // the processor says that it is
    std::string container;    // what says that this is one; empty: nothing
    Look<std::string> clock_source;
    std::vector<std::string> governors;  // of the cores, each once; none where the kernel scales no clocks
};

struct Libraries {
    std::string mcastcoll, libfabric;
    Look<std::string> provider;         // the file that libfabric has loaded
    std::string inner;                  // what it stands on here
    Look<std::string> openmpi;          // its version
    Look<bool> component;               // Open MPI finds it
    Look<std::string> mpich;            // its version
    Look<bool> interposer;              // the loader finds it by its name
    std::vector<std::string> settings;  // FI_MCASTCOLL_*, as NAME=VALUE
    std::string settings_error;         // what the provider says of them
    bool multicast = true;              // FI_MCASTCOLL_MULTICAST
    bool wants_verbs = false;           // FI_MCASTCOLL_TRANSPORT, or the inner provider
};

struct Network {
    std::string error;  // why there is none to multicast on
    std::string interface, address, subnet;
    int family = 4, ttl = 1;
    std::uint32_t mtu = 0;
    bool up = false, multicast = false, loopback = false;
    std::string driver;  // empty: the kernel names none
    Look<std::uint64_t> speed_mbit;
    Look<bool> segmentation, coalescing;  // of sending and receiving: the kernel's GSO and GRO
    Look<std::uint64_t> reverse_path;     // net.ipv4.conf.*.rp_filter: 1 is strict
    // Sockets.
    Look<std::uint64_t> rmem_max;
    std::uint64_t buffer_wanted = 0;   // FI_MCASTCOLL_RCVBUF
    std::uint64_t buffer_granted = 0;  // in the kernel's accounting, which doubles it
    bool buffer_forced = false;        // granted beyond rmem_max, to a privileged process
    std::uint64_t datagram_bytes = 0;  // the largest that is sent
    std::uint64_t window = 0;          // datagrams that a root may have under way
    std::string socket_error;          // why multicast sockets cannot be opened
    Look<bool> member;                 // the kernel lists the joined address
    std::string group;                 // the address that was tried
};

struct Memory {
    Look<std::uint64_t> shm_bytes, shm_free;
    std::uint64_t locked = 0;          // bytes that may be; UINT64_MAX: without limit
    std::uint64_t files = 0;           // descriptors that may be open
    Look<std::uint64_t> ptrace_scope;  // none where there is no Yama
    Look<bool> reads_neighbour;        // a process reads the memory of another one of this user
};

struct Rdma {
    std::vector<std::string> devices;
    Look<std::string> group;  // a UD multicast group was joined, on this device
};

struct Firewall {
    Look<bool> looked;
    // Rules that may drop multicasts of this interface, in nftables' words, and how each is taken away.
    struct Rule {
        std::string text, removal;
        bool names_multicast = false;  // it is about multicast and nothing else
        bool outgoing = false;
    };
    std::vector<Rule> rules;
};

struct Querier {
    Look<std::string> heard;  // the address that asked who listens; empty: nobody in this time
    double waited_s = 0;
};

// Real MPI-like operations through libfabric, on all hosts.
struct EndToEnd {
    std::string error;  // empty: a barrier and a broadcast were carried out, all bytes right
    unsigned members = 0;
    std::uint64_t multicast_sent = 0, multicast_heard = 0, repaired = 0;
    std::string warning;  // the provider's last one, where it failed
};

// Phases of a member's turn, each a stream of numbered datagrams.
enum class Phase : std::uint8_t { small, full, slow, medium, fast, burst, again };
inline constexpr std::size_t kPhases = 7;

struct Stream {
    Phase phase{};
    std::uint64_t datagrams = 0, bytes = 0;  // sent
    std::uint64_t mbit = 0;                  // that came of it
    std::string error;                       // of sending
};
struct Heard {
    unsigned from = 0;  // member
    Phase phase{};
    std::uint64_t datagrams = 0, duplicates = 0, late = 0;  // late: after one with a higher number
    std::uint64_t longest_gap = 0;                          // datagrams missing in a row
};

struct Host {
    Machine machine;
    Libraries libraries;
    Network network;
    Memory memory;
    Rdma rdma;
    Firewall firewall;
    Querier querier;
    std::optional<EndToEnd> end_to_end;
    bool speaks = false;  // for its host in the experiment: one member of each host does
    std::vector<Stream> sent;
    std::vector<Heard> heard;
    std::uint64_t overflows = 0;  // datagrams, or runs of them, that found its receive buffer full
};

// RFC 3376 and 3810.
inline constexpr unsigned kUsualQueryInterval_s = 125;

// Of all that were started, in their order; none: nothing was heard from it.
struct Crew {
    std::vector<std::optional<Host>> hosts;
    std::vector<std::string> names;  // empty: it only leads, and there is nothing to look at
    std::vector<std::string> gone;   // why nothing is heard from it any more; empty: something is
    std::uint64_t top_mbit = 0;      // of the fastest phase
    double wait_s = 0;
    unsigned query_interval_s = kUsualQueryInterval_s;  // of the network's querier, if there is one
};

std::string to_json(const Host& host);
Result<Host> parse_host(const std::string& text);
std::string to_json(const Crew& crew);

}  // namespace mcastcoll::doctor
