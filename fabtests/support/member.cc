#include "support/member.h"

#include <rdma/fi_cm.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

namespace mcastcoll::fabtest {
namespace {

void must(long result, const char* what) {
    if (result < 0) fail("{} returned {}", what, describe(result));
}

constexpr std::size_t kQueueEntries = 1024;
// Polls without an entry before a waiting member sleeps; about a millisecond on a free processor.
constexpr unsigned kYields = 1000;

// Picks this member's entry from a comma-separated list; members take the entries in turns.
std::string dealt(const std::string& list, unsigned rank) {
    const auto commas = static_cast<unsigned>(std::count(list.begin(), list.end(), ','));
    std::size_t begin = 0;
    for (unsigned skip = rank % (commas + 1); skip > 0; --skip) begin = list.find(',', begin) + 1;
    return list.substr(begin, list.find(',', begin) - begin);
}

}  // namespace

Member::Member(const Options& options, Board& board, unsigned rank, unsigned size, const Opening& opening)
    : options_(options), board_(board), rank_(rank), size_(size) {
    stage("opening the endpoint");
    open_fabric(opening);
    open_endpoint(opening);
    stage("exchanging addresses");
    exchange_addresses(opening);
    stage("in the case");
}

Member::~Member() {
    // While an exception unwinds, the stage of the failure is kept: the failure is more interesting than the
    // cleanup.
    if (std::uncaught_exceptions() == 0) stage("closing the endpoint");
}

void Member::stage(const char* literal) {
    board_.places[rank_].stage = literal;
}

void Member::open_fabric(const Opening& opening) {
    const std::unique_ptr<fi_info, decltype(&fi_freeinfo)> hints(fi_allocinfo(), &fi_freeinfo);
    CHECK(hints != nullptr);
    hints->caps = FI_MSG | FI_COLLECTIVE | opening.more_caps;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = 0;
    hints->domain_attr->av_type = opening.av_type;
    hints->domain_attr->threading = opening.threading;
    hints->domain_attr->control_progress = hints->domain_attr->data_progress = opening.progress;
    hints->fabric_attr->prov_name = strdup(options_.provider.c_str());
    if (opening.successor) {
        const Board::Place& own = board_.places[rank_];
        hints->src_addrlen = own.address_bytes;
        hints->src_addr = std::malloc(hints->src_addrlen);
        CHECK(hints->src_addr != nullptr);
        std::memcpy(hints->src_addr, own.address.data(), hints->src_addrlen);
        const auto family = static_cast<const sockaddr*>(hints->src_addr)->sa_family;
        hints->addr_format = family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    }
    const bool named = !opening.successor && !options_.address.empty() && options_.provider != "shm" &&
                       options_.inner != "shm";
    const std::string address = dealt(options_.address, rank_);
    fi_info* found = nullptr;
    const int result = fi_getinfo(FI_VERSION(1, 17), named ? address.c_str() : nullptr, nullptr,
                                  named ? FI_SOURCE : 0, hints.get(), &found);
    if (result == -FI_ENODATA) fail("no provider {} with FI_COLLECTIVE is to be had", options_.provider);
    must(result, "fi_getinfo");
    info_.reset(found);

    fid_fabric* fabric = nullptr;
    must(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = opening.event_wait;
    fid_eq* eq = nullptr;
    must(fi_eq_open(fabric, &eq_attr, &eq, nullptr), "fi_eq_open");
    eq_.reset(eq);
    fid_domain* domain = nullptr;
    must(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
    domain_.reset(domain);
}

void Member::open_endpoint(const Opening& opening) {
    fi_av_attr av_attr{};
    av_attr.type = opening.av_type;
    av_attr.count = size_;
    fid_av* av = nullptr;
    must(fi_av_open(domain(), &av_attr, &av, nullptr), "fi_av_open");
    av_.reset(av);
    fi_cq_attr cq_attr{};
    cq_attr.size = kQueueEntries;
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    cq_attr.wait_obj = opening.queue_wait;
    fid_cq* cq = nullptr;
    must(fi_cq_open(domain(), &cq_attr, &cq, nullptr), "fi_cq_open");
    cq_.reset(cq);
    fid_ep* ep = nullptr;
    must(fi_endpoint(domain(), info_.get(), &ep, nullptr), "fi_endpoint");
    ep_.reset(ep);
    must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind of the address vector");
    must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the completion queue");
    must(fi_ep_bind(ep, &eq_->fid, 0), "fi_ep_bind of the event queue");
    must(fi_enable(ep), "fi_enable");
}

void Member::exchange_addresses(const Opening& opening) {
    if (!opening.successor) {
        Board::Place& own = board_.places[rank_];
        std::size_t bytes = own.address.size();
        must(fi_getname(&ep_->fid, own.address.data(), &bytes), "fi_getname");
        own.address_bytes = bytes;
        meet();
    }
    for (unsigned i = 0; i < size_; ++i) {
        fi_addr_t address = FI_ADDR_UNSPEC;
        if (fi_av_insert(av(), board_.places[i].address.data(), 1, &address, 0, nullptr) != 1)
            fail("fi_av_insert refused the address of member {}", i);
        addresses_.push_back(address);
    }
    if (!opening.successor) meet();
}

Fid<fid_av_set> Member::all_members() {
    fi_av_set_attr attr{};
    attr.count = size_;
    attr.start_addr = address_of(0);
    attr.end_addr = address_of(size_ - 1);
    attr.stride = 1;
    fid_av_set* set = nullptr;
    must(fi_av_set(av(), &attr, &set, nullptr), "fi_av_set");
    return Fid<fid_av_set>(set);
}

Fid<fid_av_set> Member::empty_set() {
    fi_av_set_attr attr{};
    attr.count = size_;
    attr.start_addr = FI_ADDR_NOTAVAIL;
    attr.end_addr = FI_ADDR_NOTAVAIL;
    fid_av_set* set = nullptr;
    must(fi_av_set(av(), &attr, &set, nullptr), "fi_av_set of an empty set");
    return Fid<fid_av_set>(set);
}

// Returns a set of these ranks. libfabric's own sets start with at least one address, hence the detour for
// other providers.
Fid<fid_av_set> Member::set_of(const std::vector<unsigned>& ranks) {
    Fid<fid_av_set> set;
    if (options_.is_mcastcoll()) {
        set = empty_set();
    } else {
        set = all_members();
        for (unsigned i = 0; i < size_; ++i)
            must(fi_av_set_remove(set.get(), address_of(i)), "fi_av_set_remove");
    }
    for (const unsigned rank : ranks) must(fi_av_set_insert(set.get(), address_of(rank)), "fi_av_set_insert");
    return set;
}

std::unique_ptr<Join> Member::start_join(const fid_av_set* set, fi_addr_t collective_address) {
    auto joining = std::make_unique<Join>();
    if (collective_address == FI_ADDR_NOTAVAIL && !options_.is_mcastcoll()) {
        // libfabric's own collectives require the set's address.
        must(fi_av_set_addr(const_cast<fid_av_set*>(set), &collective_address), "fi_av_set_addr");
    }
    fid_mc* mc = nullptr;
    must(fi_join_collective(ep(), collective_address, set, 0, &mc, joining.get()), "fi_join_collective");
    joining->mc.reset(mc);
    open_joins_.insert(joining.get());
    joined_.erase(joining.get());  // an earlier join at the same address may be in the set
    return joining;
}

void Member::finish(Join& join) {
    wait_until("the join's FI_JOIN_COMPLETE", [&] { return join.done; });
    if (join.error != 0) fail("the join ended with error {}", describe(-join.error));
}

Ticket& Member::start(const char* what, const std::function<long(Ticket*)>& call) {
    Ticket& ticket = new_ticket();
    const Clock::time_point deadline = Clock::now() + std::chrono::seconds(options_.wait_s);
    for (;;) {
        const long result = call(&ticket);
        if (result == 0) return ticket;
        if (result != -FI_EAGAIN) fail("{} returned {}", what, describe(result));
        if (Clock::now() > deadline) fail("{} returned -FI_EAGAIN for {} s", what, options_.wait_s);
        if (!progress()) sched_yield();
    }
}

Ticket& Member::broadcast(const Join& group, void* buffer, std::size_t bytes, fi_addr_t root) {
    return broadcast(group, buffer, bytes, root, FI_UINT8);
}

Ticket& Member::broadcast(const Join& group, void* buffer, std::size_t count, fi_addr_t root,
                          fi_datatype datatype) {
    return start("fi_broadcast", [&](Ticket* ticket) {
        return fi_broadcast(ep(), buffer, count, nullptr, group.address(), root, datatype, 0, ticket);
    });
}

Ticket& Member::barrier(const Join& group, std::uint64_t flags) {
    return start("fi_barrier",
                 [&](Ticket* ticket) { return fi_barrier2(ep(), group.address(), flags, ticket); });
}

Ticket& Member::allreduce(const Join& group, const void* input, void* result, std::size_t count,
                          fi_datatype datatype, fi_op op) {
    return start("fi_allreduce", [&](Ticket* ticket) {
        return fi_allreduce(ep(), input, count, nullptr, result, nullptr, group.address(), datatype, op, 0,
                            ticket);
    });
}

Ticket& Member::reduce(const Join& group, const void* input, void* result, std::size_t count, fi_addr_t root,
                       fi_datatype datatype, fi_op op) {
    return start("fi_reduce", [&](Ticket* ticket) {
        return fi_reduce(ep(), input, count, nullptr, result, nullptr, group.address(), root, datatype, op, 0,
                         ticket);
    });
}

Ticket& Member::allgather(const Join& group, const void* input, void* result, std::size_t count,
                          fi_datatype datatype) {
    return start("fi_allgather", [&](Ticket* ticket) {
        return fi_allgather(ep(), input, count, nullptr, result, nullptr, group.address(), datatype, 0,
                            ticket);
    });
}

Ticket& Member::new_ticket() {
    Ticket& ticket = tickets_.emplace_back();
    open_tickets_.insert(&ticket);
    return ticket;
}

void Member::drop(Ticket& ticket) {
    open_tickets_.erase(&ticket);
}

void Member::finish(Ticket& ticket) {
    settle(ticket);
    if (ticket.error != 0) fail("the operation ended with error {}", describe(-ticket.error));
    if (options_.is_mcastcoll() && (ticket.flags & FI_COLLECTIVE) == 0)
        fail("the completion lacks the flag FI_COLLECTIVE");
}

void Member::settle(Ticket& ticket) {
    wait_until("an operation's completion", [&] { return ticket.done; });
}

bool Member::settle(Ticket& ticket, std::chrono::milliseconds limit) {
    return wait_until(limit, [&] { return ticket.done; });
}

void Member::take(const fi_cq_tagged_entry& entry) {
    auto* ticket = static_cast<Ticket*>(entry.op_context);
    if (open_tickets_.erase(ticket) != 1)
        fail("a completion with the context {} that no operation has", entry.op_context);
    ticket->done = true;
    ticket->flags = entry.flags;
}

void Member::take_error() {
    fi_cq_err_entry entry{};
    const ssize_t got = fi_cq_readerr(cq(), &entry, 0);
    if (got != 1) fail("fi_cq_readerr returned {} after -FI_EAVAIL", describe(got));
    auto* ticket = static_cast<Ticket*>(entry.op_context);
    if (open_tickets_.erase(ticket) != 1)
        fail("an error completion ({}) with the context {} that no operation has", describe(-entry.err),
             entry.op_context);
    if (entry.err <= 0) fail("an error completion with err = {}", entry.err);
    ticket->done = true;
    ticket->error = entry.err;
}

bool Member::read_queue() {
    std::array<fi_cq_tagged_entry, 8> entries{};
    const ssize_t got = fi_cq_read(cq(), entries.data(), entries.size());
    if (got == -FI_EAGAIN) return false;
    if (got == -FI_EAVAIL) {
        take_error();
        return true;
    }
    must(got, "fi_cq_read");
    for (ssize_t i = 0; i < got; ++i) take(entries[static_cast<std::size_t>(i)]);
    return got > 0;
}

bool Member::read_event() {
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    const ssize_t got = fi_eq_read(eq(), &event, &entry, sizeof entry, 0);
    if (got == -FI_EAGAIN) return false;
    const auto take_join = [&](fid_t object, void* context, int error) {
        auto* join = static_cast<Join*>(context);
        if (open_joins_.erase(join) != 1) fail("an event with the context {} that no join has", context);
        // ofi_rxm reports the fid of a different object.
        if (options_.is_mcastcoll() && object != &join->mc->fid)
            fail("a join's event has another object's fid");
        join->done = true;
        join->error = error;
        if (error == 0) joined_.insert(join);
    };
    if (got == -FI_EAVAIL) {
        fi_eq_err_entry wrong{};
        if (const ssize_t size = fi_eq_readerr(eq(), &wrong, 0); size < 0)
            fail("fi_eq_readerr returned {}", describe(size));
        if (auto* join = static_cast<Join*>(wrong.context); joined_.count(join) == 1)
            group_errors_.push_back({join, wrong.err, wrong.data});
        else
            take_join(wrong.fid, wrong.context, wrong.err);
        return true;
    }
    must(got, "fi_eq_read");
    if (event != FI_JOIN_COMPLETE) fail("event {} instead of FI_JOIN_COMPLETE", event);
    take_join(entry.fid, entry.context, 0);
    return true;
}

bool Member::progress() {
    bool any = false;
    while (read_queue()) any = true;
    if (!open_joins_.empty())
        while (read_event()) any = true;
    return any;
}

bool Member::wait_until(std::chrono::milliseconds limit, const std::function<bool()>& holds) {
    const Clock::time_point deadline = Clock::now() + limit;
    for (unsigned fruitless = 0; !holds(); ++fruitless) {
        if (progress()) {
            fruitless = 0;
            continue;
        }
        if (Clock::now() > deadline) return false;
        if (board_.abandoned) fail("gave up, because another process failed");
        // Members outnumber processors: a member that waits for long leaves them to the others.
        if (fruitless < kYields)
            sched_yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

void Member::wait_until(const char* what, const std::function<bool()>& holds) {
    if (!wait_until(std::chrono::seconds(options_.wait_s), holds))
        fail("{} did not come within {} s", what, options_.wait_s);
}

void Member::idle(std::chrono::milliseconds time) {
    (void)wait_until(time, [] { return false; });
}

void Member::meet(unsigned count) {
    const std::uint32_t expected = count == 0 ? size_ : count;
    const std::uint32_t generation = board_.generation;
    if (board_.arrived.fetch_add(1) + 1 == expected) {
        board_.arrived = 0;
        board_.generation.fetch_add(1);
        return;
    }
    wait_until("another process, out of band", [&] {
        if (!cq_) sched_yield();
        return board_.generation != generation;
    });
}

}  // namespace mcastcoll::fabtest
