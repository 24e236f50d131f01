#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "judging.h"

namespace mcastcoll::doctor {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMinShm = 64 * kMiB, kMinFree = 16 * kMiB;
constexpr std::uint64_t kMinLocked = 16 * kMiB;  // 4 MiB for 1,024 receive buffers of 4 KiB, and a reserve
constexpr std::uint64_t kMinFiles = 1024;

void judge_shared_memory(Judging& judging) {
    judging.find_where(
        [](const Host& host) { return host.memory.shm_bytes && *host.memory.shm_bytes < kMinShm; },
        [](const Host& host) {
            return Finding{"shm-small",
                           Severity::limits,
                           fmt::format("/dev/shm has only {}.", size_text(*host.memory.shm_bytes)),
                           "It was mounted with this size; containers mostly get 64 MiB.",
                           "Processes on one host may find no room for shared memory; their collectives then "
                           "use the network.",
                           "mount -o remount,size=50% /dev/shm\n"
                           "for containers: docker run --shm-size=1g, or --ipc=host",
                           {}};
        });
    judging.find_where(
        [](const Host& host) {
            return host.memory.shm_bytes && *host.memory.shm_bytes >= kMinShm && host.memory.shm_free &&
                   *host.memory.shm_free < kMinFree;
        },
        [](const Host& host) {
            return Finding{"shm-full",
                           Severity::limits,
                           fmt::format("/dev/shm is full: {} of {} are free.",
                                       size_text(*host.memory.shm_free), size_text(*host.memory.shm_bytes)),
                           "It contains files, perhaps of jobs that were killed.",
                           "Processes on one host may find no room for shared memory; their collectives then "
                           "use the network.",
                           "ls -l /dev/shm, and remove files that are no longer needed",
                           {}};
        });
    for (const unsigned i : judging.present())
        if (!judging.host(i).memory.shm_bytes)
            judging.unseen("the size of /dev/shm", judging.host(i).memory.shm_bytes.why_not);
}

Finding reading_refused(const Host& host) {
    const Look<std::uint64_t>& scope = host.memory.ptrace_scope;
    const bool yama = scope && *scope > 0;
    return {
        "cma-refused",
        Severity::limits,
        "A process may not read the memory of another process of the same user.",
        yama ? fmt::format("kernel.yama.ptrace_scope is {}.", *scope)
             : "process_vm_readv is refused (EPERM) by a container's seccomp profile or a security module.",
        "Long messages between processes on one host are copied twice instead of once.",
        yama ? "sysctl -w kernel.yama.ptrace_scope=0" : "for containers: docker run --cap-add=SYS_PTRACE",
        {}};
}

void judge_clock(Judging& judging) {
    judging.find_where(
        [](const Host& host) {
            const auto& source = host.machine.clock_source;
            return source && (*source == "hpet" || *source == "acpi_pm" || (*source).ends_with("jiffies"));
        },
        [](const Host& host) {
            return Finding{
                "clock-slow",
                Severity::limits,
                fmt::format("The kernel's clock is {}, which is slow to read.", *host.machine.clock_source),
                "The kernel found the processor's time stamp counter unstable, or is configured not to use "
                "it.",
                "Each read of the clock takes a microsecond or more; a broadcast needs several reads.",
                "dmesg | grep -i -e clocksource -e tsc shows the reason; on the kernel's command line: "
                "tsc=reliable",
                {}};
        });
    judging.find_where(
        [](const Host& host) {
            const auto& all = host.machine.governors;
            return std::any_of(all.begin(), all.end(), [](const std::string& one) {
                return one == "ondemand" || one == "conservative" || one == "powersave";
            });
        },
        [](const Host& host) {
            return Finding{"clock-scaled",
                           Severity::note,
                           fmt::format("The clock rate of the cores is scaled by {}.",
                                       fmt::join(host.machine.governors, ", ")),
                           "This is the kernel's setting for saving power.",
                           "A process that has waited starts slowly; small collectives take longer.",
                           "cpupower frequency-set -g performance",
                           {}};
        });
}

// Containers of one machine, treated as different hosts by the provider.
void judge_containers(Judging& judging) {
    std::map<std::string, std::vector<unsigned>> machines;
    for (const unsigned i : judging.present())
        if (!judging.host(i).machine.boot.empty()) machines[judging.host(i).machine.boot].push_back(i);
    for (const auto& [boot, hosts] : machines) {
        const Machine& first = judging.host(hosts.front()).machine;
        std::vector<std::string> differ;
        std::size_t others = 0;
        const auto look = [&](const char* what, const char* option, auto field) {
            const bool same = std::all_of(hosts.begin(), hosts.end(), [&](unsigned i) {
                return judging.host(i).machine.*field == first.*field;
            });
            if (!same) differ.push_back(fmt::format("{} ({})", what, option));
        };
        for (const unsigned i : hosts) others += judging.host(i).machine.host != first.host ? 1 : 0;
        if (others == 0) continue;
        look("network", "--net=host", &Machine::net_namespace);
        look("process numbers", "--pid=host", &Machine::pid_namespace);
        look("user numbers", "--userns=host", &Machine::user_namespace);
        look("/dev/shm", "--ipc=host", &Machine::shm);
        look("user", "--user", &Machine::user);
        judging.find(
            {"one-machine",
             Severity::note,
             fmt::format("{} are on one machine, but count as different hosts.", judging.names(hosts)),
             fmt::format("They run under one kernel, but do not share: {}.", fmt::join(differ, ", ")),
             "Messages between them use the network instead of shared memory, and they share the machine's "
             "cores.",
             "If that is not intended, start the containers with the options in parentheses (Docker's "
             "and Podman's).",
             {}},
            hosts);
    }
}

}  // namespace

