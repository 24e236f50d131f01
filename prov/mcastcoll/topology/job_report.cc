#include "topology/job_report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "base/new_file.h"
#include "base/system.h"
#include "topology/discover.h"
#include "transport/watch_point.h"

namespace mcastcoll::topology {
namespace {

constexpr std::string_view kSuffix = ".json";
constexpr const char* kWatched = "watched";
constexpr time_t kWatchedFor = 5;  // seconds

std::uint64_t own_pid_namespace() {
    struct stat found = {};
    return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

std::string program_name() {
    constexpr const char* kName = "/proc/self/comm";
    auto text = read_text(FileDescriptor(::open(kName, O_RDONLY | O_CLOEXEC)), kName, 64);
    return text && !text.value().empty() ? text.value().substr(0, text.value().size() - 1) : "";
}

std::string hex(Bytes bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte byte : bytes)
        text += {kDigits[std::to_integer<unsigned>(byte >> 4)],
                 kDigits[std::to_integer<unsigned>(byte & std::byte{15})]};
    return text;
}

// Length of the UTF-8 character at the start of the text in bytes; 0 if it is not valid UTF-8.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first > 0xf4 || length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    // Wrong: overlong encodings, surrogates, and code points beyond U+10FFFF.
    const unsigned second = length > 1 ? byte(1) : 0;
    const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                       (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    return wrong ? 0 : length;
}

// Returns a JSON string. Names may contain any bytes: invalid UTF-8 becomes U+FFFD.
std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const auto first = static_cast<unsigned char>(text.front());
        const std::size_t length = utf8_length(text);
        if (length == 0)
            out += "\ufffd";
        else if (first == '"' || first == '\\')
            out += {'\\', text.front()};
        else if (first < 0x20)
            out += fmt::format("\\u{:04x}", first);
        else
            out += text.substr(0, length);
        text.remove_prefix(std::max<std::size_t>(1, length));
    }
    return out + '"';
}

std::string to_json(const ReportedLevel& level) {
    return fmt::format(R"({{"level": {}, "connects": {}, "transport": {}, "algorithm": {}, "why": {}}})",
                       in_quotes(name_of(level.level)), level.connects, in_quotes(level.transport),
                       in_quotes(level.algorithm), in_quotes(level.why));
}

// A JSON list of text(item), one item per line.
template <typename Items, typename Text>
std::string list_of(const Items& items, Text text) {
    std::string out;
    for (const auto& item : items) out += (out.empty() ? "\n   " : ",\n   ") + text(item);
    return '[' + out + ']';
}

std::string to_json(const Counts& counts) {
    std::string text;
    for (const auto& [name, value] : counts)
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", in_quotes(name), value);
    return '{' + text + '}';
}

std::string to_json(const ReportedGroup& group) {
    return fmt::format(
        R"({{"key": "{:016x}", "rank": {}, "members": {}, "state": {}, "awaited": {}, "counters": {}, )"
        R"("policy": "{}", "levels": {}, "places": {}}})",
        group.key, index_of(group.rank), group.members, in_quotes(group.state),
        group.awaited == kNoRank ? "null" : fmt::format("{}", index_of(group.awaited)),
        to_json(group.counters), hex(encode(group.policy)),
        list_of(group.levels, [](const ReportedLevel& level) { return to_json(level); }),
        list_of(group.places, [](const Place& place) { return '"' + hex(encode(place)) + '"'; }));
}

// Returns whether the process is known to be gone, or its id to belong to another process.
bool is_dead(const ReportName& name) {
    const auto pid = static_cast<pid_t>(name.pid);
    if (::kill(pid, 0) != 0) return errno == ESRCH;
    auto start = transport::process_start_time(pid);
    return start && name.start_time != 0 && start.value() != name.start_time;
}

}  // namespace

std::vector<std::string> report_folders() {
    std::vector<std::string> folders;
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    if (runtime != nullptr && *runtime == '/') folders.push_back(fmt::format("{}/mcastcoll", runtime));
    folders.push_back(fmt::format("/dev/shm/mcastcoll-{}", ::geteuid()));
    return folders;
}

