#include "host_members.h"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/system.h"

namespace mcastcoll::test {
namespace {

int member(const host::TeamConfig& config, const std::function<int(host::Team&)>& body) {
    auto team = join(config);
    if (!team) {
        fmt::print(stderr, "member {}: {}\n", config.self, team.error().message);
        return 90;
    }
    return body(*team.value());
}

int run_threads(host::TeamConfig config, std::uint32_t count, const std::function<int(host::Team&)>& body) {
    config.self = 0;
    auto first = host::Team::open(config);
    if (!first) return fmt::print(stderr, "member 0: {}\n", first.error().message), 1;
    config.segment = first.value()->segment();
    std::vector<int> results(count, 0);
    std::vector<std::thread> threads;
    for (std::uint32_t self = 1; self < count; ++self)
        threads.emplace_back([&, self, own = config]() mutable {
            own.self = self;
            results[self] = member(own, body);
        });
    results[0] = body(*first.value());
    for (std::thread& thread : threads) thread.join();
    int failures = 0;
    for (const int result : results) failures += result != 0;
    return failures;
}

int run_processes(host::TeamConfig config, std::uint32_t count, const std::function<int(host::Team&)>& body) {
    const pid_t parent = ::getpid();
    std::vector<pid_t> children;
    for (std::uint32_t self = 0; self < count; ++self) {
        config.self = self;
        const pid_t child = ::fork();
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(91);
            const int result = member(config, body);
            std::fflush(nullptr);
            ::_exit(result);
        }
        if (child > 0) children.push_back(child);
    }
    int failures = static_cast<int>(count - children.size());
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        if (status == 0) continue;
        ++failures;
        if (WIFSIGNALED(status))
            fmt::print(stderr, "process {} was ended by signal {}\n", child, WTERMSIG(status));
    }
    return failures;
}

}  // namespace

host::TeamConfig fresh_config(const MembersOptions& options) {
    host::TeamConfig config = options.config;
    auto name = host::Segment::draw_name();
    if (name) config.name = name.value();
    config.key = stable_hash(std::as_bytes(std::span(config.name)), 1);
    config.size = options.count;
    return config;
}

Result<std::unique_ptr<host::Team>> join(const host::TeamConfig& config) {
    const Nanoseconds give_up = monotonic_now() + Nanoseconds::from_ms(60'000);
    for (;;) {
        auto team = host::Team::open(config);
        // The segment does not exist yet, or is not initialized.
        const bool early = !team && (team.error().code == ENOENT || team.error().code == EAGAIN);
        if (!early || monotonic_now() > give_up) return team;
        ::usleep(200);
    }
}

int run_members(const MembersOptions& options, const std::function<int(host::Team&)>& body) {
    const host::TeamConfig config = fresh_config(options);
    std::fflush(nullptr);
    return options.threads ? run_threads(config, options.count, body)
                           : run_processes(config, options.count, body);
}

}  // namespace mcastcoll::test
