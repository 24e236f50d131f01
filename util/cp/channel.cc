#include "cp/channel.h"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace mcastcoll::cp {
namespace {

constexpr int kLook_ms = 1000;

Error failed(const char* what, long code) {
    return {static_cast<int>(-code), fmt::format("{}: {}", what, fi_strerror(static_cast<int>(-code)))};
}

}  // namespace

Result<std::unique_ptr<Channel>> Channel::open(const std::string& address) {
    std::unique_ptr<Channel> channel(new Channel);
    if (const auto opened = channel->open_fabric(address); !opened) return opened.error();
    if (const auto opened = channel->open_endpoint(); !opened) return opened.error();
    return channel;
}

Channel::~Channel() = default;

Result<void> Channel::open_fabric(const std::string& address) {
    const std::unique_ptr<fi_info, decltype(&fi_freeinfo)> hints(fi_allocinfo(), &fi_freeinfo);
    if (hints == nullptr) return Error{ENOMEM, "no memory"};
    hints->caps = FI_COLLECTIVE;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    // The provider serves peers while this process reads or writes its disk.
    hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    hints->fabric_attr->prov_name = ::strdup("mcastcoll");
    fi_info* found = nullptr;
    const int code = fi_getinfo(FI_VERSION(1, 17), address.c_str(), nullptr, FI_SOURCE, hints.get(), &found);
    if (code == -FI_ENODATA)
        return Error{ENODATA, fmt::format("libfabric has no provider mcastcoll for {}: install it, or set "
                                          "FI_PROVIDER_PATH; FI_LOG_LEVEL=warn logs the reason",
                                          address)};
    if (code != 0) return failed("fi_getinfo", code);
    info_.reset(found);
    fid_fabric* fabric = nullptr;
    if (const int got = fi_fabric(info_->fabric_attr, &fabric, nullptr); got != 0)
        return failed("fi_fabric", got);
    fabric_.reset(fabric);
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_UNSPEC;
    fid_eq* eq = nullptr;
    if (const int got = fi_eq_open(fabric, &attr, &eq, nullptr); got != 0) return failed("fi_eq_open", got);
    eq_.reset(eq);
    fid_domain* domain = nullptr;
    if (const int got = fi_domain(fabric, info_.get(), &domain, nullptr); got != 0)
        return failed("fi_domain", got);
    domain_.reset(domain);
    return {};
}

Result<void> Channel::open_endpoint() {
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    fid_av* av = nullptr;
    if (const int got = fi_av_open(domain_.get(), &av_attr, &av, nullptr); got != 0)
        return failed("fi_av_open", got);
    av_.reset(av);
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_CONTEXT;
    cq_attr.wait_obj = FI_WAIT_UNSPEC;
    fid_cq* cq = nullptr;
    if (const int got = fi_cq_open(domain_.get(), &cq_attr, &cq, nullptr); got != 0)
        return failed("fi_cq_open", got);
    cq_.reset(cq);
    fid_ep* ep = nullptr;
    if (const int got = fi_endpoint(domain_.get(), info_.get(), &ep, nullptr); got != 0)
        return failed("fi_endpoint", got);
    ep_.reset(ep);
    int got = fi_ep_bind(ep, &av->fid, 0);
    if (got == 0) got = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV);
    if (got == 0) got = fi_ep_bind(ep, &eq_->fid, 0);
    if (got == 0) got = fi_enable(ep);
    if (got != 0) return failed("fi_enable", got);
    name_.resize(256);
    std::size_t size = name_.size();
    if (const int named = fi_getname(&ep->fid, name_.data(), &size); named != 0)
        return failed("fi_getname", named);
    name_.resize(size);
    return {};
}

Result<void> Channel::form(const std::vector<std::string>& names, const std::string& comm_key) {
    ++attempts_;
    group_.reset();
    set_.reset();
    names_ = names;
    std::string key = comm_key;
    fi_av_set_attr attr{};
    attr.count = names.size();
    attr.start_addr = attr.end_addr = FI_ADDR_NOTAVAIL;
    attr.comm_key_size = key.size();
    attr.comm_key = reinterpret_cast<std::uint8_t*>(key.data());
    fid_av_set* set = nullptr;
    if (const int got = fi_av_set(av_.get(), &attr, &set, nullptr); got != 0) return failed("fi_av_set", got);
    set_.reset(set);
    for (const std::string& name : names) {
        fi_addr_t address = FI_ADDR_UNSPEC;
        if (const int got = fi_av_insert(av_.get(), name.data(), 1, &address, 0, nullptr); got != 1)
            return failed("fi_av_insert", got < 0 ? got : -FI_EINVAL);
        if (const int got = fi_av_set_insert(set, address); got != 0) return failed("fi_av_set_insert", got);
        if (&name == &names.front()) root_ = address;
    }
    fid_mc* group = nullptr;
    if (const int got =
            fi_join_collective(ep_.get(), FI_ADDR_NOTAVAIL, set, 0, &group, &joins_.emplace_back());
        got != 0)
        return failed("fi_join_collective", got);
    group_.reset(group);
    return await_join();
}

// Waits for the end of the join, which comes at the latest with the provider's join timeout.
Result<void> Channel::await_join() {
    for (;;) {
        std::uint32_t event = 0;
        fi_eq_entry entry{};
        const ssize_t got = fi_eq_sread(eq_.get(), &event, &entry, sizeof entry, kLook_ms, 0);
        if (got == -FI_EAGAIN || got == -FI_ETIMEDOUT || got == -FI_EINTR) continue;
        if (got == -FI_EAVAIL) {
            fi_eq_err_entry wrong{};
            if (fi_eq_readerr(eq_.get(), &wrong, 0) < 0) continue;
            if (wrong.context == &joins_.back()) return failed("no group can be formed", -wrong.err);
            continue;  // an event of an earlier group, whose fid may have had the same address
        }
        if (got < 0) return failed("fi_eq_sread", got);
        if (event == FI_JOIN_COMPLETE && entry.context == &joins_.back()) return {};
    }
}

Result<void> Channel::start(void* buffer, std::size_t size, Ticket& ticket) {
    for (;;) {
        const ssize_t got = fi_broadcast(ep_.get(), buffer, size, nullptr, fi_mc_addr(group_.get()), root_,
                                         FI_UINT8, 0, &ticket);
        if (got == 0) return {};
        if (got != -FI_EAGAIN) return failed("fi_broadcast", got);
        take_completions(1);
    }
}

void Channel::wait(Ticket& ticket) {
    while (!ticket.done) take_completions(kLook_ms);
}

Error Channel::failure(const Ticket& ticket) {
    return failed("a broadcast has failed", -ticket.error);
}

void Channel::take_completions(int timeout_ms) {
    std::array<fi_cq_entry, 8> entries{};
    const ssize_t got = fi_cq_sread(cq_.get(), entries.data(), entries.size(), nullptr, timeout_ms);
    for (ssize_t i = 0; i < got; ++i)
        static_cast<Ticket*>(entries[static_cast<std::size_t>(i)].op_context)->done = true;
    if (got != -FI_EAVAIL) return;
    fi_cq_err_entry wrong{};
    if (fi_cq_readerr(cq_.get(), &wrong, 0) != 1) return;
    auto* ticket = static_cast<Ticket*>(wrong.op_context);
    ticket->done = true;
    ticket->error = wrong.err;
}

}  // namespace mcastcoll::cp
