#include "ofi/eq.h"

#include <rdma/fi_errno.h>

#include <memory>

#include "base/deadline.h"
#include "provider/fid_owner.h"
#include "provider/guard.h"
#include "provider/log.h"

namespace mcastcoll::ofi {

int Eq::open(Fabric& fabric, const fi_ops_fabric& inner_ops, fid_fabric& inner_fabric, fi_eq_attr* attr,
             fid_eq** eq, void* context) {
    if (attr == nullptr || eq == nullptr) return -FI_EINVAL;
    // As with completion queues (cq.cc).
    if (attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_FD) {
        log_line(Level::warn, "fi_eq_open: of wait objects there are FI_WAIT_NONE, _UNSPEC and _FD");
        return -FI_ENOSYS;
    }
    int rc = -FI_ENOSYS;
    if (attr->wait_obj == FI_WAIT_UNSPEC) {
        fi_eq_attr with_descriptor = *attr;
        with_descriptor.wait_obj = FI_WAIT_FD;
        rc = inner_ops.eq_open(&inner_fabric, &with_descriptor, eq, context);
        if (rc == 0) *attr = with_descriptor;
    }
    if (rc != 0) rc = inner_ops.eq_open(&inner_fabric, attr, eq, context);
    if (rc != 0) return rc;

    FidOwner<fid_eq> opened(*eq);  // closed if anything fails
    auto own = std::make_unique<Eq>(fabric, **eq);
    own->object_graft_.prepare((*eq)->fid.ops);
    own->eq_graft_.prepare((*eq)->ops);
    int descriptor = -1;
    if (attr->wait_obj == FI_WAIT_FD && fi_control(&(*eq)->fid, FI_GETWAIT, &descriptor) == 0) {
        if (!own->nest_.open(descriptor)) return -FI_EMFILE;
        if (const int added = fabric.add_nest(own->nest_); added != 0) return added;
    }
    own->install();
    opened.release();
    own.release();  // close() deletes it
    return 0;
}

void Eq::install() {
    fi_ops& object_ops = object_graft_.install(inner_.fid.ops, this);
    object_ops.close = &Eq::close;
    fi_ops_eq& ops = eq_graft_.install(inner_.ops, this);
    ops.read = &Eq::read;
    object_ops.control = &Eq::control;
    ops.sread = &Eq::sread;
}

Eq* Eq::find(fid& object) {
    if (object.fclass != FI_CLASS_EQ || object.ops->close != &Eq::close) return nullptr;
    return &Graft<fi_ops>::owner_of<Eq>(object.ops);
}

int Eq::close(fid* object) noexcept {
    return guard([&] {
        Eq& eq = Graft<fi_ops>::owner_of<Eq>(object->ops);
        eq.object_graft_.take_off();
        eq.eq_graft_.take_off();
        if (const int rc = fi_close(object); rc != 0) {
            eq.object_graft_.put_on();
            eq.eq_graft_.put_on();
            return rc;
        }
        if (eq.nest_.is_open()) eq.fabric_.remove_nest(eq.nest_);
        delete &eq;
        return 0;
    });
}

int Eq::control(fid* object, int command, void* argument) noexcept {
    Eq& eq = Graft<fi_ops>::owner_of<Eq>(object->ops);
    if (command != FI_GETWAIT) return eq.object_graft_.inner()->control(object, command, argument);
    return eq.nest_.get_wait(argument);
}

ssize_t Eq::read(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length,
                 std::uint64_t flags) noexcept {
    Eq& eq = of(*fid);
    if (eq.fabric_.active()) guard([&] { return eq.fabric_.progress_on_read(), 0; });
    return eq.eq_graft_.inner()->read(fid, event, buffer, length, flags);
}

bool Eq::inner_pending() {
    std::uint32_t event = 0;
    std::byte entry[512];
    return eq_graft_.inner()->sread(&inner_, &event, entry, sizeof entry, 1, FI_PEEK) != -FI_EAGAIN;
}

ssize_t Eq::read_blocking(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                          std::uint64_t flags) {
    if (!nest_.is_open()) return -FI_ENOSYS;
    const Deadline deadline(timeout);
    for (;;) {
        const ssize_t got = read(&inner_, event, buffer, length, flags);
        if (got != -FI_EAGAIN) return got;
        if (deadline.over()) return -FI_EAGAIN;
        const WaitNest::Sleeper sleeper(nest_);
        nest_.calm();
        if (fabric_.active() && !fabric_.prepare_wait()) continue;
        if (const int rc = fabric_.inner_trywait(inner_.fid); rc == -FI_EAGAIN)
            continue;
        else if (rc != 0)
            return rc;
        if (const int rc = nest_.sleep(deadline.left_ms()); rc != 0) return rc;
    }
}

ssize_t Eq::sread(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                  std::uint64_t flags) noexcept {
    return guard([&] { return of(*fid).read_blocking(event, buffer, length, timeout, flags); });
}

}  // namespace mcastcoll::ofi
