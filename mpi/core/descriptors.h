// File descriptors. The provider takes about forty per process. A library that finds no free descriptor may
// abort the program, MPI and libfabric first. So the provider is opened, and a group formed, only if enough
// descriptors are left.
#ifndef MCASTCOLL_MPI_CORE_DESCRIPTORS_H
#define MCASTCOLL_MPI_CORE_DESCRIPTORS_H

#include <stdbool.h>

// Descriptors needed to open the provider in a job of `processes` processes: for the provider, and for MPI's
// own connections, one to each of the first 256 processes.
unsigned mcc_descriptors_to_open(int processes);
enum { kMccDescriptorsOfGroup = 24 };  // needed to form a group
// Returns whether this process may open `wanted` more descriptors. If not, `reason` (kMccReasonBytes) has the
// cause.
bool mcc_descriptors_left(unsigned wanted, char* reason);

#endif
