// Network addresses of a host, and the choice of the address that connects this host with every other host of
// a job.
//
// A provider sees only the addresses of its own host and can choose wrongly: docker0 has the same address on
// every host and claims to be faster than a network card, and a hello sent to this address returns to the
// sender. So every process publishes the addresses of its host, and each process computes its choice from all
// published addresses, without a message. Each process arrives at the same subnet.

#ifndef MCASTCOLL_MPI_CORE_ADDRESSES_H
#define MCASTCOLL_MPI_CORE_ADDRESSES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    kMccMaxAddresses = 8,     // published by each process
    kMccInterfaceBytes = 16,  // IFNAMSIZ
    kMccHostNameBytes = 32,   // longer names are cut
};

// Class of an address, best first.
typedef enum {
    kMccNetwork,
    kMccLink,         // link-local: usable on a single link only
    kMccInnerBridge,  // on a bridge without a network card: leads only to containers of the same host
} MccReach;

typedef struct {
    uint8_t family;  // 4 or 6
    uint8_t prefix;  // of the subnet, in bits
    uint8_t reach;
    uint8_t bytes[16];
    char interface[kMccInterfaceBytes];
} MccAddress;

typedef struct {
    uint64_t stack;  // digest of the network stack: boot of the kernel, and network namespace
    char host[kMccHostNameBytes];
    uint32_t count;
    MccAddress list[kMccMaxAddresses];  // best first, without the loopback
} MccAddresses;

// Reads the addresses of this process's network stack. `only` is the interface or address to use. If no local
// address matches `only`, `include` and `exclude` apply as in Open MPI's btl_tcp_if_include and
// btl_tcp_if_exclude: comma-separated interface names and subnets. NULL or "" means not given. A list that
// matches no local address is ignored.
void mcc_addresses_read(MccAddresses* own, const char* host, const char* only, const char* include,
                        const char* exclude);
typedef struct {
    MccAddress address;
    int64_t speed;  // Mbit/s; 0: unknown
} MccFound;
// Sorts the addresses found on this host, best first, and stores the first kMccMaxAddresses in `own`. Public
// for the tests.
void mcc_addresses_sort(MccAddresses* own, MccFound* found, size_t count);
// Returns whether a list of interface names and subnets names the address's interface, or a subnet that
// contains the address.
bool mcc_addresses_listed(const char* list, const MccAddress* address);

// Returns whether both hosts' addresses belong to one network stack. Containers may share a stack but have
// different host names.
bool mcc_addresses_same_stack(const MccAddresses* a, const MccAddresses* b);
// Chooses the addresses of host `self` that connect this host with every other host, from the addresses
// published by all hosts. Stores the addresses best first, in an order common to all hosts, and returns their
// number. If the number is 0, `reason` (kMccReasonBytes) has the cause, the same on every host, unless the
// job has a single host.
size_t mcc_addresses_choose(const MccAddresses* const* hosts, size_t count, size_t self,
                            MccAddress chosen[kMccMaxAddresses], char* reason);
// Checks the members' socket addresses (`width` bytes each) against the hosts on which the members run.
// Returns false if two hosts have the same address, or if a member has a loopback address although the
// members are on several hosts. The reason is the same on every member. Addresses of families other than IP
// pass.
bool mcc_addresses_distinct(const uint8_t* members, size_t width, const MccAddresses* const* hosts, int size,
                            char* reason);
// Compares the address with a socket address and ignores the port.
bool mcc_address_is(const MccAddress* address, const void* socket_address, size_t bytes);

#endif
