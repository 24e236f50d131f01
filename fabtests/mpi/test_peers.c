// Tests that the core of the MPI front ends inserts each address into the address vector once, for many
// addresses.
#include <criterion/criterion.h>
#include <string.h>

#include "core/provider.h"

enum { kMembers = 65536 };

static unsigned inserted;
static int refused;  // error of the address vector when full

static int insert(struct fid_av* av, const void* address, size_t count, fi_addr_t* at, uint64_t flags,
                  void* context) {
    (void)av, (void)address, (void)count, (void)flags, (void)context;
    if (0 != refused) return refused;
    *at = inserted++;
    return 1;
}

static struct fi_ops_av ops = {.size = sizeof(ops), .insert = insert};
static struct fid_av vector = {.ops = &ops};
static MccProvider provider;

static int find(uint32_t member, fi_addr_t* at) {
    uint8_t bytes[16] = {10, 93};
    memcpy(bytes + 8, &member, sizeof(member));
    return mcc_peer(&provider, bytes, at);
}

static void open_it(void) {
    inserted = 0;
    refused = 0;
    provider = (MccProvider){.av = &vector, .address_bytes = 16};
}

static void close_it(void) {
    provider.av = NULL;
    mcc_provider_close(&provider);
    cr_assert_null(provider.peers);
}

Test(peers, many_are_named_alike_by_all_groups, .init = open_it, .fini = close_it, .timeout = 20) {
    for (int group = 0; group < 4; ++group)
        for (uint32_t member = 0; member < kMembers; ++member) {
            fi_addr_t at = FI_ADDR_NOTAVAIL;
            cr_assert(0 == find(member, &at) && member == at);
        }
    cr_assert_eq(inserted, kMembers);
}

Test(peers, a_refused_address_is_inserted_later, .init = open_it, .fini = close_it) {
    fi_addr_t at = 0;
    cr_assert_eq(find(0, &at), 0);
    refused = -FI_ENOSPC;
    cr_assert_eq(find(1, &at), FI_ENOSPC);
    cr_assert(0 == find(0, &at) && 0 == at);
    refused = 0;
    cr_assert(0 == find(1, &at) && 1 == at);
}
