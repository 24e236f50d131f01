// The addresses met so far. A process that is a member of several communicators is put into the provider's
// address vector once, so that all its groups name it alike.

#include <stdlib.h>
#include <string.h>

#include "pmpi.h"

int pmpi_address(const uint8_t* bytes, fi_addr_t* address) {
    const size_t width = pmpi.provider.address_bytes;
    for (size_t i = 0; i < pmpi.peer_count; ++i) {
        if (0 != memcmp(pmpi.peer_bytes + i * width, bytes, width)) continue;
        *address = pmpi.peers[i];
        return 0;
    }
    if (pmpi.peer_count == pmpi.peer_room) {
        const size_t room = 0 == pmpi.peer_room ? 64 : 2 * pmpi.peer_room;
        fi_addr_t* peers = realloc(pmpi.peers, room * sizeof(*peers));
        if (NULL == peers) return FI_ENOMEM;
        pmpi.peers = peers;
        uint8_t* peer_bytes = realloc(pmpi.peer_bytes, room * width);
        if (NULL == peer_bytes) return FI_ENOMEM;
        pmpi.peer_bytes = peer_bytes;
        pmpi.peer_room = room;
    }
    const int rc = fi_av_insert(pmpi.provider.av, bytes, 1, address, 0, NULL);
    if (1 != rc) return rc < 0 ? -rc : FI_EADDRNOTAVAIL;
    pmpi.peers[pmpi.peer_count] = *address;
    memcpy(pmpi.peer_bytes + pmpi.peer_count * width, bytes, width);
    ++pmpi.peer_count;
    return 0;
}

void pmpi_peers_close(void) {
    free(pmpi.peers);
    free(pmpi.peer_bytes);
    pmpi.peers = NULL;
    pmpi.peer_bytes = NULL;
    pmpi.peer_count = pmpi.peer_room = 0;
}
