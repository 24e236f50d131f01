// For test_hostset.sh: forms a host set, exchanges, and prints the result.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "arguments/arguments.h"
#include "hostset/host_set.h"
#include "hostset/options.h"

int main(int argc, char** argv) {
    using namespace mcastcoll;
    Arguments arguments("hostset_check", "Forms a host set and exchanges ROUNDS times.", MCC_VERSION);
    hostset::Options options;
    std::string dies = "-", sleeps = "-";
    unsigned rounds = 2, bytes = 0, pause_ms = 0;
    options.add_to(arguments);
    arguments.option("--rounds", rounds, "");
    arguments.option("--bytes", bytes, "more that each gives");
    arguments.option("--dies", dies, "HOST that is killed before its second exchange");
    arguments.option("--sleeps", sleeps, "HOST that stops for six seconds before its second exchange");
    arguments.option("--pause", pause_ms, "milliseconds after each exchange");
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    const auto formed = hostset::HostSet::form("hostset_check", options);
    if (!formed) {
        fmt::print(stderr, "hostset_check: {}\n", formed.error().message);
        return 2;
    }
    hostset::HostSet& host_set = *formed.value();
    // All processes use the arguments of the head.
    const auto received =
        host_set.exchange(fmt::format("{} {} {} {} {}", rounds, bytes, pause_ms, dies, sleeps), 10);
    if (!received || !received.value()[0]) return 3;
    char hosts[2][256] = {};
    (void)std::sscanf(received.value()[0]->c_str(), "%u %u %u %255[^ ] %255[^ ]", &rounds, &bytes, &pause_ms,
                      hosts[0], hosts[1]);
    const std::string& own = host_set.hosts()[host_set.rank()];
    for (unsigned round = 0; round < rounds; ++round) {
        if (round == 1 && own == hosts[0]) ::raise(SIGKILL);
        if (round == 1 && own == hosts[1]) ::sleep(6);
        const auto all = host_set.exchange(fmt::format("{}.{}{}", own, round, std::string(bytes, 'x')), 3);
        if (!all) {
            fmt::print(stderr, "hostset_check: {}\n", all.error().message);
            return 3;
        }
        std::string text;
        for (std::uint32_t rank = 0; rank < host_set.size(); ++rank) {
            const auto& one = all.value()[rank];
            text += one ? fmt::format(" {}", one->substr(0, one->find('x')))
                        : fmt::format(" ({}: {})", host_set.hosts()[rank], host_set.loss_reason(rank));
            if (one && !one->ends_with(std::string(bytes, 'x'))) return 4;
        }
        if (host_set.is_head() || rounds == 1)
            fmt::print("{}/{} {}{}\n", host_set.rank(), host_set.size(),
                       host_set.head_works() ? "works" : "leads", text);
        std::fflush(stdout);
        ::usleep(pause_ms * 1000);
    }
    return 0;
}
