#include "group_process.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system.h"
#include "group_child.h"

namespace mcastcoll::doctor {
namespace {

constexpr int kOpening_ms = 20'000, kRunning_ms = 60'000, kEnding_ms = 5'000;
constexpr std::size_t kMaxFrame = std::size_t{64} << 20;

bool read_all(int descriptor, void* to, std::size_t size, const Deadline& deadline) {
    auto* at = static_cast<char*>(to);
    while (size > 0) {
        pollfd ready{descriptor, POLLIN, 0};
        if (::poll(&ready, 1, deadline.left_ms()) <= 0) {
            if (deadline.over()) return false;
            continue;
        }
        const ssize_t got = ::read(descriptor, at, size);
        if (got == 0 || (got < 0 && errno != EINTR)) return false;
        if (got < 0) continue;
        at += got;
        size -= static_cast<std::size_t>(got);
    }
    return true;
}

constexpr std::string_view kLogLine = "libfabric:";

// The lines of a file, each with its line break.
std::vector<std::string> lines_of(const FileDescriptor& file) {
    constexpr std::size_t kMax = std::size_t{1} << 20;
    std::vector<std::string> lines;
    if (!file.valid()) return lines;
    std::string text(kMax, '\0');
    const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    for (std::size_t at = 0, end = 0; at < text.size(); at = end) {
        end = std::min(text.find('\n', at), text.size() - 1) + 1;
        lines.push_back(text.substr(at, end - at));
    }
    return lines;
}

}  // namespace

bool write_frame(int descriptor, const std::string& text) {
    const auto size = static_cast<std::uint32_t>(text.size());
    std::string all(reinterpret_cast<const char*>(&size), sizeof size);
    all += text;
    for (std::size_t at = 0; at < all.size();) {
        const ssize_t put = ::write(descriptor, all.data() + at, all.size() - at);
        if (put < 0 && errno != EINTR) return false;
        if (put > 0) at += static_cast<std::size_t>(put);
    }
    return true;
}

std::optional<std::string> read_frame(int descriptor, const Deadline& deadline) {
    std::uint32_t size = 0;
    if (!read_all(descriptor, &size, sizeof size, deadline) || size > kMaxFrame) return {};
    std::string text(size, '\0');
    if (!read_all(descriptor, text.data(), size, deadline)) return {};
    return text;
}

GroupProcess::GroupProcess(pid_t process, FileDescriptor to, FileDescriptor from, FileDescriptor log)
    : process_(process), to_(std::move(to)), from_(std::move(from)), log_(std::move(log)) {}
GroupProcess::GroupProcess(GroupProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      to_(std::move(other.to_)),
      from_(std::move(other.from_)),
      log_(std::move(other.log_)) {}

GroupProcess& GroupProcess::operator=(GroupProcess&& other) noexcept {
    std::swap(process_, other.process_);
    std::swap(to_, other.to_);
    std::swap(from_, other.from_);
    std::swap(log_, other.log_);
    return *this;
}

// Executes this program anew, so that the process has no threads and no memory of this one.
Result<GroupProcess> GroupProcess::start() {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0) return system_error(errno, "pipe");
    FileDescriptor to_read(to[0]), to_write(to[1]);
    if (::pipe2(from, O_CLOEXEC) != 0) return system_error(errno, "pipe");
    FileDescriptor from_read(from[0]), from_write(from[1]);
    // The provider's warnings give the reason when a group fails. If the user has set FI_LOG_LEVEL, the log
    // goes to the user's standard error.
    FileDescriptor log(::getenv("FI_LOG_LEVEL") == nullptr ? ::memfd_create("log", MFD_CLOEXEC) : -1);
    std::vector<char*> environment;
    for (char** one = environ; *one != nullptr; ++one) environment.push_back(*one);
    char level[] = "FI_LOG_LEVEL=warn";
    if (log.valid()) environment.push_back(level);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, to_read.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, from_write.get(), STDOUT_FILENO);
    if (log.valid()) ::posix_spawn_file_actions_adddup2(&actions, log.get(), STDERR_FILENO);
    char self[] = "/proc/self/exe", name[] = "mcastcoll-doctor", word[] = "--group-process";
    char* words[] = {name, word, nullptr};
    pid_t process = 0;
    const int failed = ::posix_spawn(&process, self, &actions, nullptr, words, environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return system_error(failed, "cannot start a process");
    ::signal(SIGPIPE, SIG_IGN);
    return GroupProcess(process, std::move(to_write), std::move(from_read), std::move(log));
}

GroupProcess::~GroupProcess() {
    if (process_ == 0) return;
    to_.reset();
    for (const Deadline deadline(kEnding_ms); ::waitpid(process_, nullptr, WNOHANG) == 0;) {
        if (deadline.over()) {
            ::kill(process_, SIGKILL);
            ::waitpid(process_, nullptr, 0);
            break;
        }
        ::poll(nullptr, 0, 10);
    }
    print_log();
}

// Copies output other than libfabric's log to standard error, such as a sanitizer's report.
void GroupProcess::print_log() const {
    for (const std::string& line : lines_of(log_))
        if (!line.starts_with(kLogLine)) (void)!::write(STDERR_FILENO, line.data(), line.size());
}

std::string GroupProcess::last_warning() const {
    constexpr std::string_view kWarning = "<warn> ";
    std::string last;
    for (std::string& line : lines_of(log_)) {
        const auto at = line.find(kWarning);
        if (!line.starts_with(kLogLine) || line.find(":mcastcoll:") > at || at == std::string::npos) continue;
        last = line.substr(at + kWarning.size());
        while (!last.empty() && (last.back() == '\n' || last.back() == '.')) last.pop_back();
    }
    return last;
}

GroupProcess::Opened GroupProcess::opened() {
    Opened opened;
    const auto provider = read_frame(from_.get(), Deadline(kOpening_ms));
    const auto why_not = provider ? read_frame(from_.get(), Deadline(kOpening_ms)) : std::nullopt;
    const auto inner = why_not ? read_frame(from_.get(), Deadline(kOpening_ms)) : std::nullopt;
    const auto address = inner ? read_frame(from_.get(), Deadline(kOpening_ms)) : std::nullopt;
    if (!address) {
        opened.provider = Look<std::string>::failed("the process that opened it ended, or took too long");
        return opened;
    }
    opened.provider = why_not->empty() ? Look<std::string>(*provider) : Look<std::string>::failed(*why_not);
    opened.inner = *inner;
    opened.address = *address;
    return opened;
}

EndToEnd GroupProcess::run(const std::vector<std::string>& addresses, unsigned self,
                           const std::string& comm_key) {
    EndToEnd result;
    bool sent = write_frame(to_.get(), fmt::format("{} {}", addresses.size(), self)) &&
                write_frame(to_.get(), comm_key);
    for (const std::string& address : addresses) sent = sent && write_frame(to_.get(), address);
    const auto answer = sent ? read_frame(from_.get(), Deadline(kRunning_ms)) : std::nullopt;
    if (!answer) {
        result.error = sent ? fmt::format("it had not ended after {} s", kRunning_ms / 1000)
                            : "the process that runs this test has ended";
        result.warning = last_warning();
        return result;
    }
    unsigned long sent_count = 0, received = 0, repaired = 0;
    int at = 0;
    if (::sscanf(answer->c_str(), "%u %lu %lu %lu %n", &result.members, &sent_count, &received, &repaired,
                 &at) < 4) {
        result.error = "cannot parse its answer";
        return result;
    }
    result.multicast_sent = sent_count;
    result.multicast_received = received;
    result.repaired = repaired;
    result.error = answer->substr(static_cast<std::size_t>(at));
    if (!result.error.empty()) result.warning = last_warning();
    return result;
}

}  // namespace mcastcoll::doctor
