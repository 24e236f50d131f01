#include "host/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "transport/watch_point.h"

namespace mcastcoll::host {

Process this_process() {
    Process self;
    self.pid = static_cast<std::uint32_t>(::getpid());
    if (auto start = transport::process_start_time(::getpid())) self.start_time = start.value();
    return self;
}

bool is_alive(std::uint32_t pid, std::uint64_t start_time) {
    const auto number = static_cast<pid_t>(pid);
    if (number == ::getpid()) return true;
    // The descriptor keeps the process id from being reused while the start time is read. It is closed
    // afterwards, because thousands of teams would need thousands of descriptors.
    const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
    if (!process.valid()) {
        if (errno == ESRCH) return false;
        if (errno != ENOSYS && errno != EPERM && errno != EMFILE && errno != ENFILE && errno != ENOMEM)
            return true;
        if (::kill(number, 0) != 0 && errno == ESRCH) return false;
    } else {
        pollfd entry{process.get(), POLLIN, 0};
        if (::poll(&entry, 1, 0) > 0) return false;
    }
    const auto found = transport::process_start_time(number);
    return !found || start_time == 0 || found.value() == start_time;
}

}  // namespace mcastcoll::host
