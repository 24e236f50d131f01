#include "ports/messenger.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "provider/info_owner.h"
#include "transport/socket_address.h"

namespace mcastcoll::ports {
namespace {

constexpr std::size_t kReceives = 64;
constexpr std::size_t kSmallSends = 512;
constexpr std::size_t kLargeSends = 32;

Error failure(const char* what, long code) {
    return {static_cast<int>(-code), fmt::format("{}: {}", what, fi_strerror(static_cast<int>(-code)))};
}

// Clears the port in the address of the application's endpoint: the private endpoint has the same IP address
// and its own port.
void clear_port(void* address, std::size_t length) {
    if (address == nullptr || length < sizeof(sockaddr_in)) return;
    auto* any = static_cast<sockaddr*>(address);
    if (any->sa_family == AF_INET) static_cast<sockaddr_in*>(address)->sin_port = 0;
    if (any->sa_family == AF_INET6 && length >= sizeof(sockaddr_in6))
        static_cast<sockaddr_in6*>(address)->sin6_port = 0;
}

// Returns a peer's address with the scope that is valid on this host (SocketAddress::seen_from).
wire::ByteString seen_from(const wire::ByteString& own, const wire::ByteString& peer) {
    const auto from = transport::SocketAddress::from_bytes(own),
               to = transport::SocketAddress::from_bytes(peer);
    if (!from || !to) return peer;
    const transport::SocketAddress here = to.value().seen_from(from.value().scope());
    wire::ByteString result = peer;
    const Bytes bytes = here.bytes();
    std::copy(bytes.begin(), bytes.end(), result.begin());
    return result;
}

provider::InfoOwner private_info(const fi_info* inner) {
    provider::InfoOwner info(fi_dupinfo(inner));
    if (!info) return info;
    info->caps = (inner->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM)) | FI_MSG | FI_SEND | FI_RECV;
    info->tx_attr->caps = FI_MSG | FI_SEND;
    info->rx_attr->caps = FI_MSG | FI_RECV;
    info->tx_attr->op_flags = info->rx_attr->op_flags = 0;
    info->handle = nullptr;
    // Only the collective endpoint uses the private endpoint, while it holds the fabric's lock.
    info->domain_attr->threading = FI_THREAD_DOMAIN;
    info->domain_attr->control_progress = info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    std::free(info->dest_addr);
    info->dest_addr = nullptr;
    info->dest_addrlen = 0;
    const bool ip = info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6 ||
                    info->addr_format == FI_SOCKADDR;
    if (ip) {
        clear_port(info->src_addr, info->src_addrlen);
    } else if (info->addr_format == FI_ADDR_STR && info->src_addr != nullptr) {
        // The name of the private endpoint must be unique: to a name that begins like its own names, shm
        // appends a number that makes the name unique.
        std::free(info->src_addr);
        const std::string name = fmt::format("fi_shm://{}", getpid());
        info->src_addr = strdup(name.c_str());
        if (info->src_addr == nullptr) return nullptr;
        info->src_addrlen = name.size() + 1;
    } else {
        std::free(info->src_addr);
        info->src_addr = nullptr;
        info->src_addrlen = 0;
    }
    return info;
}

}  // namespace

Result<std::unique_ptr<Messenger>> Messenger::open(fid_fabric* fabric, const fi_info* inner,
                                                   Receiver& receiver) {
    std::unique_ptr<Messenger> messenger(new Messenger(fabric, receiver));
    if (auto opened = messenger->open_endpoint(inner); !opened) return opened.error();
    return messenger;
}

Result<void> Messenger::open_endpoint(const fi_info* inner) {
    const provider::InfoOwner info = private_info(inner);
    if (!info) return Error{FI_ENOMEM, "no memory for the private endpoint"};
    if (int rc = fi_domain(fabric_, info.get(), domain_.out(), nullptr); rc != 0)
        return failure("cannot open the private domain", rc);

    fi_cq_attr cq_attr{};
    cq_attr.size = kReceives + kSmallSends + kLargeSends;
    cq_attr.format = FI_CQ_FORMAT_MSG;
    cq_attr.wait_obj = FI_WAIT_FD;
    int rc = fi_cq_open(domain_.get(), &cq_attr, cq_.out(), nullptr);
    if (rc == 0) {
        if (fi_control(&cq_->fid, FI_GETWAIT, &descriptor_) != 0) descriptor_ = -1;
    } else {
        cq_attr.wait_obj = FI_WAIT_NONE;
        rc = fi_cq_open(domain_.get(), &cq_attr, cq_.out(), nullptr);
    }
    if (rc != 0) return failure("cannot open the private completion queue", rc);

    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    rc = fi_av_open(domain_.get(), &av_attr, av_.out(), nullptr);
    if (rc != 0) {
        av_attr.type = FI_AV_MAP;
        rc = fi_av_open(domain_.get(), &av_attr, av_.out(), nullptr);
    }
    if (rc != 0) return failure("cannot open the private address vector", rc);
    if (rc = fi_endpoint(domain_.get(), info.get(), endpoint_.out(), nullptr); rc != 0)
        return failure("cannot open the private endpoint", rc);
    if (rc = fi_ep_bind(endpoint_.get(), &cq_->fid, FI_SEND | FI_RECV); rc != 0)
        return failure("cannot bind the private endpoint to its queue", rc);
    if (rc = fi_ep_bind(endpoint_.get(), &av_->fid, 0); rc != 0)
        return failure("cannot bind the private endpoint to its address vector", rc);
    if (rc = fi_enable(endpoint_.get()); rc != 0) return failure("cannot enable the private endpoint", rc);

    std::size_t length = wire::kMaxAddressBytes;
    address_.resize(length);
    if (rc = fi_getname(&endpoint_->fid, address_.data(), &length); rc != 0)
        return failure("cannot read the private endpoint's address", rc);
    address_.resize(length);
    inject_bytes_ = info->tx_attr->inject_size;
    const char* const provider = info->fabric_attr->prov_name;
    over_rxm_ = provider != nullptr && std::string_view(provider).find("ofi_rxm") != std::string_view::npos;
    return make_buffers(info.get());
}

