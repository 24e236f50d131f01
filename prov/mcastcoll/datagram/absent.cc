#include "datagram/absent.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "datagram/refusal.h"

namespace mcastcoll::ofi::datagram {

void set_absent(fid_ep& endpoint) {
    static fi_ops_tagged tagged{sizeof(fi_ops_tagged),
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse};
    static fi_ops_rma rma{
        sizeof(fi_ops_rma), kRefuse, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse};
    static fi_ops_atomic atomic{sizeof(fi_ops_atomic),
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse,
                                kRefuse};
    static fi_ops_collective collective{sizeof(fi_ops_collective),
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse,
                                        kRefuse};
    endpoint.tagged = &tagged;
    endpoint.rma = &rma;
    endpoint.atomic = &atomic;
    endpoint.collective = &collective;
}

}  // namespace mcastcoll::ofi::datagram
