#include "transport/verbs_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/cache.h"
#include "base/system.h"

namespace mcastcoll::transport {
namespace {

// With fewer receives, a single burst would overrun them.
constexpr std::size_t kFewestReceives = 64;
constexpr std::uint32_t kMulticastQueuePair = 0xffffff;  // queue pair number of multicasts

constexpr std::size_t round_up(std::size_t bytes) {
    return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

std::size_t bytes_of(ibv_mtu mtu) {
    return std::size_t{128} << static_cast<unsigned>(mtu);
}

std::uint64_t address_in(const void* at) {
    return reinterpret_cast<std::uintptr_t>(at);
}

std::size_t at_most(std::size_t wanted, int limit) {
    return limit > 0 ? std::min(wanted, static_cast<std::size_t>(limit)) : wanted;
}

// After this number of failures, the queue pair counts as permanently failed.
constexpr unsigned kMaxRevivals = 8;

void forget(ibv_cq& queue, std::size_t max) {
    ibv_wc completion;
    for (std::size_t i = 0; i < max && ibv_poll_cq(&queue, 1, &completion) > 0; ++i) continue;
}

}  // namespace

VerbsQueue::~VerbsQueue() {
    // The queue pair must be destroyed before its completion queues and memory.
    if (id_.qp != nullptr) rdma_destroy_qp(&id_);
}

Result<void> VerbsQueue::open(const VerbsOptions& options, const ibv_device_attr& device,
                              const ibv_port_attr& port) {
    if (port.state != IBV_PORT_ACTIVE)
        return Error{ENETDOWN,
                     fmt::format("the RDMA port is not active but {}", ibv_port_state_str(port.state))};
    max_payload_ = bytes_of(port.active_mtu);
    if (options.payload_limit > 0) max_payload_ = std::min(max_payload_, options.payload_limit);
    receives_ =
        at_most(at_most(std::max(options.receives, kFewestReceives), device.max_qp_wr), device.max_cqe);
    sends_ = at_most(at_most(std::max(options.sends, kBatch), device.max_qp_wr), device.max_cqe);
    signal_every_ = std::clamp<std::size_t>(signal_every_, 1, sends_ / 2);
    receive_stride_ = round_up(kRouteHeaderBytes + max_payload_);
    send_stride_ = round_up(max_payload_);
    if (auto mapped = map_memory(); !mapped) return mapped;
    if (auto opened = open_queue_pair(); !opened) return opened;
    return post_first_receives();
}

// The memory that a process may lock is limited: if registration fails, half the receives are tried. A child
// of fork() does not inherit the memory: otherwise copy-on-write could give the process a new page while the
// device keeps using the old one.
Result<void> VerbsQueue::map_memory() {
    for (;; receives_ /= 2) {
        const std::size_t size = receives_ * receive_stride_ + sends_ * send_stride_;
        void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return system_error(errno, "memory for RDMA");
        memory_ = DeviceMemory(static_cast<std::byte*>(at), {size});
        (void)::madvise(at, size, MADV_DONTFORK);
        // ibv_reg_mr is a macro that compares the value with another enum's.
        const int access = IBV_ACCESS_LOCAL_WRITE;
        region_.reset(ibv_reg_mr(id_.pd, at, size, access));
        if (region_) return {};
        if (receives_ / 2 < kFewestReceives)
            return system_error(errno,
                                fmt::format("cannot register {} bytes for RDMA (see ulimit -l)", size));
    }
}

Result<void> VerbsQueue::open_queue_pair() {
    channel_.reset(ibv_create_comp_channel(id_.verbs));
    if (!channel_) return system_error(errno, "cannot open an RDMA completion channel");
    const int flags = ::fcntl(channel_->fd, F_GETFL);
    if (flags < 0 || ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return system_error(errno, "cannot wait for RDMA completions");
    received_.reset(ibv_create_cq(id_.verbs, static_cast<int>(receives_), nullptr, channel_.get(), 0));
    sent_.reset(ibv_create_cq(id_.verbs, static_cast<int>(sends_), nullptr, nullptr, 0));
    if (!received_ || !sent_) return system_error(errno, "cannot open an RDMA completion queue");

    // Devices do not report their maximum inline size: smaller and smaller sizes are tried.
    for (;; inline_bytes_ /= 2) {
        ibv_qp_init_attr wanted{};
        wanted.send_cq = sent_.get();
        wanted.recv_cq = received_.get();
        wanted.qp_type = IBV_QPT_UD;
        wanted.cap.max_send_wr = static_cast<std::uint32_t>(sends_);
        wanted.cap.max_recv_wr = static_cast<std::uint32_t>(receives_);
        wanted.cap.max_send_sge = 2;
        wanted.cap.max_recv_sge = 1;
        wanted.cap.max_inline_data = static_cast<std::uint32_t>(inline_bytes_);
        if (rdma_create_qp(&id_, id_.pd, &wanted) == 0) return {};
        if (inline_bytes_ == 0) return system_error(errno, "cannot open a UD queue pair");
    }
}

Result<void> VerbsQueue::post_first_receives() {
    for (std::size_t slot = 0; slot < receives_; ++slot) post_again(slot);
    flush_posts();
    if (broken_) return Error{EIO, "the UD queue pair accepts no receive requests"};
    return {};
}

void VerbsQueue::post_again(std::size_t slot) {
    const auto bytes = static_cast<std::uint32_t>(kRouteHeaderBytes + max_payload_);
    receive_pieces_[to_post_] = {address_in(receive_slot(slot)), bytes, region_->lkey};
    receive_requests_[to_post_] = {slot, nullptr, &receive_pieces_[to_post_], 1};
    if (to_post_ > 0) receive_requests_[to_post_ - 1].next = &receive_requests_[to_post_];
    if (++to_post_ == kBatch) flush_posts();
}

void VerbsQueue::flush_posts() {
    if (std::exchange(to_post_, 0) == 0) return;
    ibv_recv_wr* refused = nullptr;
    if (ibv_post_recv(id_.qp, receive_requests_.data(), &refused) != 0) broken_ = true;
}

std::size_t VerbsQueue::poll(ibv_cq& queue, Completions& into) {
    const int count = ibv_poll_cq(&queue, static_cast<int>(into.size()), into.data());
    if (count < 0) broken_ = true;
    return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void VerbsQueue::note_sent(const ibv_wc& completion) {
    done_ = completion.wr_id + 1;
    if (completion.status == IBV_WC_SUCCESS) return;
    // A failed request puts the queue pair into the error state.
    broken_ = true;
    ++send_errors_;
}

void VerbsQueue::reap() {
    Completions completions;
    while (const std::size_t count = poll(*sent_, completions))
        for (std::size_t i = 0; i < count; ++i) note_sent(completions[i]);
}

// Prepares a request; false if the datagram is too long.
bool VerbsQueue::compose(std::size_t slot, const Datagram& datagram, const VerbsTarget& to) {
    const std::size_t size = datagram.header.size() + datagram.payload.size();
    if (size > max_payload_) return false;
    const std::uint64_t index = posted_ + slot;
    ibv_send_wr& request = send_requests_[slot];
    request = {};
    request.wr_id = index;
    request.opcode = IBV_WR_SEND;
    request.sg_list = &send_pieces_[2 * slot];
    request.wr.ud.ah = to.address;
    request.wr.ud.remote_qpn = kMulticastQueuePair;
    request.wr.ud.remote_qkey = to.key;
    if ((index + 1) % signal_every_ == 0) request.send_flags |= IBV_SEND_SIGNALED;
    if (size <= inline_bytes_) {
        request.send_flags |= IBV_SEND_INLINE;
        for (const Bytes part : {datagram.header, datagram.payload})
            if (!part.empty())
                request.sg_list[request.num_sge++] = {address_in(part.data()),
                                                      static_cast<std::uint32_t>(part.size()), 0};
    } else {
        std::byte* const at = send_slot(index);
        std::copy(datagram.header.begin(), datagram.header.end(), at);
        std::copy(datagram.payload.begin(), datagram.payload.end(), at + datagram.header.size());
        request.sg_list[0] = {address_in(at), static_cast<std::uint32_t>(size), region_->lkey};
        request.num_sge = 1;
    }
    if (slot > 0) send_requests_[slot - 1].next = &request;
    return true;
}

// Posts the first `count` prepared requests.
Sent VerbsQueue::post_chain(std::size_t count, MulticastCounters& counters) {
    ibv_send_wr* refused = nullptr;
    const int code = ibv_post_send(id_.qp, send_requests_.data(), &refused);
    std::size_t taken = count;
    if (code != 0) taken = refused == nullptr ? 0 : static_cast<std::size_t>(refused - send_requests_.data());
    for (std::size_t i = 0; i < taken; ++i)
        for (int piece = 0; piece < send_requests_[i].num_sge; ++piece)
            counters.bytes_sent += send_requests_[i].sg_list[piece].length;
    counters.datagrams_sent += taken;
    posted_ += taken;
    const bool full = code == ENOMEM || code == EAGAIN;
    if (code != 0) ++(full ? counters.send_would_block : counters.send_errors);
    return {taken, full ? 0 : code};
}

Sent VerbsQueue::send(std::span<const Datagram> datagrams, const VerbsTarget& to,
                      MulticastCounters& counters) {
    std::size_t accepted = 0;
    while (accepted < datagrams.size()) {
        if (posted_ - done_ + datagrams.size() - accepted > sends_ / 2) reap();
        counters.send_errors += std::exchange(send_errors_, 0);
        if (broken_) return {accepted, EIO};
        const std::size_t room = sends_ - static_cast<std::size_t>(posted_ - done_);
        if (room == 0) {
            ++counters.send_would_block;
            break;
        }
        const std::size_t wanted = std::min({datagrams.size() - accepted, room, kBatch});
        std::size_t count = 0;
        while (count < wanted && compose(count, datagrams[accepted + count], to)) ++count;
        const Sent posted = count > 0 ? post_chain(count, counters) : Sent{};
        accepted += posted.accepted;
        if (posted.accepted < count) return {accepted, posted.error};
        if (count < wanted) {
            ++counters.send_errors;
            return {accepted, EMSGSIZE};
        }
    }
    return {accepted, 0};
}

void VerbsQueue::deliver_one(const ibv_wc& completion, const SocketAddress& own, DeliverDatagram deliver,
                             MulticastCounters& counters) {
    if (completion.status != IBV_WC_SUCCESS) {
        // The request was flushed: the queue pair is in the error state, and no more requests can be posted.
        if (completion.status == IBV_WC_WR_FLUSH_ERR)
            broken_ = true;
        else
            ++counters.receive_errors;
        return;
    }
    std::byte* const at = receive_slot(static_cast<std::size_t>(completion.wr_id));
    const auto source = (completion.wc_flags & IBV_WC_GRH) != 0 && completion.byte_len >= kRouteHeaderBytes
                            ? source_in(std::span<const std::byte, kRouteHeaderBytes>(at, kRouteHeaderBytes))
                            : std::nullopt;
    if (!source) {
        ++counters.receive_errors;
        return;
    }
    const std::size_t size = completion.byte_len - kRouteHeaderBytes;
    ++counters.datagrams_received;
    counters.bytes_received += size;
    // Devices may or may not return a multicast to its sender, whatever they are configured to do.
    if (completion.src_qp == number() && source->same_host(own)) {
        ++counters.own_copies;
        return;
    }
    deliver(MutableBytes(at + kRouteHeaderBytes, size),
            source->with_port(port_of_queue_pair(completion.src_qp)));
}

std::size_t VerbsQueue::receive(const SocketAddress& own, DeliverDatagram deliver,
                                MulticastCounters& counters) {
    if (waiting_ == 0) waiting_ = poll(*received_, completions_);
    const std::size_t count = std::exchange(waiting_, 0);
    for (std::size_t i = 0; i < count; ++i) {
        deliver_one(completions_[i], own, deliver, counters);
        if (!broken_) post_again(static_cast<std::size_t>(completions_[i].wr_id));
    }
    // Reads the send completions to find out whether the queue pair has failed: not all devices report the
    // failure for receive requests.
    if (count == 0 && posted_ != done_) reap();
    // Fewer requests wait until more are to be posted, since nearly all requests are posted already.
    if (to_post_ >= kBatch / 2) flush_posts();
    return count;
}

bool VerbsQueue::prepare_wait() {
    if (waiting_ > 0) return false;
    flush_posts();
    ibv_cq* which = nullptr;
    void* context = nullptr;
    // Takes the event of the last request. There is at most one event, because each must be requested.
    if (ibv_get_cq_event(channel_.get(), &which, &context) == 0) ibv_ack_cq_events(which, 1);
    if (ibv_req_notify_cq(received_.get(), 0) != 0) return false;
    // A completion from before this request for an event causes no event.
    waiting_ = poll(*received_, completions_);
    return waiting_ == 0;
}

// Takes a queue pair in the error state (caused by a single failed request) through its states again. The
// queue pair keeps its number, its groups and its memory; all posted requests are lost.
bool VerbsQueue::revive() {
    if (!broken_) return true;
    if (revivals_ == kMaxRevivals) return false;
    ++revivals_;
    if (!restart()) return false;
    // No old completions can follow: a reset queue pair has no requests.
    forget(*received_, receives_);
    forget(*sent_, sends_);
    done_ = posted_;
    waiting_ = 0;
    to_post_ = 0;
    broken_ = false;
    return post_first_receives().ok();
}

bool VerbsQueue::restart() {
    ibv_qp_attr known{};
    ibv_qp_init_attr unused{};
    if (ibv_query_qp(id_.qp, &known, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, &unused) != 0)
        return false;
    struct Step {
        ibv_qp_state state;
        int attributes;
    };
    constexpr Step kSteps[] = {{IBV_QPS_RESET, IBV_QP_STATE},
                               {IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
                               {IBV_QPS_RTR, IBV_QP_STATE},
                               {IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN}};
    for (const Step& step : kSteps) {
        ibv_qp_attr next{};
        next.qp_state = step.state;
        next.pkey_index = known.pkey_index;
        next.port_num = known.port_num;
        next.qkey = known.qkey;
        if (ibv_modify_qp(id_.qp, &next, step.attributes) != 0) return false;
    }
    return true;
}

}  // namespace mcastcoll::transport
