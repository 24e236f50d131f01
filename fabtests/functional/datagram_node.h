// A datagram endpoint with multicast and its related objects, for tests, opened through libfabric's public
// interface only. A Node owns these objects and closes them in order.
#pragma once

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <unistd.h>

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "support/program.h"

namespace mcastcoll::fabtest {

using Info = std::unique_ptr<fi_info, decltype(&fi_freeinfo)>;

struct Wish {
    fi_ep_type type = FI_EP_DGRAM;
    std::uint64_t caps = FI_MSG | FI_MULTICAST | FI_SOURCE;
    std::uint64_t op_flags = 0;  // default flags of sends
    std::uint32_t format = FI_SOCKADDR_IN;
    fi_cq_format queue_format = FI_CQ_FORMAT_TAGGED;
    std::size_t queue_size = 0;
    fi_wait_obj wait = FI_WAIT_FD;
    std::uint64_t bind_flags = 0;  // of the completion queue
    bool counters = false;
    bool events = true;
    // The node's own address, which --address replaces; empty: the provider chooses an address.
    std::string node = "127.0.0.1";
};

// Returns the first datagram endpoint that libfabric offers for this wish; null if there is none.
inline Info find_datagrams(const Wish& wish, const char* provider, int* result = nullptr) {
    const Info hints(fi_allocinfo(), &fi_freeinfo);
    CHECK(hints != nullptr);
    hints->caps = wish.caps;
    hints->addr_format = wish.format;
    hints->ep_attr->type = wish.type;
    hints->tx_attr->op_flags = wish.op_flags;
    hints->fabric_attr->prov_name = strdup(provider);
    fi_info* found = nullptr;
    const char* node = wish.node.empty() ? nullptr : wish.node.c_str();
    const int rc =
        fi_getinfo(FI_VERSION(1, 17), node, nullptr, node != nullptr ? FI_SOURCE : 0, hints.get(), &found);
    if (result != nullptr) *result = rc;
    return Info(rc == 0 ? found : nullptr, &fi_freeinfo);
}

// A multicast group for this run only, so that other runs on the same machine are not received. The group is
// derived from the parent process, which all members share.
inline sockaddr_storage group(unsigned number) {
    const auto run = static_cast<std::uint32_t>(getppid());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(20000 + run % 10000));
    address.sin_addr.s_addr =
        htonl((239U << 24) | ((run * 2654435761U >> 8 & 0xffffU) << 8) | (number & 0xffU));
    sockaddr_storage any{};
    std::memcpy(&any, &address, sizeof address);
    return any;
}

// Gives a wish without an address one of --address: members, and the nodes of each member, take these in
// turns.
inline Wish at_address(Wish wish, const Options& options) {
    static unsigned nodes = 0;
    if (wish.node != Wish().node) return wish;
    std::vector<std::string> all;
    std::stringstream list(options.address);
    for (std::string one; std::getline(list, one, ',');) all.push_back(one);
    const auto member = static_cast<unsigned>(getpid() - getppid());
    if (!all.empty()) wish.node = all[(member + nodes++) % all.size()];
    return wish;
}

class Node {
  public:
    Node(const Wish& wish, const Options& options)
        : wait_s(options.wait_s), info(find_datagrams(at_address(wish, options), options.provider.c_str())) {
        if (info == nullptr) fail("no endpoint with FI_MULTICAST is to be had");
        fid_fabric* new_fabric = nullptr;
        CHECK_RETURNS(0, fi_fabric(info->fabric_attr, &new_fabric, nullptr));
        fabric.reset(new_fabric);
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_FD;
        fid_eq* new_eq = nullptr;
        CHECK_RETURNS(0, fi_eq_open(new_fabric, &eq_attr, &new_eq, nullptr));
        eq.reset(new_eq);
        fid_domain* new_domain = nullptr;
        CHECK_RETURNS(0, fi_domain(new_fabric, info.get(), &new_domain, nullptr));
        domain.reset(new_domain);
        fi_cq_attr cq_attr{};
        cq_attr.format = wish.queue_format;
        cq_attr.size = wish.queue_size;
        cq_attr.wait_obj = wish.wait;
        fid_cq* new_cq = nullptr;
        CHECK_RETURNS(0, fi_cq_open(new_domain, &cq_attr, &new_cq, nullptr));
        cq.reset(new_cq);
        fi_av_attr av_attr{};
        fid_av* new_av = nullptr;
        CHECK_RETURNS(0, fi_av_open(new_domain, &av_attr, &new_av, nullptr));
        av.reset(new_av);
        fid_ep* new_ep = nullptr;
        CHECK_RETURNS(0, fi_endpoint(new_domain, info.get(), &new_ep, nullptr));
        ep.reset(new_ep);
        if (wish.counters) open_counters();
        if (wish.events) CHECK_RETURNS(0, fi_ep_bind(new_ep, &new_eq->fid, 0));
        CHECK_RETURNS(0, fi_ep_bind(new_ep, &new_av->fid, 0));
        CHECK_RETURNS(0, fi_ep_bind(new_ep, &new_cq->fid, FI_TRANSMIT | FI_RECV | wish.bind_flags));
        CHECK_RETURNS(0, fi_enable(new_ep));
    }