Result<void> Messenger::make_buffers(const fi_info* info) {
    const std::size_t bytes = (kReceives + kLargeSends) * kMessageBytes + kSmallSends * kSmallMessageBytes;
    // The buffers are not cleared, so that pages that are never used take no memory.
    buffers_.reset(new std::byte[bytes]);
    if ((info->domain_attr->mr_mode & FI_MR_LOCAL) != 0) {
        const int rc = fi_mr_reg(domain_.get(), buffers_.get(), bytes, FI_SEND | FI_RECV, 0, 1, 0,
                                 memory_.out(), nullptr);
        if (rc != 0) return failure("cannot register the private endpoint's buffers", rc);
        memory_descriptor_ = fi_mr_desc(memory_.get());
    }
    std::byte* at = buffers_.get();
    requests_.resize(kReceives + kLargeSends + kSmallSends);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        Request& request = requests_[i];
        request.use = i < kReceives                 ? Request::Use::receive
                      : i < kReceives + kLargeSends ? Request::Use::large
                                                    : Request::Use::small;
        request.buffer = at;
        at += request.use == Request::Use::small ? kSmallMessageBytes : kMessageBytes;
        if (request.use == Request::Use::large) free_large_.push_back(&request);
        if (request.use == Request::Use::small) free_small_.push_back(&request);
    }
    waiting_.reserve(kLargeSends + kSmallSends);
    blocked_receives_.reserve(kReceives);
    for (std::size_t i = 0; i < kReceives; ++i) post_receive(requests_[i]);
    return {};
}

// While closing a connection, ofi_rxm processes received data once more and, if a receive is posted, would
// begin to read a long message through the endpoint it has just freed. So all receives are cancelled first.
// Over verbs ofi_rxm would also repost its own buffer there for any message, so pending completions are read
// first. A message that arrives after this and before the close can still cause the fault, except with
// FI_OFI_RXM_USE_SRX=1, where all connections share their buffers.
void Messenger::withdraw_receives() {
    if (!endpoint_) return;
    for (Request& request : requests_)
        if (request.use == Request::Use::receive) (void)fi_cancel(&endpoint_->fid, &request.context);
    fi_cq_msg_entry entries[16];
    fi_cq_err_entry error{};
    for (std::size_t i = 0; i < 2 * requests_.size(); ++i) {
        ssize_t count = fi_cq_read(cq_.get(), entries, std::size(entries));
        if (count == -FI_EAVAIL) count = fi_cq_readerr(cq_.get(), &error, 0);
        if (count <= 0) break;
    }
}

Messenger::~Messenger() {
    if (over_rxm_) withdraw_receives();
    // Ends all operations in flight before the buffers and queues are freed.
    endpoint_.reset();
    cq_.reset();
    av_.reset();
    memory_.reset();
    domain_.reset();
}

Result<fi_addr_t> Messenger::peer(const wire::ByteString& address) {
    if (auto found = peers_.find(address); found != peers_.end()) return found->second;
    fi_addr_t result = FI_ADDR_UNSPEC;
    const wire::ByteString here = seen_from(address_, address);
    const int rc = fi_av_insert(av_.get(), here.data(), 1, &result, 0, nullptr);
    if (rc != 1) return failure("cannot insert a member's private address", rc < 0 ? rc : -FI_EINVAL);
    backlogs_.try_emplace(result);
    peers_.emplace(address, result);
    return result;
}

void Messenger::post_receive(Request& request) {
    const ssize_t rc = fi_recv(endpoint_.get(), request.buffer, kMessageBytes, memory_descriptor_,
                               FI_ADDR_UNSPEC, &request.context);
    if (rc != 0)
        blocked_receives_.push_back(&request);
    else
        latest_receive_ = &request;
}

bool Messenger::is_starved() {
    poll();
    Request* const latest = latest_receive_;
    if (latest == nullptr || !blocked_receives_.empty()) return false;
    called_back_ = false;
    (void)fi_cancel(&endpoint_->fid, &latest->context);
    // Reposts a cancelled receive.
    poll();
    return !called_back_ && latest_receive_ == latest;
}

