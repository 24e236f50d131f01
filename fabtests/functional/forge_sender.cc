#include "functional/forge_sender.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include <fstream>
#include <set>

#include "functional/multicast_sockets.h"

namespace mcastcoll::fabtest {
namespace {

Info find(const std::string& provider, const char* own_address) {
    const Info hints(fi_allocinfo(), &fi_freeinfo);
    CHECK(hints != nullptr);
    hints->caps = FI_MSG;
    hints->ep_attr->type = FI_EP_RDM;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->mr_mode = 0;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->fabric_attr->prov_name = strdup(provider.c_str());
    fi_info* found = nullptr;
    const int rc = fi_getinfo(FI_VERSION(1, 17), own_address, nullptr, FI_SOURCE, hints.get(), &found);
    return Info(rc == 0 ? found : nullptr, &fi_freeinfo);
}
template <typename T>
struct Made {
    explicit Made(Fid<T>& where) : owner(where) {}
    ~Made() { owner.reset(object); }
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;
    operator T**() { return &object; }
    Fid<T>& owner;
    T* object = nullptr;
};
template <typename T>
Made<T> made(Fid<T>& owner) {
    return Made<T>(owner);
}

}  // namespace

sockaddr_in local_port(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

// Ports of 127.0.0.1 at which these processes listen.
std::vector<sockaddr_in> listeners_of(const std::vector<pid_t>& processes) {
    const auto inodes = socket_inodes_of(processes);
    std::vector<sockaddr_in> found;
    std::ifstream table("/proc/net/tcp");
    std::string line;
    while (std::getline(table, line)) {
        unsigned address = 0, port = 0, state = 0;
        char inode[32] = {};
        if (std::sscanf(line.c_str(), " %*[^:]: %X:%X %*s %X %*s %*s %*s %*s %*s %31s", &address, &port,
                        &state, inode) == 4 &&
            state == 0x0a && inodes.count(inode) > 0)
            found.push_back(local_port(static_cast<std::uint16_t>(port)));
    }
    return found;
}

Sender::Sender(const Options& options, const char* own_address) {
    unsetenv("FI_PROVIDER");  // the variable hides all providers except mcastcoll
    // The provider sends members' messages over "net" in libfabric 1.x, because "tcp" is tcp;ofi_rxm there.
    const bool chosen = options.inner.empty() || options.inner == "tcp";
    for (const std::string& name : {chosen ? std::string("net") : options.inner, std::string("tcp")})
        if (!info_) info_ = find(name, own_address);
    CHECK(info_ != nullptr);
    CHECK_RETURNS(0, fi_fabric(info_->fabric_attr, made(fabric_), nullptr));
    CHECK_RETURNS(0, fi_domain(fabric_.get(), info_.get(), made(domain_), nullptr));
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    CHECK_RETURNS(0, fi_av_open(domain_.get(), &av_attr, made(av_), nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_CONTEXT;
    CHECK_RETURNS(0, fi_cq_open(domain_.get(), &cq_attr, made(cq_), nullptr));
    CHECK_RETURNS(0, fi_endpoint(domain_.get(), info_.get(), made(ep_), nullptr));
    CHECK_RETURNS(0, fi_ep_bind(ep_.get(), &av_->fid, 0));
    CHECK_RETURNS(0, fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV));
    CHECK_RETURNS(0, fi_enable(ep_.get()));
}

fi_addr_t Sender::peer(const sockaddr_in& address) {
    fi_addr_t result = FI_ADDR_UNSPEC;
    CHECK(fi_av_insert(av_.get(), &address, 1, &result, 0, nullptr) == 1);
    return result;
}

bool Sender::send(fi_addr_t peer, Bytes bytes) {
    const bool taken = fi_inject(ep_.get(), bytes.data(), bytes.size(), peer) == 0;
    fi_cq_entry entry{};
    if (fi_cq_read(cq_.get(), &entry, 1) == -FI_EAVAIL) {
        fi_cq_err_entry error{};
        (void)fi_cq_readerr(cq_.get(), &error, 0);
    }
    return taken;
}

}  // namespace mcastcoll::fabtest