    std::string name() const {
        char text[128];
        std::size_t length = sizeof text;
        CHECK_RETURNS(0, fi_getname(&ep->fid, text, &length));
        return std::string(text, length);
    }

    // Joins a group, and waits for the end of the join: returns 0, or the positive error of the event queue.
    int join(const sockaddr_storage& group, Fid<fid_mc>& mc, std::uint64_t flags = 0) {
        fid_mc* made = nullptr;
        CHECK_RETURNS(0, fi_join(ep.get(), &group, flags, &made, this));
        mc.reset(made);
        std::uint32_t event = 0;
        fi_eq_entry entry{};
        const ssize_t got =
            fi_eq_sread(eq.get(), &event, &entry, sizeof entry, static_cast<int>(wait_s) * 1000, 0);
        if (got == -FI_EAVAIL) {
            fi_eq_err_entry error{};
            CHECK_RETURNS(static_cast<long>(sizeof error), fi_eq_readerr(eq.get(), &error, 0));
            CHECK(error.fid == &made->fid && error.context == this && error.err > 0);
            return error.err;
        }
        CHECK_RETURNS(static_cast<long>(sizeof entry), got);
        CHECK(event == FI_JOIN_COMPLETE && entry.fid == &made->fid && entry.context == this);
        return 0;
    }
    Fid<fid_mc> join(const sockaddr_storage& group, std::uint64_t flags = 0) {
        Fid<fid_mc> mc;
        CHECK_RETURNS(0, join(group, mc, flags));
        return mc;
    }

    // Waits for the next completion, at most the time limit for one operation. Returns 0, or the completion's
    // error as a positive number.
    int next(fi_cq_tagged_entry& entry, fi_addr_t* source = nullptr) {
        const ssize_t got =
            fi_cq_sreadfrom(cq.get(), &entry, 1, source, nullptr, static_cast<int>(wait_s) * 1000);
        if (got == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            CHECK_RETURNS(1, fi_cq_readerr(cq.get(), &error, 0));
            last_error = error;
            return error.err;
        }
        CHECK_RETURNS(1, got);
        return 0;
    }
    bool quiet_for(int ms) {
        fi_cq_tagged_entry entry{};
        return fi_cq_sread(cq.get(), &entry, 1, nullptr, ms) == -FI_EAGAIN;
    }

    const unsigned wait_s;
    Info info;
    Fid<fid_fabric> fabric;
    Fid<fid_eq> eq;
    Fid<fid_domain> domain;
    Fid<fid_cq> cq;
    Fid<fid_av> av;
    Fid<fid_cntr> sent, received;
    Fid<fid_ep> ep;
    fi_cq_err_entry last_error{};

  private:
    void open_counters() {
        fi_cntr_attr attr{};
        attr.wait_obj = FI_WAIT_UNSPEC;
        for (auto [slot, flags] : {std::pair{&sent, FI_SEND}, std::pair{&received, FI_RECV}}) {
            fid_cntr* made = nullptr;
            CHECK_RETURNS(0, fi_cntr_open(domain.get(), &attr, &made, nullptr));
            slot->reset(made);
            CHECK_RETURNS(0, fi_ep_bind(ep.get(), &made->fid, flags));
        }
    }
};

}  // namespace mcastcoll::fabtest
