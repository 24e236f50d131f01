#include "support/host.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "support/failure.h"

namespace mcastcoll::fabtest {
namespace {

std::string state_of(const std::string& cluster) {
    return "/run/mcastcoll/" + cluster;
}

}  // namespace

void hide_kernel_symbols() {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, nullptr) != 0) return;
    (void)mount("/dev/null", "/proc/kallsyms", "none", MS_BIND, nullptr);
}

unsigned hosts_of(const std::string& cluster) {
    std::ifstream list(state_of(cluster) + "/hosts");
    unsigned hosts = 0;
    for (std::string line; std::getline(list, line);) ++hosts;
    if (hosts == 0) fail("the cluster '{}' is not up: see util/cluster/up", cluster);
    return hosts;
}

void enter_host(const std::string& cluster, unsigned number) {
    const std::string name = fmt::format("h{}", number);
    const std::string network = fmt::format("/run/netns/{}-{}", cluster, name);
    const std::string memory = fmt::format("{}/shm/{}", state_of(cluster), name);
    const auto must = [&](const char* what, bool done) {
        if (!done) fail("cannot be on {} of '{}': {}: {}", name, cluster, what, strerror(errno));
    };
    const int host = open(network.c_str(), O_RDONLY | O_CLOEXEC);
    must(network.c_str(), host >= 0);
    must("its network", setns(host, CLONE_NEWNET) == 0);
    close(host);
    must("a name of its own", unshare(CLONE_NEWUTS | CLONE_NEWNS) == 0);
    must("its name", sethostname(name.data(), name.size()) == 0);
    must("mounts of its own", mount("none", "/", "none", MS_REC | MS_PRIVATE, nullptr) == 0);
    must(memory.c_str(), mount(memory.c_str(), "/dev/shm", "none", MS_BIND, nullptr) == 0);
}

}  // namespace mcastcoll::fabtest
