// Fails each call of rdma-core in turn, on open, join, traffic, leave and close. Objects created before the
// failure must be destroyed afterwards, and open objects must continue to work.
//
// The functions below replace rdma-core's in this program, count objects created and destroyed, and fail on
// request.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "transport/verbs_address.h"
#include "verbs_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using namespace mcastcoll::transport;

// A macro around the function that this file replaces.
#undef ibv_reg_mr

TestSuite(verbs_failures, .timeout = 120);

namespace {

struct Faults {
    std::string name;                   // name of the function that fails
    int from = 0;                       // it fails from this call on; 0: never
    std::size_t max_memory = SIZE_MAX;  // bytes that may be locked at once
    bool refuse = false;                // the network refuses joins
    bool ignore = false;                // the network does not answer joins
    bool ends = false;                  // the network ends the latest membership, once
    bool manages = false;               // the network chooses addresses for joins without an address
    void* latest_join = nullptr;        // context of the latest join
    void* any_join = nullptr;           // context of the latest join without an address
    rdma_cm_event made_up{};
    std::map<std::string, int> calls, alive;
    ibv_qp* latest = nullptr;  // latest queue pair
};

Faults faults;

bool fails(const char* name) {
    const int call = ++faults.calls[name];
    if (faults.from == 0 || faults.name != name || call < faults.from) return false;
    errno = ENOMEM;
    return true;
}

template <typename Function>
Function next(const char* name) {
    void* const found = dlsym(RTLD_NEXT, name);
    // Calls a function of librdmacm not replaced by this file, so that the linker keeps the library.
    if (found == nullptr) {
        std::fprintf(stderr, "%s: %s\n", name, rdma_event_str(RDMA_CM_EVENT_ADDR_ERROR));
        abort();
    }
    return reinterpret_cast<Function>(found);
}

template <typename Object>
Object* made(const char* kind, Object* object) {
    if (object != nullptr) ++faults.alive[kind];
    return object;
}

int unmade(const char* kind, int result) {
    if (result == 0) --faults.alive[kind];
    return result;
}

void nothing_is_left() {
    for (const auto& [kind, count] : faults.alive)
        cr_assert_eq(count, 0, "%d of %s are left", count, kind.c_str());
}

SocketAddress of(const sockaddr& address) {
    return SocketAddress::from(&address, sizeof(sockaddr_in6)).value();
}

// The address that the simulated subnet manager gives a group.
SocketAddress assigned() {
    return SocketAddress::parse("ff12:a01b::7").value();
}

// Soft-RoCE's address of a group of the simulated subnet manager, because Soft-RoCE has none.
SocketAddress known_as(const sockaddr& address) {
    const SocketAddress group = of(address);
    if (faults.manages && group.is_wildcard()) return group_number(1000);
    return faults.manages && group == assigned() ? group_number(1001) : group;
}

constexpr const char* kOpening[] = {
    "rdma_create_event_channel", "rdma_create_id", "rdma_bind_addr", "ibv_query_device", "ibv_reg_mr",
    "ibv_create_comp_channel",   "ibv_create_cq",  "rdma_create_qp"};

}  // namespace

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
    if (fails("rdma_create_event_channel")) return nullptr;
    return made("event channel", next<decltype(&::rdma_create_event_channel)>("rdma_create_event_channel")());
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
    next<decltype(&::rdma_destroy_event_channel)>("rdma_destroy_event_channel")(channel);
    unmade("event channel", 0);
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space) {
    if (fails("rdma_create_id")) return -1;
    const int result = next<decltype(&::rdma_create_id)>("rdma_create_id")(channel, id, context, space);
    if (result == 0) made("identifier", *id);
    return result;
}
int rdma_destroy_id(rdma_cm_id* id) {
    return unmade("identifier", next<decltype(&::rdma_destroy_id)>("rdma_destroy_id")(id));
}
int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
    return fails("rdma_bind_addr") ? -1 : next<decltype(&::rdma_bind_addr)>("rdma_bind_addr")(id, address);
}
int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
    return fails("ibv_query_device")
               ? ENOMEM
               : next<decltype(&::ibv_query_device)>("ibv_query_device")(context, attributes);
}
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* at, size_t length, int access) {
    if (fails("ibv_reg_mr")) return nullptr;
    if (length > faults.max_memory) {
        errno = ENOMEM;
        return nullptr;
    }
    return made("memory",
                next<ibv_mr* (*)(ibv_pd*, void*, size_t, int)>("ibv_reg_mr")(domain, at, length, access));
}
int ibv_dereg_mr(ibv_mr* region) {
    return unmade("memory", next<decltype(&::ibv_dereg_mr)>("ibv_dereg_mr")(region));
}
ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    if (fails("ibv_create_comp_channel")) return nullptr;
    return made("completion channel",
                next<decltype(&::ibv_create_comp_channel)>("ibv_create_comp_channel")(context));
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
    return unmade("completion channel",
                  next<decltype(&::ibv_destroy_comp_channel)>("ibv_destroy_comp_channel")(channel));
}
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* mine, ibv_comp_channel* channel, int vector) {
    if (fails("ibv_create_cq")) return nullptr;
    return made("completion queue",
                next<decltype(&::ibv_create_cq)>("ibv_create_cq")(context, entries, mine, channel, vector));
}
int ibv_destroy_cq(ibv_cq* queue) {
    return unmade("completion queue", next<decltype(&::ibv_destroy_cq)>("ibv_destroy_cq")(queue));
}
int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* attributes) {
    if (fails("rdma_create_qp")) return -1;
    const int result = next<decltype(&::rdma_create_qp)>("rdma_create_qp")(id, domain, attributes);
    if (result == 0) faults.latest = made("queue pair", id->qp);
    return result;
}
void rdma_destroy_qp(rdma_cm_id* id) {
    next<decltype(&::rdma_destroy_qp)>("rdma_destroy_qp")(id);
    unmade("queue pair", 0);
}
int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
    return fails("ibv_modify_qp") ? ENOMEM
                                  : next<decltype(&::ibv_modify_qp)>("ibv_modify_qp")(pair, attributes, mask);
}
int rdma_join_multicast(rdma_cm_id* id, sockaddr* address, void* context) {
    if (fails("rdma_join_multicast")) return -1;
    if (faults.manages && of(*address).is_wildcard()) faults.any_join = context;
    faults.latest_join = context;
    SocketAddress known = known_as(*address);
    const int result =
        next<decltype(&::rdma_join_multicast)>("rdma_join_multicast")(id, known.data(), context);
    if (result == 0) made("membership", id);
    return result;
}
int rdma_leave_multicast(rdma_cm_id* id, sockaddr* address) {
    ++faults.calls["rdma_leave_multicast"];
    SocketAddress known = known_as(*address);
    return unmade("membership",
                  next<decltype(&::rdma_leave_multicast)>("rdma_leave_multicast")(id, known.data()));
}
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
    if (faults.ignore) {
        errno = EAGAIN;
        return -1;
    }
    if (std::exchange(faults.ends, false)) {
        faults.made_up = {};
        faults.made_up.event = RDMA_CM_EVENT_MULTICAST_ERROR;
        faults.made_up.status = -ENETRESET;
        faults.made_up.param.ud.private_data = faults.latest_join;
        *event = &faults.made_up;
        return 0;
    }
    const int result = next<decltype(&::rdma_get_cm_event)>("rdma_get_cm_event")(channel, event);
    if (result != 0 || (*event)->event != RDMA_CM_EVENT_MULTICAST_JOIN) return result;
    if (faults.refuse) {
        (*event)->event = RDMA_CM_EVENT_MULTICAST_ERROR;
        (*event)->status = -ENETUNREACH;
    }
    if (faults.any_join != nullptr && (*event)->param.ud.private_data == faults.any_join) {
        const Gid chosen = gid_of(assigned());
        std::memcpy(&(*event)->param.ud.ah_attr.grh.dgid, chosen.data(), chosen.size());
        faults.any_join = nullptr;
    }
    return result;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
    return event == &faults.made_up ? 0 : next<decltype(&::rdma_ack_cm_event)>("rdma_ack_cm_event")(event);
}
ibv_ah* ibv_create_ah(ibv_pd* domain, ibv_ah_attr* attributes) {
    if (fails("ibv_create_ah")) return nullptr;
    return made("address handle", next<decltype(&::ibv_create_ah)>("ibv_create_ah")(domain, attributes));
}
int ibv_destroy_ah(ibv_ah* address) {
    return unmade("address handle", next<decltype(&::ibv_destroy_ah)>("ibv_destroy_ah")(address));
}

}  // extern "C"

