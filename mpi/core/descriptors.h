// File descriptors: the provider takes some forty of a process, and whatever else needs one when none is left
// may abort the program, MPI and libfabric first. So nothing is opened unless enough are left for all.
#ifndef MCASTCOLL_MPI_CORE_DESCRIPTORS_H
#define MCASTCOLL_MPI_CORE_DESCRIPTORS_H

#include <stdbool.h>

// To open the provider in a job of so many processes: what the provider takes, and one for MPI's own
// connection to each of the first few hundred processes.
unsigned mcc_descriptors_to_open(int processes);
// For one group more.
enum { kMccDescriptorsOfGroup = 24 };
// Whether this process may open so many more. If not, a reason of kMccReasonBytes at most.
bool mcc_descriptors_left(unsigned wanted, char* reason);

#endif
