// The calls that applications make on the fid_mc that fi_join_collective hands out for a group: fi_close(),
// and the public extension, mcastcoll/mcastcoll.h.
#include <rdma/fi_errno.h>

#include <cstring>

#include "ofi/group.h"
#include "ofi/station.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

int close_mc(fid* object) noexcept {
    Group& group = Group::of(*reinterpret_cast<fid_mc*>(object));
    return guard([&] { return group.station().close_group(group); });
}

// What there is to tell of a group that has joined.
template <typename Tell>
int ask(fid_mc* mc, const void* answer, Tell tell) noexcept {
    if (mc == nullptr || answer == nullptr) return -FI_EINVAL;
    const Group& group = Group::of(*mc);
    const auto lock = group.lock();
    return group.core().joined() ? guard([&] { return tell(group), 0; }) : -FI_EOPBADSTATE;
}

int get_settings(fid_mc* mc, fi_mcastcoll_group_settings* settings) noexcept {
    return ask(mc, settings, [&](const Group& group) {
        const GroupSettings& agreed = group.core().agreed();
        settings->repair = static_cast<int>(agreed.repair);
        settings->root_sync = static_cast<int>(agreed.root_sync);
        settings->root_delay_us = agreed.root_delay_us;
        settings->channels = agreed.channels;
    });
}

int get_shape(fid_mc* mc, fi_mcastcoll_group_shape* shape) noexcept {
    return ask(mc, shape, [&](const Group& group) {
        const levels::Placement& placement = group.core().levels().placement();
        shape->members = placement.members();
        shape->hosts = static_cast<unsigned>(placement.hosts());
        shape->sites = static_cast<unsigned>(placement.segments().size());
    });
}

int get_asked(fid_mc* mc, std::uint64_t* times) noexcept {
    return ask(mc, times, [&](const Group& group) {
        const engine::Engine* const engine = group.core().levels().engine();
        const engine::Counters counters = engine != nullptr ? engine->counters() : engine::Counters{};
        *times = counters.asks_received + counters.nacks_received;
    });
}

const char* advice(fid_mc* mc, const fi_mcastcoll_request* request) noexcept {
    const char* name = nullptr;
    ask(mc, request, [&](const Group& group) {
        fi_mcastcoll_request question = *request;  // without buffers, which may not be there yet
        question.input = question.buffer = &question;
        const auto made = make_request(question, group.token());
        if (!made) return;
        const auto decision = group.core().levels().planner().decide({made.value()});
        if (!decision.aside) name = levels::name_of(decision.choice.algorithm).data();
    });
    return name;
}

ssize_t run(fid_mc* mc, const fi_mcastcoll_request* request, int (*meanwhile)(void*),
            void* argument) noexcept {
    if (mc == nullptr || request == nullptr) return -FI_EINVAL;
    return guard([&] { return Group::of(*mc).run(*request, meanwhile, argument); });
}

int open_operations(fid*, const char* name, std::uint64_t flags, void** operations, void*) noexcept {
    static fi_mcastcoll_group_ops group_operations = {
        sizeof(fi_mcastcoll_group_ops), &get_settings, &run, &advice, &get_shape, &get_asked};
    if (name == nullptr || operations == nullptr || flags != 0) return -FI_EINVAL;
    if (std::strcmp(name, FI_MCASTCOLL_GROUP_OPS) != 0) return -FI_ENOSYS;
    *operations = &group_operations;
    return 0;
}

}  // namespace

void Group::open_fid() {
    static fi_ops operations = {sizeof(fi_ops), &close_mc, nullptr, nullptr, nullptr, nullptr, nullptr};
    // libfabric calls through every pointer it finds.
    operations.bind = [](fid*, fid*, std::uint64_t) { return -FI_ENOSYS; };
    operations.control = [](fid*, int, void*) { return -FI_ENOSYS; };
    operations.ops_open = &open_operations;
    handle_.fid.fid = {FI_CLASS_MC, plan_.context, &operations};
    handle_.fid.fi_addr = plan_.token;
    handle_.group = this;
}

}  // namespace mcastcoll::ofi
