#include "datagram/fabric.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "datagram/completion_queue.h"
#include "datagram/counter.h"
#include "datagram/domain.h"
#include "datagram/event_queue.h"
#include "provider/guard.h"

namespace mcastcoll::ofi::datagram {

int Fabric::open(const fi_fabric_attr& attr, fid_fabric** fabric, void* context) {
    static fi_ops object_ops{sizeof(fi_ops), &close, kRefuse, kRefuse, kRefuse, kRefuse, kRefuse};
    static fi_ops_fabric ops{sizeof(fi_ops_fabric), &open_domain, kRefuse, &open_eq, kRefuse, &trywait,
                             &open_domain2};
    auto made = std::unique_ptr<Fabric>(new Fabric);
    made->fid_fabric::fid = {FI_CLASS_FABRIC, context, &object_ops};
    made->fid_fabric::ops = &ops;
    made->api_version = attr.api_version;
    *fabric = made.release();  // close() deletes it
    return 0;
}

int Fabric::close(Handle* object) noexcept {
    return guard([&] {
        Fabric& fabric = object_of<Fabric, fid_fabric>(object);
        if (fabric.users.any()) return -FI_EBUSY;
        delete &fabric;
        return 0;
    });
}

int Fabric::open_domain(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept {
    return guard([&] { return Domain::open(static_cast<Fabric&>(*fabric), info, domain, context); });
}

int Fabric::open_domain2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags,
                         void* context) noexcept {
    return flags != 0 ? -FI_EBADFLAGS : open_domain(fabric, info, domain, context);
}

int Fabric::open_eq(fid_fabric* fabric, fi_eq_attr* attr, fid_eq** eq, void* context) noexcept {
    return guard([&] { return EventQueue::open(static_cast<Fabric&>(*fabric), attr, eq, context); });
}

int Fabric::trywait(fid_fabric*, Handle** objects, int count) noexcept {
    return guard([&] {
        if (objects == nullptr || count < 0) return -FI_EINVAL;
        int answer = 0;
        // All of them are prepared, even if one has something already.
        for (int i = 0; i < count; ++i) {
            bool pending = false;
            if (EventQueue* eq = EventQueue::find(*objects[i]); eq != nullptr) {
                pending = eq->pending();
            } else if (CompletionQueue* cq = CompletionQueue::find(*objects[i]); cq != nullptr) {
                pending = cq->prepare_wait();
            } else if (Counter* counter = Counter::find(*objects[i]); counter != nullptr) {
                counter->prepare_wait();
            } else {
                return -FI_EINVAL;
            }
            if (pending) answer = -FI_EAGAIN;
        }
        return answer;
    });
}

}  // namespace mcastcoll::ofi::datagram