Result<FileDescriptor> open_report_folder(const std::string& folder, bool make) {
    if (make && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return system_error(errno, folder);
    FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened.valid()) return system_error(errno, folder);
    struct stat found = {};
    if (::fstat(opened.get(), &found) != 0) return system_error(errno, folder);
    if (found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
        return Error{EPERM, fmt::format("{} is open to other users; it is ignored", folder)};
    return opened;
}

std::optional<ReportName> parse_report_name(std::string_view text) {
    ReportName name;
    name.complete = !text.ends_with(kUnfinishedSuffix);
    if (!name.complete) text.remove_suffix(kUnfinishedSuffix.size());
    if (!text.ends_with(kSuffix)) return std::nullopt;
    text.remove_suffix(kSuffix.size());
    const char* at = text.data();
    const char* const end = at + text.size();
    for (std::uint64_t* number : {&name.pid, &name.start_time, &name.pid_namespace, &name.part}) {
        if (number != &name.pid && (at == end || *at++ != '.')) return std::nullopt;
        const auto [next, error] = std::from_chars(at, end, *number);
        if (error != std::errc()) return std::nullopt;
        at = next;
    }
    if (at != end || name.pid == 0 || name.pid > INT32_MAX) return std::nullopt;
    return name;
}

std::string to_string(const ReportName& name) {
    return fmt::format("{}.{}.{}.{}{}{}", name.pid, name.start_time, name.pid_namespace, name.part, kSuffix,
                       name.complete ? "" : kUnfinishedSuffix);
}

void request_report(const FileDescriptor& folder) {
    const FileDescriptor file(
        ::openat(folder.get(), kWatched, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.valid()) ::futimens(file.get(), nullptr);
}

std::vector<std::string> list_reports(const FileDescriptor& folder) {
    const std::uint64_t own_namespace = own_pid_namespace();
    std::vector<std::string> names;
    const int copy = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0) return names;
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(copy), &::closedir);
    if (list == nullptr) return ::close(copy), names;
    while (const dirent* entry = ::readdir(list.get())) {
        const auto name = parse_report_name(entry->d_name);
        if (!name) continue;
        if (name->pid_namespace == own_namespace && is_dead(*name))
            ::unlinkat(folder.get(), entry->d_name, 0);
        else if (name->complete)
            names.emplace_back(entry->d_name);
    }
    return names;
}

Result<JobReport> JobReport::open(unsigned part, const std::vector<std::string>& folders) {
    Error last;
    for (const std::string& folder : folders) {
        auto opened = open_report_folder(folder, true);
        if (opened) return JobReport(folder, std::move(opened).value(), part);
        last = opened.error();
    }
    return last;
}

JobReport::JobReport(std::string folder_name, FileDescriptor folder, unsigned part)
    : folder_name_(std::move(folder_name)), folder_(std::move(folder)), owner_(::getpid()) {
    ReportName name{static_cast<std::uint64_t>(owner_), 0, own_pid_namespace(), part, true};
    if (auto start = transport::process_start_time(owner_)) name.start_time = start.value();
    file_name_ = to_string(name);
}

void JobReport::remove_dead() const {
    list_reports(folder_);
}

JobReport::~JobReport() {
    if (folder_.valid() && ::getpid() == owner_) ::unlinkat(folder_.get(), file_name_.c_str(), 0);
}

bool JobReport::is_watched() const {
    struct stat found = {};
    return ::fstatat(folder_.get(), kWatched, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           ::time(nullptr) - found.st_mtime < kWatchedFor;
}

Result<void> JobReport::write(const Report& report) {
    const std::string text = fmt::format(
        "{{\"version\": 3, \"pid\": {}, \"host\": {}, \"program\": {},\n \"groups\": {},\n "
        "\"counters\": {}}}\n",
        owner_, in_quotes(host_name()), in_quotes(program_name()),
        list_of(report.groups, [](const ReportedGroup& group) { return to_json(group); }),
        to_json(report.counters));

    auto written = write_new_file(folder_.get(), file_name_, text, 0600);
    if (!written)
        return Error{written.error().code, fmt::format("{}: {}", folder_name_, written.error().message)};
    return {};
}

}  // namespace mcastcoll::topology
