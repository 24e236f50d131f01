// Finds the place of this process from the user's settings, the subnet of its own address, the host's
// identity, and hwloc.
#pragma once

#include "base/file_descriptor.h"
#include "topology/override.h"

namespace mcastcoll::topology {

// Reads the value of FI_MCASTCOLL_TOPOLOGY: words, or a file if it starts with "/", "./", "../" or "file:".
Result<Override> read_override(const std::string& value);

struct Discovery {
    Place place;
    std::vector<std::string> notes;  // for the log: the unknown parts and why
    std::string no_memory;           // why this process cannot share memory with others; empty if it can
};

// Finds the place of this process. `address`: the 4 or 16 bytes of the process's own address, or empty. Never
// fails: unknown parts are left out and noted. The host is queried at the first call only; later calls cost
// microseconds.
Discovery discover(const Override& override, Bytes address);

// Identifies the host of a process: processes with equal identities can share memory and can detect each
// other's death. A name or an address guarantees neither, least of all in containers.
struct HostIdentity {
    // The boot id, which identifies a running kernel. The machine's name or id does not: images and clones of
    // a machine share it.
    std::string boot;
    // Process ids mean the same processes within one namespace only. A peer's death is detected and its
    // memory is read by process id.
    std::uint64_t pid_namespace = 0;
    // 127.0.0.1 and abstract sockets lead to the same processes within one namespace only. Virtual hosts on
    // one machine may differ in this namespace only.
    std::uint64_t net_namespace = 0;
    // User ids mean the same users within one namespace only.
    std::uint64_t user_namespace = 0;
    // The file system of the shared memory, /dev/shm: every tmpfs mount has its own device number, and if a
    // directory of a tmpfs is bind-mounted there, its inode differs from that of the tmpfs's root.
    std::uint64_t shm_device = 0;
    std::uint64_t shm_inode = 0;
    // Shared memory segments are private to their user, and only the same user may read a process's memory.
    std::uint32_t user = 0;
};

// Fails if /proc or /dev/shm cannot be read: such a process shares no memory.
Result<HostIdentity> read_host_identity();
// Returns a number that is the same for equal identities only, never 0.
std::uint64_t host_id(const HostIdentity& identity);
// The host's name up to the first dot.
std::string host_name();

// Reads an open file of at most this many bytes. `name` is for error messages.
Result<std::string> read_text(const FileDescriptor& file, const std::string& name, std::size_t max);

}  // namespace mcastcoll::topology
