// Simulated device memory, for tests on machines without an accelerator. The program has addresses at which
// any access faults; the bytes are at an alias, a fixed distance behind. A copy that bypasses the accelerator
// faults, and the trace of the fault names the copy; a system call on such an address fails with EFAULT.
//
// The addresses are the same in all processes and libraries, so the simulated accelerator
// (mca_accelerator_mccfake.c, or MPI_Pack in mpi_pmpi_device.c) can recognise them without the program's
// help.

#ifndef MCASTCOLL_FABTESTS_MPI_DEVICE_H
#define MCASTCOLL_FABTESTS_MPI_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

// Below the addresses that AddressSanitizer's allocator uses (0x600000000000).
#define MCC_DEVICE_FIRST UINT64_C(0x200000000000)
#define MCC_DEVICE_BYTES (UINT64_C(1) << 38)

static inline bool is_device(const void* at) {
    return (uintptr_t)at - MCC_DEVICE_FIRST < MCC_DEVICE_BYTES;
}

// Returns the address at which the bytes are accessible; for host memory the address itself.
static inline void* device_alias(const void* at) {
    return (void*)((uintptr_t)at + (is_device(at) ? MCC_DEVICE_BYTES : 0));
}

static inline void device_copy(void* to, const void* from, size_t bytes) {
    memmove(device_alias(to), device_alias(from), bytes);
}

// The program's allocator of device memory. It never returns an address twice, so late copies fault, too.
typedef struct {
    uint64_t next;
} Device;

static inline bool device_open(Device* d) {
    d->next = MCC_DEVICE_FIRST;
    return MAP_FAILED != mmap((void*)MCC_DEVICE_FIRST, 2 * MCC_DEVICE_BYTES, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

enum { kDevicePage = 65536 };  // a multiple of every machine's page size; also the size of an empty buffer

static inline size_t device_room(size_t bytes) {
    return (bytes / kDevicePage + 1) * kDevicePage;
}

static inline void* device_take(Device* d, size_t bytes) {
    void* at = (void*)d->next;
    const size_t room = device_room(bytes);
    if (d->next - MCC_DEVICE_FIRST + room > MCC_DEVICE_BYTES) return NULL;
    if (0 != mprotect(device_alias(at), room, PROT_READ | PROT_WRITE)) return NULL;
    d->next += room;
    return at;
}

static inline void device_give(void* at, size_t bytes) {
    void* alias = device_alias(at);
    (void)madvise(alias, device_room(bytes), MADV_DONTNEED);
    (void)mprotect(alias, device_room(bytes), PROT_NONE);
}

#endif
