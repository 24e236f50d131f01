// split_check [CASE] -- connections between two sites, through a relay, by programs with the split library.
//
// split_check gateway --sites FILE --site NAME -- a gateway that only splits connections, for comparisons on
// the cluster.
//
// All sites are on the loopback interface: 127.11/16 is one site, 127.12/16 the other.  The library is linked
// in, so that sanitizers cover it, too; it is active in the two processes started with MCASTCOLL_SITES.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "split_cases.h"
#include "split_net.h"

using namespace mcastcoll;
using namespace mcastcoll::fabtest;

namespace {

constexpr unsigned kLimit_s = 120;  // of one case: a busy machine must not fail the test

// Starts this program with other arguments in a child, as a process of the site: the sites file is in its
// environment.
pid_t start(const char* self, const std::string& sites, const char* site,
            std::vector<std::string> arguments) {
    const pid_t child = fork();
    MUST(child >= 0);
    if (child != 0) return child;
    setenv("MCASTCOLL_SITES", sites.c_str(), 1);
    setenv("MCASTCOLL_SITE", site, 1);
    std::vector<char*> words{const_cast<char*>(self)};
    for (std::string& one : arguments) words.push_back(one.data());
    words.push_back(nullptr);
    execv("/proc/self/exe", words.data());
    std::_Exit(127);
}

bool ended_well(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string write_sites(const std::string& text) {
    char path[] = "/tmp/split_check.XXXXXX";
    const int fd = mkstemp(path);
    MUST(fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(fd);
    return path;
}

std::string sites_with(const std::array<std::uint16_t, 2>& ports) {
    return "[site a]\nnetworks = 127.11.0.0/16\ngateway = " + endpoint(kGatewayA, ports[0]).to_string() +
           "\n[site b]\nnetworks = 127.12.0.0/16\ngateway = " + endpoint(kGatewayB, ports[1]).to_string() +
           "\n";
}

bool passes(const char* self, std::size_t number) {
    const Case& one = all_cases()[number];
    int ports_pipe[2], listens[2];
    MUST(pipe(ports_pipe) == 0 && pipe(listens) == 0);
    const pid_t relay_process = fork();
    MUST(relay_process >= 0);
    if (relay_process == 0) run_relay(one.faults, ports_pipe[1]);
    close(ports_pipe[1]);
    std::array<std::uint16_t, 2> ports{};
    MUST(read(ports_pipe[0], ports.data(), sizeof ports) == sizeof ports);
    close(ports_pipe[0]);
    const std::string sites = write_sites(sites_with(ports)), which = std::to_string(number);
    const pid_t server = start(self, sites, "b", {"server", which, std::to_string(listens[1])});
    close(listens[1]);
    std::uint16_t port = 0;
    MUST(read(listens[0], &port, sizeof port) == sizeof port);
    close(listens[0]);
    const pid_t client = start(self, sites, "a", {"client", which, std::to_string(port)});
    const bool client_good = ended_well(client), server_good = ended_well(server);
    kill(relay_process, SIGKILL);
    waitpid(relay_process, nullptr, 0);
    unlink(sites.c_str());
    if (!client_good || !server_good)
        std::printf("     %s%s failed\n", client_good ? "" : "client ", server_good ? "" : "server");
    return client_good && server_good;
}

// Whether the library ends the program when it is loaded, before the program runs, because the sites file is
// unusable.
bool refuses(const char* self, const std::string& text, const char* site) {
    const std::string sites = write_sites(text);
    int status = 0;
    waitpid(start(self, sites, site, {"nothing"}), &status, 0);
    unlink(sites.c_str());
    return WIFEXITED(status) && WEXITSTATUS(status) == 126;
}

int act(const std::string& role, const Case& one, const std::string& number) {
    alarm(kLimit_s);
    if (role == "client") {
        one.client(endpoint(kServerHost, static_cast<std::uint16_t>(std::stoi(number))));
        return 0;
    }
    const int listener = listening(kServerHost, one.server_domain, 4096), ports_fd = std::stoi(number);
    const std::uint16_t port = own(listener).port;
    MUST(write(ports_fd, &port, sizeof port) == sizeof port);
    close(ports_fd);
    one.server(listener);
    return 0;
}

int run_all(const char* self, const char* only) {
    unsigned failed = 0, passed = 0;
    const auto report = [&](bool good, std::string_view what) {
        std::printf("%s %.*s\n", good ? "ok  " : "FAIL", static_cast<int>(what.size()), what.data());
        std::fflush(stdout);
        ++(good ? passed : failed);
    };
    for (std::size_t i = 0; i < all_cases().size(); i++)
        if (only == nullptr || all_cases()[i].name == only) report(passes(self, i), all_cases()[i].name);
    if (only == nullptr) {
        report(refuses(self, "[site a]\nnetworks = 127.11.0.0/16\ngatway = 127.11.0.1:1\n", ""),
               "a bad sites file");
        report(refuses(self, sites_with({1, 1}), "c"), "a site that is not in it");
        report(!refuses(self, sites_with({1, 1}), "a"), "a good one");
    }
    std::printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && std::strcmp(argv[1], "--version") == 0) return std::puts("mcastcoll " MCC_VERSION) < 0;
    if (argc == 2 && std::strcmp(argv[1], "--help") == 0)
        return std::puts(
                   "split_check [CASE]: connections between two sites, through a relay; without CASE, all of "
                   "them") < 0;
    if (argc == 2 && std::strcmp(argv[1], "nothing") == 0) return 0;
    if (argc == 6 && std::strcmp(argv[1], "gateway") == 0) run_gateway(argv[3], argv[5]);
    if (argc == 4) return act(argv[1], all_cases()[static_cast<std::size_t>(std::stoi(argv[2]))], argv[3]);
    return run_all(argv[0], argc == 2 ? argv[1] : nullptr);
}
