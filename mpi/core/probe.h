// Checks before a join whether datagrams from the other hosts reach the host of rank 0.
//
// A firewall drops datagrams silently. A join without any datagrams ends only by its timeout, because a slow
// member looks the same. This check relies on order instead of time: each host sends datagrams before its
// members send their next message through the MPI library. When rank 0 has received these messages from every
// member, the datagrams must have arrived as well.

#ifndef MCASTCOLL_MPI_CORE_PROBE_H
#define MCASTCOLL_MPI_CORE_PROBE_H

#include <stddef.h>
#include <stdint.h>

// Maximum number of hosts that are checked: the buffer of rank 0's socket may have no room for the datagrams
// of more hosts.
enum { kMccMaxProbed = 32 };

typedef struct {
    int socket;                // of rank 0; -1: there is no socket, and no check
    uint64_t group;            // distinguishes this probe from other groups' probes
    unsigned count;            // number of hosts, without rank 0's
    int ranks[kMccMaxProbed];  // the sender of each host
} MccProbe;

// Rank 0 opens a socket at its address, before any other member can know the address. No socket is opened if
// the address is not an IP address, or if the provider has a socket there from an earlier join.
void mcc_probe_open(MccProbe* probe, const void* address, size_t bytes);
// Called on every member: sends datagrams to rank 0 if this member is one of `ranks`.
void mcc_probe_send(const MccProbe* probe, int rank, const void* from, const void* to, size_t bytes);
// Called on rank 0: returns a member from which no datagram came, or -1, and closes the socket. Waits up to a
// second for missing datagrams, which may have taken another route than the messages.
int mcc_probe_missing(MccProbe* probe);
void mcc_probe_close(MccProbe* probe);

#endif
