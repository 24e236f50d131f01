#include "split/routes.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "relay/sites.h"
#include "split/call.h"

namespace mcastcoll::split {
namespace {

constexpr int kBadSites = 126;  // what shells report for a program that cannot be run

// Made by the constructor below and never destroyed, as other threads may still connect while the process
// exits.
const relay::Sites* sites = nullptr;
const relay::Site* own = nullptr;
bool verbose = false;

[[noreturn]] void end(const std::string& why) {
    std::fprintf(stderr, "libmcastcoll-split: %s\n", why.c_str());
    _exit(kBadSites);
}

// The site of one of this host's addresses.  A host that is in several, as a gateway's may be, is told by
// MCASTCOLL_SITE.
const relay::Site* site_here() {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) end(std::string("cannot tell this host's addresses: ") + std::strerror(errno));
    const relay::Site* found = nullptr;
    for (const ifaddrs* one = all; one != nullptr && found == nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr) continue;
        const std::size_t size =
            one->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        const relay::Endpoint endpoint = relay::Endpoint::of(one->ifa_addr, size);
        if (endpoint.valid()) found = sites->site_of(endpoint);
    }
    freeifaddrs(all);
    return found;
}

__attribute__((constructor)) void load() try {
    const KeepErrno keep;
    const char* const path = secure_getenv("MCASTCOLL_SITES");
    const char* const name = secure_getenv("MCASTCOLL_SITE");
    const char* const say = secure_getenv("MCASTCOLL_SPLIT_VERBOSE");
    if (path == nullptr || *path == '\0') return;
    verbose = say != nullptr && *say != '\0' && std::strcmp(say, "0") != 0;
    auto read = relay::read_sites(path);
    if (!read) end(read.error().message);
    sites = new relay::Sites(std::move(read.value()));
    if (name == nullptr || *name == '\0') {
        own = site_here();
    } else {
        own = sites->named(name);
        if (own == nullptr) end(std::string(path) + " has no site \"" + name + "\", as MCASTCOLL_SITE says");
    }
    if (verbose && own == nullptr)
        std::fprintf(stderr, "libmcastcoll-split[%d]: this host is in no site of %s\n", getpid(), path);
} catch (const std::bad_alloc&) {
    end("no memory for the sites file");
}

}  // namespace

bool routing() noexcept {
    return own != nullptr;
}

const relay::Endpoint* gateway_to(const relay::Endpoint& target) noexcept {
    const relay::Site* const site = sites->site_of(target);
    if (site == nullptr || site == own) return nullptr;
    if (target == site->gateway || target == site->wan)
        return nullptr;  // gateways talk to each other themselves
    return &own->gateway;
}

bool from_gateway(const relay::Endpoint& peer) noexcept {
    return peer.same_host(own->gateway);
}

void tell(const char* what, int fd, const relay::Endpoint& peer) noexcept try {
    if (!verbose) return;
    const KeepErrno keep;
    std::fprintf(stderr, "libmcastcoll-split[%d]: descriptor %d: %s %s\n", getpid(), fd, what,
                 peer.to_string().c_str());
} catch (const std::bad_alloc&) {
    return;
}

}  // namespace mcastcoll::split
