#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probes.h"

namespace mcastcoll::doctor {
namespace {

std::uint64_t limit_of(int resource) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return 0;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

// Whether a process can read another's memory. Two children of this process have the same relation as two
// ranks on a host.
Look<bool> read_a_sibling() {
    static volatile std::uint64_t word = 0;
    const pid_t read_from = ::fork();
    if (read_from < 0)
        return Look<bool>::failed(fmt::format("cannot start a process: {}", ::strerror(errno)));
    if (read_from == 0) {
        ::poll(nullptr, 0, 10'000);
        ::_exit(0);
    }
    word = 0x6d63636f;  // in this process and the next child, but not in the first
    const pid_t reader = ::fork();
    if (reader == 0) {
        std::uint64_t copy = 1;
        const iovec own{&copy, sizeof copy};
        const iovec other{const_cast<std::uint64_t*>(&word), sizeof word};
        const ssize_t got = ::process_vm_readv(read_from, &own, 1, &other, 1, 0);
        ::_exit(got == sizeof copy && copy == 0 ? 0 : got < 0 && errno > 0 && errno < 255 ? errno : 255);
    }
    int status = 0;
    const bool tested = reader > 0 && ::waitpid(reader, &status, 0) == reader && WIFEXITED(status);
    ::kill(read_from, SIGKILL);
    ::waitpid(read_from, nullptr, 0);
    if (!tested) return Look<bool>::failed("the process that ran this test failed");
    const int code = WEXITSTATUS(status);
    if (code == 0 || code == EPERM) return code == 0;
    return Look<bool>::failed(fmt::format("process_vm_readv: {}", ::strerror(code)));
}

}  // namespace

Memory look_at_memory() {
    Memory memory;
    struct statvfs system {};
    if (::statvfs("/dev/shm", &system) == 0) {
        memory.shm_bytes = std::uint64_t{system.f_blocks} * system.f_frsize;
        memory.shm_free = std::uint64_t{system.f_bavail} * system.f_frsize;
    } else {
        memory.shm_bytes = memory.shm_free =
            Look<std::uint64_t>::failed(fmt::format("/dev/shm: {}", ::strerror(errno)));
    }
    memory.locked = limit_of(RLIMIT_MEMLOCK);
    memory.files = limit_of(RLIMIT_NOFILE);
    memory.ptrace_scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    memory.reads_neighbour = read_a_sibling();
    return memory;
}

}  // namespace mcastcoll::doctor
