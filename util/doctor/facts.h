// Observations of one host, and of all hosts. Facts only: judge.h interprets them. A failed observation is a
// fact, too, with its reason, and never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "look.h"

namespace mcastcoll::doctor {

struct Machine {
    std::string name, kernel;
    std::string boot;        // identifies the running kernel: the same for all containers of a machine
    std::uint64_t host = 0;  // the provider's host identifier; 0: shares memory with no other process
    std::uint64_t net_namespace = 0, pid_namespace = 0, user_namespace = 0, user = 0;
    std::string shm;          // identity of the folder /dev/shm
    unsigned cores = 0;       // available to this process
    bool is_virtual = false;  // reported by the processor
    std::string container;    // evidence of a container; empty: none
    Look<std::string> clock_source;
    std::vector<std::string> governors;  // of the cores, distinct; empty if the kernel scales no clocks
};

struct Libraries {
    std::string mcastcoll, libfabric;
    Look<std::string> provider;         // the file loaded by libfabric
    std::string inner;                  // the inner provider
    Look<std::string> openmpi;          // version
    Look<bool> component;               // found by Open MPI
    Look<std::string> mpich;            // version
    Look<bool> interposer;              // found by the loader
    std::vector<std::string> settings;  // FI_MCASTCOLL_*, as NAME=VALUE
    std::string settings_error;         // the provider's error message about the settings
    bool multicast = true;              // FI_MCASTCOLL_MULTICAST
    bool wants_verbs = false;           // FI_MCASTCOLL_MULTICAST, or the inner provider
};

struct Network {
    std::string error;  // why no interface is suitable for multicast
    std::string interface, address, subnet;
    int family = 4, ttl = 1;
    std::uint32_t mtu = 0;
    bool up = false, multicast = false, loopback = false;
    std::string driver;  // empty: the kernel names none
    Look<std::uint64_t> speed_mbit;
    Look<bool> segmentation, coalescing;  // of sending and receiving: the kernel's GSO and GRO
    Look<std::uint64_t> reverse_path;     // net.ipv4.conf.*.rp_filter: 1 is strict
    Look<std::uint64_t> rmem_max;
    std::uint64_t buffer_wanted = 0;   // FI_MCASTCOLL_RCVBUF
    std::uint64_t buffer_granted = 0;  // in the kernel's accounting, which doubles it
    bool buffer_forced = false;        // granted beyond rmem_max, to a privileged process
    std::uint64_t datagram_bytes = 0;  // of the largest datagram
    std::uint64_t window = 0;          // datagrams that a root may have in flight
    std::string socket_error;          // why multicast sockets cannot be opened
    Look<bool> member;                 // the kernel lists the joined address
    std::string group;                 // the tested address
};

struct Memory {
    Look<std::uint64_t> shm_bytes, shm_free;
    std::uint64_t locked = 0;          // limit of locked bytes; UINT64_MAX: no limit
    std::uint64_t files = 0;           // limit of open descriptors
    Look<std::uint64_t> ptrace_scope;  // empty without Yama
    Look<bool> reads_neighbour;        // a process can read the memory of another process of this user
};

struct Rdma {
    std::vector<std::string> devices;
    Look<std::string> group;  // the device on which a UD multicast group was joined
};

struct Firewall {
    Look<bool> looked;
    // Rules that may drop multicasts of this interface, in nftables syntax, each with a command to remove it.
    struct Rule {
        std::string text, removal;
        bool names_multicast = false;  // matches multicast only
        bool outgoing = false;
    };
    std::vector<Rule> rules;
};

struct Querier {
    Look<std::string> received;  // the address of a querier; empty: no query within the time
    double waited_s = 0;
};

// Collective operations through libfabric, on all hosts.
struct EndToEnd {
    std::string error;  // empty: a barrier and a broadcast succeeded, all bytes right
    unsigned members = 0;
    std::uint64_t multicast_sent = 0, multicast_received = 0, repaired = 0;
    std::string warning;  // the provider's last warning, after a failure
};

// Phases of a member's turn, each a stream of numbered datagrams.
enum class Phase : std::uint8_t { small, full, slow, medium, fast, burst, again };
inline constexpr std::size_t kPhases = 7;

struct Stream {
    Phase phase{};
    std::uint64_t datagrams = 0, bytes = 0;  // sent
    std::uint64_t mbit = 0;                  // achieved rate
    std::string error;                       // of sending
};
struct ReceivedStream {
    unsigned from = 0;  // member
    Phase phase{};
    std::uint64_t datagrams = 0, duplicates = 0, late = 0;  // late: after a datagram with a higher number
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
    bool sends = false;  // whether this member sends in the experiment: one member of each host does
    std::vector<Stream> sent;
    std::vector<ReceivedStream> received;
    std::uint64_t overflows = 0;  // datagrams, or runs of datagrams, lost at a full receive buffer
};

// The default interval of general queries (RFC 3376 and RFC 3810).
inline constexpr unsigned kUsualQueryInterval_s = 125;

// What all started members have observed, in the order of ranks; no facts of a member that did not report.
struct Facts {
    std::vector<std::optional<Host>> hosts;
    std::vector<std::string> names;  // empty: the head leads without taking part
    std::vector<std::string> gone;   // why the member is lost; empty: present
    std::uint64_t top_mbit = 0;      // of the fastest phase
    double wait_s = 0;
    unsigned query_interval_s = kUsualQueryInterval_s;  // of the network's querier
};

std::string to_json(const Host& host);
Result<Host> parse_host(const std::string& text);
std::string to_json(const Facts& facts);

}  // namespace mcastcoll::doctor