Test(verbs_failures, opening_fails_at_every_step) {
    const VerbsOptions options = options_of_device(0);
    nothing_is_left();
    for (const char* const name : kOpening) {
        for (const int from : {1, 2}) {
            faults.calls.clear();
            faults.name = name;
            faults.from = from;
            {
                const auto opened = open_verbs(options);
                cr_assert(from == 2 || !opened.ok(), "%s fails, and yet it opens", name);
                cr_assert_geq(faults.calls[name], 1, "%s is not called at all", name);
                if (!opened.ok()) cr_assert_not(opened.error().message.empty(), "%s", name);
            }
            nothing_is_left();
        }
    }
    faults.from = 0;
    const VerbsOwner after = open_or_fail(options);
    const Membership membership = join_or_fail(*after, group_number(0));
}

Test(verbs_failures, little_memory_makes_for_few_receives) {
    const VerbsOptions options = options_of_device(0);
    cr_assert_eq(open_or_fail(options)->receives(), options.receives);
    faults.max_memory = (options.receives / 4 + options.sends) * 5000;
    const VerbsOwner hub = open_or_fail(options);
    cr_assert_lt(hub->receives(), options.receives);
    cr_assert_geq(hub->receives(), 64);
    join_or_fail(*hub, group_number(0));
}