void judge_memory(Judging& judging) {
    judge_shared_memory(judging);
    judging.find_where(
        [](const Host& host) { return host.memory.reads_neighbour && !*host.memory.reads_neighbour; },
        reading_refused);
    for (const unsigned i : judging.present())
        if (!judging.host(i).memory.reads_neighbour)
            judging.unseen("reading a neighbour's memory", judging.host(i).memory.reads_neighbour.why_not);
    judging.find_where(
        [](const Host& host) { return host.memory.files != 0 && host.memory.files < kMinFiles; },
        [](const Host& host) {
            return Finding{"files-few",
                           Severity::limits,
                           fmt::format("A process may open only {} files.", host.memory.files),
                           "ulimit -n is low.",
                           "Joins of large groups, or of many groups, fail for lack of file descriptors.",
                           "ulimit -n 65536, or LimitNOFILE= and /etc/security/limits.conf",
                           {}};
        });
    if (judging.present().empty()) return;
    const Memory& memory = judging.host(judging.present().front()).memory;
    if (!judging.found("shm-small") && !judging.found("shm-full") && memory.shm_bytes)
        judging.fine(fmt::format("/dev/shm has {}", size_text(*memory.shm_bytes)));
    if (!judging.found("cma-refused") && memory.reads_neighbour)
        judging.fine("processes of a host may copy from each other's memory");
}

void judge_rdma(Judging& judging) {
    judging.find_where(
        [](const Host& host) {
            return !host.rdma.group && (!host.rdma.devices.empty() || host.libraries.wants_verbs);
        },
        [](const Host& host) {
            const bool none = host.rdma.devices.empty();
            return Finding{none ? "rdma-missing" : "rdma-refused",
                           host.libraries.wants_verbs ? Severity::limits : Severity::note,
                           none ? std::string("RDMA is selected, but there is no RDMA device.")
                                : fmt::format("No multicast group can be joined on {}.",
                                              fmt::join(host.rdma.devices, ", ")),
                           host.rdma.group.why_not + ".",
                           "Multicasts use UDP instead.",
                           none ? "unset FI_MCASTCOLL_MULTICAST, or load the device's driver"
                                : "FI_MCASTCOLL_IFACE=NAME with the interface that belongs to the device; on "
                                  "InfiniBand check whether a subnet manager runs (sminfo)",
                           {}};
        });
    judging.find_where(
        [](const Host& host) { return !host.rdma.devices.empty() && host.memory.locked < kMinLocked; },
        [](const Host& host) {
            return Finding{
                "memlock-small",
                Severity::limits,
                fmt::format("A process may lock only {} of memory.", size_text(host.memory.locked)),
                "ulimit -l is low.",
                "RDMA needs locked memory: fewer datagrams can be buffered, so more are lost.",
                "ulimit -l unlimited, or LimitMEMLOCK=infinity and /etc/security/limits.conf",
                {}};
        });
    if (judging.present().empty() || judging.found("rdma-missing") || judging.found("rdma-refused")) return;
    const Rdma& first = judging.host(judging.present().front()).rdma;
    judging.fine(first.group ? fmt::format("a multicast group can be joined over RDMA ({})", *first.group)
                             : fmt::format("no RDMA, so UDP is used ({})", first.group.why_not));
}

void judge_machine(Judging& judging) {
    judge_clock(judging);
    judge_containers(judging);
    judging.find_where(
        [](const Host& host) { return host.machine.is_virtual; },
        [](const Host& host) {
            return Finding{
                "virtual",
                Severity::note,
                host.machine.container.empty()
                    ? std::string("This is a virtual machine.")
                    : fmt::format("This is a virtual machine, and a container ({}).", host.machine.container),
                "The processor reports a hypervisor.",
                "The hypervisor may take cores away at any time, and most virtual networks of clouds carry "
                "no multicast.",
                "No action is needed if the hosts receive from each other.",
                {}};
        });
    if (judging.present().empty()) return;
    const Machine& first = judging.host(judging.present().front()).machine;
    if (!judging.found("clock-slow") && first.clock_source)
        judging.fine(fmt::format("clock: {}; {} to run on", *first.clock_source,
                                 first.cores == 1 ? "1 core" : fmt::format("{} cores", first.cores)));
}

}  // namespace mcastcoll::doctor
