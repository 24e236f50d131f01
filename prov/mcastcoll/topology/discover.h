// Where this process is: what the user says, else its own address's subnet, the host's identity, and what
// hwloc sees of the machine.
#pragma once

#include "base/file_descriptor.h"
#include "topology/override.h"

namespace mcastcoll::topology {

// Reads FI_MCASTCOLL_TOPOLOGY's value: words, or a file when it begins with "/", "./", "../" or "file:".
Result<Override> read_override(const std::string& value);

struct Discovery {
    Place place;
    std::vector<std::string> notes;  // what could not be found out, and why, for the log
    std::string no_memory;           // why this process shares no memory with others; empty where it can
};

// `address`: the 4 or 16 bytes of the process's own address, or none. Never fails: what cannot be found out
// is left out, and noted. The host is looked at once in a process; after that a call costs microseconds.
Discovery discover(const Override& override, Bytes address);

// Which processes may be told that they are on the same host: those that can share memory and can see each
// other live and die. A name or an address says neither, least of all in containers.
struct HostIdentity {
    // One running kernel. Not the machine's name or id, which images and clones share.
    std::string boot;
    // Process numbers mean the same: a neighbour's death is watched by its number, and its memory read by it.
    std::uint64_t pid_namespace = 0;
    // 127.0.0.1 and abstract sockets mean the same; virtual hosts on one machine differ in nothing else.
    std::uint64_t net_namespace = 0;
    // User numbers mean the same.
    std::uint64_t user_namespace = 0;
    // The very file system that shared memory lives in: every mount of a tmpfs has a device number of its
    // own, and a folder of another one that is mounted here another inode.
    std::uint64_t shm_device = 0;
    std::uint64_t shm_inode = 0;
    // Segments are private to their user, and so is reading another process's memory.
    std::uint32_t user = 0;
};

// An error where /proc or /dev/shm does not tell: such a process shares memory with nobody.
Result<HostIdentity> read_host_identity();
// The same for equal identities only, never 0.
std::uint64_t host_id(const HostIdentity& identity);
// What to call this host: its name up to the first dot.
std::string host_name();

// All that is in an open file, if it is not more than so many bytes. `name` is for complaints.
Result<std::string> read_text(const FileDescriptor& file, const std::string& name, std::size_t most);

}  // namespace mcastcoll::topology