Test(verbs_failures, joining_fails_at_every_step_and_works_afterwards) {
    VerbsOptions options = options_of_device(0);
    options.join_timeout_ms = 300;
    {
        const VerbsOwner a = open_or_fail(options), b = open_or_fail(options_of_device(1));
        const SocketAddress group = group_number(0);
        const Membership of_b = join_or_fail(*b, group);
        for (const char* const name : {"rdma_join_multicast", "ibv_create_ah"}) {
            faults.calls.clear();
            faults.name = name;
            faults.from = 1;
            const auto joined = a->join(group);
            cr_assert_not(joined.ok(), "%s fails, and yet it joins", name);
            cr_assert_eq(joined.error().code, ENOMEM);
            cr_assert_not(a->has_joined(group));
            faults.from = 0;
        }
        faults.refuse = true;
        auto refused = a->join(group);
        cr_assert_not(refused.ok());
        cr_assert_eq(refused.error().code, ENETUNREACH, "%s", refused.error().message.c_str());
        faults.refuse = false;
        faults.ignore = true;
        auto unanswered = a->join(group);
        cr_assert_not(unanswered.ok());
        cr_assert_eq(unanswered.error().code, ETIMEDOUT, "%s", unanswered.error().message.c_str());
        faults.ignore = false;

        const Membership of_a = join_or_fail(*a, group);
        say(*b, group, "at last");
        cr_assert_eq(receive(*a, 1).size(), 1);
    }
    nothing_is_left();
}

// The network ends a membership, as when a subnet manager is replaced.
Test(verbs_failures, what_the_network_ends_is_joined_again) {
    {
        const VerbsOwner a = open_or_fail(options_of_device(0)), b = open_or_fail(options_of_device(1));
        const SocketAddress group = group_number(0);
        const Membership of_a = join_or_fail(*a, group), of_b = join_or_fail(*b, group);
        for (const bool first_fails : {false, true}) {
            faults.calls.clear();
            faults.name = "rdma_join_multicast";
            faults.from = first_fails ? 1 : 0;
            faults.ends = true;
            cr_assert(eventually([&] {
                b->prepare_wait();
                return faults.calls["rdma_join_multicast"] > 0;
            }));
            faults.from = 0;
            cr_assert_geq(faults.calls["rdma_leave_multicast"], 1);
            // A datagram sent before the answer is read is lost.
            cr_assert(eventually([&] {
                bool received = false;
                b->prepare_wait();
                say(*a, group, "again");
                b->receive(Nanoseconds{}, [&](Bytes, const SocketAddress&) { received = true; });
                return received;
            }));
            cr_assert_eq(faults.alive["membership"], 2);
            say(*b, group, "and back");
            cr_assert_eq(receive(*a, 1).size(), 1);
        }
    }
    nothing_is_left();
}

Test(verbs_failures, a_polling_caller_detects_the_end_too) {
    {
        const VerbsOwner a = open_or_fail(options_of_device(0));
        const Membership of_a = join_or_fail(*a, group_number(0));
        faults.calls.clear();
        faults.ends = true;
        for (int i = 0; i < 2000; ++i) a->receive(Nanoseconds{}, [](Bytes, const SocketAddress&) {});
        cr_assert_eq(faults.calls["rdma_join_multicast"], 1);
    }
    nothing_is_left();
}

