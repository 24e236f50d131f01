// mcastcoll-gateway: connects a site with other sites; the connections of its processes share a few warm
// streams across wide area networks.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "arguments/arguments.h"
#include "base/secret_file.h"
#include "gateway/gateway.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::gateway;

struct Command {
    Settings settings;
    std::string sites, site, listen, status;
    double session_timeout_s = 30, silence_s = 5, drain_s = 5, spin_us = 0;
    unsigned heartbeat_ms = 100;
    bool json = false, check = false;
};

int complain(const std::string& what, int code) {
    fmt::print(stderr, "mcastcoll-gateway: {}\n", what);
    return code;
}

void add_options(Arguments& arguments, Command& command) {
    arguments.option("--sites", command.sites, "the sites file");
    arguments.option("--site", command.site, "this gateway's own site");
    arguments.option("--listen", command.listen,
                     "ADDRESS:PORT to listen at [all addresses, at the port of the sites file]");
    arguments.option("--memory", command.settings.memory_mib, "maximum of MiB to buffer").range(16, 1 << 20);
    arguments
        .option("--connections", command.settings.max_connections,
                "maximum number of connections of processes")
        .range(1, 1 << 20);
    arguments
        .option("--session-timeout", command.session_timeout_s,
                "seconds without any stream after which a session's connections are reset")
        .range(0.1, 86400.0);
    arguments
        .option("--silence", command.silence_s, "seconds of silence after which a stream counts as broken")
        .range(0.1, 3600.0);
    arguments.option("--heartbeat", command.heartbeat_ms, "milliseconds between heartbeats on an idle stream")
        .range(1, 10000);
    arguments.option("--drain", command.drain_s, "seconds after SIGTERM in which connections may end")
        .range(0.0, 86400.0);
    arguments.option("--spin", command.spin_us, "microseconds to poll for work before sleeping")
        .range(0.0, 1e6);
    arguments.flag("--check", command.check, "check the sites file and the key, and exit");
    arguments.option("--status", command.status,
                     "ADDRESS:PORT of a running gateway: print its status, and exit");
    arguments.flag("--json", command.json, "with --status: print one JSON object");
    arguments.flag("--verbose", command.settings.verbose, "log events of gateway sessions");
    arguments.daily({"--sites", "--site", "--listen", "--memory", "--connections", "--check", "--status",
                     "--json", "--verbose"});
}

int show_status(const Command& command) {
    auto endpoint = sites::Endpoint::parse(command.status);
    if (!endpoint) return complain("--status: " + endpoint.error().message, 2);
    auto page = request_status(endpoint.value(), command.json);
    if (!page) return complain(page.error().message, 1);
    fmt::print("{}", page.value());
    return 0;
}

Nanoseconds seconds(double count) {
    return {static_cast<std::int64_t>(count * 1e9)};
}

// Reads the sites file and the key file, and completes the settings from them and from the options.
Result<void> settle(Command& command) {
    auto sites = sites::read_sites(command.sites);
    if (!sites) return sites.error();
    Settings& settings = command.settings;
    settings.sites = std::move(sites.value());
    const sites::Site* own = settings.sites.named(command.site);
    if (own == nullptr)
        return Error{EINVAL, fmt::format("--site {}: {} has no such site", command.site, command.sites)};
    settings.own = static_cast<std::size_t>(own - settings.sites.sites.data());
    settings.listen = own->gateway;
    if (!own->wan.same_host(own->gateway)) settings.listen.address.fill(std::byte{0});
    if (own->wan.port != own->gateway.port && command.listen.empty())
        return Error{
            EINVAL,
            fmt::format("site {} has two ports, {} and {}: give the port of this machine with --listen",
                        own->name, own->gateway.port, own->wan.port)};
    if (!command.listen.empty()) {
        auto listen = sites::Endpoint::parse(command.listen);
        if (!listen || listen.value().port == 0)
            return Error{EINVAL, fmt::format("--listen {}: give ADDRESS:PORT", command.listen)};
        settings.listen = listen.value();
    }
    if (!settings.sites.sessions.key_file.empty()) {
        auto secret = read_secret_file(settings.sites.sessions.key_file);
        if (!secret) return Error{secret.error().code, "key: " + secret.error().message};
        settings.key = wire::derive({}, "trunks", secret.value());
    }
    settings.session_timeout = seconds(command.session_timeout_s);
    settings.silence = seconds(command.silence_s);
    settings.drain = seconds(command.drain_s);
    settings.heartbeat = Nanoseconds::from_ms(command.heartbeat_ms);
    settings.spin = seconds(command.spin_us * 1e-6);
    return {};
}

// Raises the limit of descriptors: one for each connection, and some for streams and new connections.
Result<void> get_descriptors(Settings& settings) {
    const std::size_t others = 64 + settings.sites.sites.size() * session::kMaxStreams * 2;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < others + 64)
        return Error{EMFILE,
                     fmt::format("only {} file descriptors are available: raise the limit (ulimit -n)",
                                 limit.rlim_cur)};
    settings.max_pending = std::min<std::size_t>(settings.max_pending, (limit.rlim_cur - others) / 4);
    const std::size_t possible = limit.rlim_cur - others - settings.max_pending;
    if (possible < settings.max_connections) {
        fmt::print(stderr,
                   "mcastcoll-gateway: at most {} connections instead of {}: only {} file descriptors are "
                   "available (ulimit -n)\n",
                   possible, settings.max_connections, limit.rlim_cur);
        settings.max_connections = possible;
    }
    return {};
}

int run(int argc, char** argv) {
    Arguments arguments(
        "mcastcoll-gateway",
        "Connects a site to other sites: connections of processes between sites share few, warm streams."
        "\n\n"
        "  mcastcoll-gateway --sites sites.conf --site lyon              run in the foreground\n"
        "  mcastcoll-gateway --sites sites.conf --site lyon --check      check the file\n"
        "  mcastcoll-gateway --status 192.0.2.1:7400                     status of a running gateway\n",
        MCC_VERSION);
    Command command;
    add_options(arguments, command);
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    if (!command.status.empty()) return show_status(command);
    if (command.sites.empty() || command.site.empty())
        return complain("--sites and --site are needed; see --help", 2);
    if (auto settled = settle(command); !settled) return complain(settled.error().message, 2);
    if (auto enough = get_descriptors(command.settings); !enough) return complain(enough.error().message, 1);
    if (command.check) return 0;
    // Frames are allocated and freed by the thousand: keep their memory instead of returning it to the
    // kernel.
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    Gateway gateway(command.settings);
    if (auto started = gateway.start(); !started) return complain(started.error().message, 1);
    return gateway.run();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        return complain(error.what(), 1);
    }
}