bool Messenger::try_send(Request& request) {
    const bool injects = request.length <= inject_bytes_;
    const fi_addr_t peer = request.peer;
    const ssize_t rc = injects ? fi_inject(endpoint_.get(), request.buffer, request.length, peer)
                               : fi_send(endpoint_.get(), request.buffer, request.length, memory_descriptor_,
                                         peer, &request.context);
    if (rc == -FI_EAGAIN) return false;
    if (rc != 0 || injects) finish(request);
    if (rc != 0) receiver_.on_send_error(peer, static_cast<int>(-rc));
    return true;
}

void Messenger::send(Account& by, fi_addr_t peer, Bytes header, Bytes payload) {
    assert(can_send(by));
    send_now(&by, peer, header, payload);
}

void Messenger::queue_message(std::vector<fi_addr_t> peers, wire::ByteString message,
                              group::Outbox::Owner owner) {
    assert(message.size() <= kMessageBytes);
    outbox_.post(std::move(peers), std::move(message), owner);
}

void Messenger::send_now(Account* by, fi_addr_t peer, Bytes header, Bytes payload) {
    const std::size_t length = header.size() + payload.size();
    assert(has_room(length) && length <= kMessageBytes);
    auto& pool = length <= kSmallMessageBytes ? free_small_ : free_large_;
    Request& request = *pool.back();
    pool.pop_back();
    request.by = by;
    if (by != nullptr) ++(request.use == Request::Use::small ? by->small_ : by->large_);
    ++under_way_;
    std::memcpy(request.buffer, header.data(), header.size());
    if (!payload.empty()) std::memcpy(request.buffer + header.size(), payload.data(), payload.size());
    request.length = length;
    request.peer = peer;
    // Messages to one peer stay in order: if one waits, all later messages to that peer wait too.
    Backlog& backlog = backlogs_[peer];
    if (backlog.waiting == 0 && try_send(request)) return;
    ++backlog.waiting;
    waiting_.push_back(&request);
}

void Messenger::finish(Request& request) {
    --under_way_;
    const bool small = request.use == Request::Use::small;
    (small ? free_small_ : free_large_).push_back(&request);
    Account* const by = std::exchange(request.by, nullptr);
    if (by != nullptr) --(small ? by->small_ : by->large_);
}

void Messenger::forget(const Account& account) {
    for (Request& request : requests_)
        if (request.by == &account) request.by = nullptr;
}

void Messenger::flush() {
    ++round_;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        Request* request = waiting_[i];
        Backlog& backlog = backlogs_[request->peer];
        if (backlog.blocked_round != round_ && try_send(*request)) {
            --backlog.waiting;
            continue;
        }
        backlog.blocked_round = round_;
        waiting_[kept++] = request;
    }
    waiting_.resize(kept);
}

bool Messenger::poll() {
    fi_cq_msg_entry entries[16];
    bool moved = false;
    for (int round = 0; round < 8; ++round) {
        const ssize_t count = fi_cq_read(cq_.get(), entries, std::size(entries));
        if (count == -FI_EAVAIL) {
            read_errors();
            moved = true;
            continue;
        }
        if (count <= 0) break;
        moved = true;
        for (ssize_t i = 0; i < count; ++i) {
            auto& request = *static_cast<Request*>(entries[i].op_context);
            if (request.use != Request::Use::receive) {
                finish(request);
                continue;
            }
            receiver_.on_message(MutableBytes(request.buffer, entries[i].len));
            post_receive(request);
        }
        if (count < static_cast<ssize_t>(std::size(entries))) break;
    }
    if (!waiting_.empty()) flush();
    flush_queue();
    for (std::size_t left = blocked_receives_.size(); left > 0 && !blocked_receives_.empty(); --left) {
        Request* request = blocked_receives_.back();
        blocked_receives_.pop_back();
        post_receive(*request);
    }
    return moved;
}

void Messenger::read_errors() {
    fi_cq_err_entry entry{};
    if (fi_cq_readerr(cq_.get(), &entry, 0) != 1 || entry.op_context == nullptr) return;
    auto& request = *static_cast<Request*>(entry.op_context);
    if (request.use == Request::Use::receive) {
        // FI_ECANCELED may also mean that the receive's connection broke in the middle of a message.
        called_back_ |= &request == latest_receive_ && entry.err == FI_ECANCELED;
        post_receive(request);
        return;
    }
    const fi_addr_t peer = request.peer;
    finish(request);
    receiver_.on_send_error(peer, entry.err);
}

bool Messenger::prepare_wait(bool may_pause) {
    if (must_poll() || descriptor_ < 0) return false;
    fid* fids[1] = {&cq_->fid};
    if (fi_trywait(fabric_, fids, 1) != 0) return false;
    // The provider "net" leaves its descriptor readable after the events were read. Only a blocking read
    // clears the descriptor.
    pollfd waiting{descriptor_, POLLIN, 0};
    if (::poll(&waiting, 1, 0) == 0) return true;
    if (!may_pause) return false;
    fi_cq_msg_entry unused;
    return fi_cq_sread(cq_.get(), &unused, 0, nullptr, 1) == -FI_EAGAIN;
}

}  // namespace mcastcoll::ports