Test(verbs_failures, a_subnet_manager_may_choose_the_address) {
    {
        const VerbsOwner a = open_or_fail(options_of_device(0)), b = open_or_fail(options_of_device(1));
        faults.manages = true;
        auto chosen = a->join_any();
        cr_assert(chosen.ok(), "%s", chosen.ok() ? "" : chosen.error().message.c_str());
        const Membership of_a = std::move(chosen).value();
        cr_assert(of_a.group() == assigned());
        cr_assert_eq(faults.alive["membership"], 1, "the first join is over");
        const Membership of_b = join_or_fail(*b, of_a.group());
        say(*a, of_a.group(), "any sender");
        cr_assert_eq(receive(*b, 1).size(), 1);
        // RoCE has no manager that chooses addresses.
        faults.manages = false;
        const auto refused = b->join_any();
        cr_assert_not(refused.ok());
        cr_assert_not(refused.error().message.empty());
        faults.manages = true;
    }
    nothing_is_left();
}

Test(verbs_failures, nothing_is_left_after_traffic) {
    {
        const VerbsOwner a = open_or_fail(options_of_device(0)), b = open_or_fail(options_of_device(1));
        for (std::uint32_t n = 0; n < 10; ++n) {
            const Membership of_b = join_or_fail(*b, group_number(n)),
                             of_a = join_or_fail(*a, group_number(n));
            for (unsigned i = 0; i < 20; ++i) say(*a, group_number(n), bytes_of(500, i));
            cr_assert_geq(receive(*b, 20).size(), 20);
        }
    }
    nothing_is_left();
}

namespace {

void spoil(ibv_qp* pair) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    cr_assert_eq(ibv_modify_qp(pair, &attributes, IBV_QP_STATE), 0);
}

bool gets_through(VerbsTransport& from, VerbsTransport& to, const SocketAddress& group) {
    const std::string text = "through";
    const Datagram datagram{std::as_bytes(std::span(text)), {}};
    bool received = false;
    return eventually([&] {
        from.send(std::span(&datagram, 1), {group, false});
        to.receive(Nanoseconds{}, [&](Bytes, const SocketAddress&) { received = true; });
        return received;
    });
}

}  // namespace

Test(verbs_failures, a_queue_pair_in_error_comes_back_with_its_groups) {
    {
        const VerbsOwner a = open_or_fail(options_of_device(0));
        ibv_qp* const of_a = faults.latest;
        const VerbsOwner b = open_or_fail(options_of_device(1));
        ibv_qp* const of_b = faults.latest;
        const SocketAddress group = group_number(0);
        const Membership one = join_or_fail(*a, group), other = join_or_fail(*b, group);
        for (ibv_qp* const pair : {of_b, of_a, of_a}) {
            cr_assert(gets_through(*a, *b, group));
            spoil(pair);
            // The sender detects the error; Soft-RoCE does not report it for receives.
            cr_assert(pair == of_a ? gets_through(*a, *b, group) : gets_through(*b, *a, group));
            cr_assert(pair == of_a ? gets_through(*b, *a, group) : gets_through(*a, *b, group));
        }
        cr_assert_eq(a->counters().revivals, 2);
        cr_assert_eq(b->counters().revivals, 1);
        const Membership later = join_or_fail(*a, group_number(1));
    }
    nothing_is_left();
}

Test(verbs_failures, what_does_not_come_back_says_so_and_closes) {
    {
        const VerbsOwner a = open_or_fail(options_of_device(0));
        const SocketAddress group = group_number(0);
        const Membership membership = join_or_fail(*a, group);
        spoil(faults.latest);
        faults.name = "ibv_modify_qp";
        faults.from = 1;
        faults.calls.clear();
        const std::string text = "lost";
        const Datagram datagram{std::as_bytes(std::span(text)), {}};
        int error = 0;
        cr_assert(eventually([&] {
            a->receive(Nanoseconds{}, [](Bytes, const SocketAddress&) {});
            error = a->send(std::span(&datagram, 1), {group, false}).error;
            return error != 0;
        }));
        cr_assert_eq(error, EIO);
        cr_assert_not(a->has_room());
        const auto joined = a->join(group_number(1));
        cr_assert_not(joined.ok());
        cr_assert_eq(joined.error().code, ENODEV);
        cr_assert(a->prepare_wait());
        // The number of retries is limited.
        for (int i = 0; i < 100; ++i) a->receive(Nanoseconds{}, [](Bytes, const SocketAddress&) {});
        const int tries = faults.calls["ibv_modify_qp"];
        for (int i = 0; i < 100; ++i) a->receive(Nanoseconds{}, [](Bytes, const SocketAddress&) {});
        cr_assert_eq(faults.calls["ibv_modify_qp"], tries);
        faults.from = 0;
    }
    nothing_is_left();
}
