// Whether datagrams of the other hosts reach rank 0's, which a join needs.
//
// Why it exists: a firewall drops datagrams without a word, and a join that gets nothing through ends by its
// timeout only, since a slow member must not be taken for such a one. Here order decides, not time: each host
// sends datagrams before its members' next message of the MPI library; when rank 0 has all of these, the
// datagrams must have come as well.

#ifndef MCASTCOLL_MPI_CORE_PROBE_H
#define MCASTCOLL_MPI_CORE_PROBE_H

#include <stddef.h>
#include <stdint.h>

// More hosts are not looked at: their datagrams would not fit into a socket's buffer.
enum { kMccMaxProbed = 32 };

typedef struct {
    int socket;                // rank 0's; -1: nothing is received
    uint64_t group;            // what tells this use from others
    unsigned count;            // hosts other than rank 0's
    int ranks[kMccMaxProbed];  // the member that sends, of each
} MccProbe;

// Rank 0, before any member can know its address: opens a socket there. There is none where the address is
// not an IP address, or the provider has its own socket there, since it has joined a group before.
void mcc_probe_open(MccProbe* probe, const void* address, size_t bytes);
// Any member: sends to rank 0 if it is one of `ranks`.
void mcc_probe_send(const MccProbe* probe, int rank, const void* from, const void* to, size_t bytes);
// Rank 0: which member's datagrams have not come, or -1. They are waited for a little, as they may have taken
// another way. Closes the socket.
int mcc_probe_missing(MccProbe* probe);
void mcc_probe_close(MccProbe* probe);

#endif
