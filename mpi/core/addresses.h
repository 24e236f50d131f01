// The addresses of a process's host, and which of them connects it with the hosts of all others.
//
// Why it exists: a provider's own choice looks at one host alone. docker0 has the same address on every host
// and claims to be faster than a network card: a greeting to it reaches the sender itself. So every process
// publishes the addresses of its host, and each chooses by what all have published, without a message: all
// come to the same subnet.

#ifndef MCASTCOLL_MPI_CORE_ADDRESSES_H
#define MCASTCOLL_MPI_CORE_ADDRESSES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    kMccMaxAddresses = 8,     // that a process publishes
    kMccInterfaceBytes = 16,  // IFNAMSIZ
    kMccHostNameBytes = 32,   // what is longer is cut
};

// Best first.
typedef enum {
    kMccNetwork,
    kMccLink,         // link-local: good on one link only
    kMccInnerBridge,  // of a bridge without a network card: leads to containers of the same host
} MccReach;

typedef struct {
    uint8_t family;  // 4 or 6
    uint8_t prefix;  // bits of its subnet
    uint8_t reach;
    uint8_t bytes[16];
    char interface[kMccInterfaceBytes];
} MccAddress;

typedef struct {
    uint64_t stack;  // a digest of the network stack: its kernel's boot and its namespace
    char host[kMccHostNameBytes];
    uint32_t count;
    MccAddress list[kMccMaxAddresses];  // best first, without the loopback
} MccAddresses;

// The addresses of this process's network stack. `only`, if there is such a one here, is the interface or
// address to use; else `include` and `exclude` are as Open MPI's btl_tcp_if_include and btl_tcp_if_exclude:
// comma-separated names and subnets. NULL or "": not given. A list that fits nothing here is ignored.
void mcc_addresses_read(MccAddresses* own, const char* host, const char* only, const char* include,
                        const char* exclude);
// Puts what getifaddrs() and the kernel told into order, and cuts it (for the tests).
typedef struct {
    MccAddress address;
    int64_t speed;  // Mbit/s; 0: it is not known
} MccFound;
void mcc_addresses_sort(MccAddresses* own, MccFound* found, size_t count);
// Whether a list as above has the interface, or a subnet with the address.
bool mcc_addresses_listed(const char* list, const MccAddress* address);

// One network stack, though perhaps seen from containers with names of their own.
bool mcc_addresses_same_stack(const MccAddresses* a, const MccAddresses* b);
// By what all hosts have published, in an order that is the same for all: the addresses of host `self` that
// connect it with all others, best first. 0 where there is none: then there is a reason, of kMccReasonBytes
// and the same on all, unless all hosts are one.
size_t mcc_addresses_choose(const MccAddresses* const* hosts, size_t count, size_t self,
                            MccAddress chosen[kMccMaxAddresses], char* reason);
// What the members are found at (socket addresses, `width` bytes each), with the host of each: false with a
// reason, the same on all, where two hosts have one address, or one of several hosts its loopback's. Other
// addresses than IP's are right.
bool mcc_addresses_distinct(const uint8_t* members, size_t width, const MccAddresses* const* hosts, int size,
                            char* reason);
// Whether the socket address is this one; its port does not matter.
bool mcc_address_is(const MccAddress* address, const void* socket_address, size_t bytes);

#endif
