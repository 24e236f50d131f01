#include "host/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/file_descriptor.h"
#include "base/system.h"
#include "host/process.h"

namespace mcastcoll::host {
namespace {

constexpr const char* kFolder = "/dev/shm";
constexpr const char* kPrefix = "mcastcoll-";

// Process ids are comparable only within one pid namespace.
std::uint64_t process_namespace() {
    struct stat found {};
    return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

// Whether the creator named in a file name is certainly dead.
bool is_left_over(const char* name) {
    unsigned long long space = 0, pid = 0, start = 0;
    if (std::sscanf(name, "mcastcoll-%llx-%llu-%llu-", &space, &pid, &start) != 3) return false;
    if (space == 0 || space != process_namespace() || pid == 0 || pid > INT32_MAX) return false;
    return !is_alive(static_cast<std::uint32_t>(pid), start);
}

// Number of unallocated bytes in the files of a directory.
std::uint64_t missing_bytes(DIR* folder) {
    std::uint64_t missing = 0;
    while (const dirent* entry = ::readdir(folder)) {
        struct stat found {};
        if (::fstatat(::dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
        const std::uint64_t present = static_cast<std::uint64_t>(found.st_blocks) * 512;
        if (S_ISREG(found.st_mode) && static_cast<std::uint64_t>(found.st_size) > present)
            missing += static_cast<std::uint64_t>(found.st_size) - present;
    }
    return missing;
}

std::unique_ptr<DIR, int (*)(DIR*)> open_folder() {
    return {::opendir(kFolder), &::closedir};
}

// Allocates in pieces: a signal, such as of the program's timer, cancels the whole posix_fallocate(), so one
// call for the whole size might never succeed.
int allocate(int file, std::size_t bytes) {
    constexpr std::size_t kPiece = std::size_t{1} << 20;
    for (std::size_t at = 0; at < bytes;) {
        const std::size_t piece = std::min(kPiece, bytes - at);
        const int code = ::posix_fallocate(file, static_cast<off_t>(at), static_cast<off_t>(piece));
        if (code == 0)
            at += piece;
        else if (code != EINTR)
            return code;
    }
    return 0;
}

}  // namespace

Result<std::string> Segment::draw_name() {
    std::array<std::uint64_t, 2> random;
    if (auto drawn = kernel_random(std::as_writable_bytes(std::span(random))); !drawn) return drawn.error();
    const Process self = this_process();
    return name_of(self.pid, self.start_time, fmt::format("{:016x}{:016x}", random[0], random[1]));
}

std::string Segment::name_of(std::uint32_t pid, std::uint64_t start_time, std::string_view secret) {
    return fmt::format("/{}{:x}-{}-{}-{}", kPrefix, process_namespace(), pid, start_time, secret);
}

std::size_t Segment::remove_leftovers() {
    std::size_t removed = 0;
    const auto list = open_folder();
    DIR* const folder = list.get();
    if (folder == nullptr) return 0;
    while (const dirent* entry = ::readdir(folder)) {
        if (!is_left_over(entry->d_name)) continue;
        struct stat found {};
        if (::fstatat(::dirfd(folder), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (found.st_uid != ::geteuid() || !S_ISREG(found.st_mode)) continue;
        if (::unlinkat(::dirfd(folder), entry->d_name, 0) == 0) ++removed;
    }
    return removed;
}

Result<std::shared_ptr<Segment>> Segment::map(const std::string& name, int descriptor, std::size_t bytes) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) return system_error(errno, fmt::format("cannot map {} of {} bytes", name, bytes));
    return std::shared_ptr<Segment>(new Segment(name, static_cast<std::byte*>(data), bytes));
}

Result<std::shared_ptr<Segment>> Segment::create(const std::string& wanted, std::size_t bytes) {
    constexpr std::uint64_t kShareOfSpare = 4;
    remove_leftovers();
    const auto room = spare();
    if (!room) return room.error();
    if (bytes > room.value() / kShareOfSpare)
        return Error{
            ENOSPC,
            fmt::format(
                "{}: no room for {} bytes: a segment takes at most a quarter of the {} bytes that are spare",
                kFolder, bytes, room.value())};
    std::string name = wanted;
    if (name.empty()) {
        auto drawn = draw_name();
        if (!drawn) return drawn.error();
        name = std::move(drawn).value();
    }
    FileDescriptor file(::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!file.valid()) return system_error(errno, fmt::format("cannot create shared memory {}", name));
    // The umask may have removed bits of 0600, which this user needs to open the file.
    int code = ::fchmod(file.get(), 0600) == 0 && ::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0
                   ? 0
                   : errno;
    if (code == 0) code = allocate(file.get(), bytes);
    if (code != 0) {
        ::shm_unlink(name.c_str());
        return system_error(code,
                            fmt::format("no {} bytes of shared memory for {} in {}", bytes, name, kFolder));
    }
    auto mapped = map(name, file.get(), bytes);
    if (!mapped) ::shm_unlink(name.c_str());
    return mapped;
}

Result<std::uint64_t> Segment::spare() {
    constexpr std::uint64_t kReservedShare = 4, kMaxReserved = std::uint64_t{256} << 20;
    const auto list = open_folder();
    struct statvfs found {};
    if (!list || ::fstatvfs(::dirfd(list.get()), &found) != 0)
        return system_error(errno, fmt::format("cannot read folder {}", kFolder));
    if (found.f_blocks == 0) return std::uint64_t{INT64_MAX};  // a tmpfs without a limit
    const std::uint64_t total = std::uint64_t{found.f_blocks} * found.f_frsize;
    const std::uint64_t free = std::uint64_t{found.f_bavail} * found.f_frsize;
    const std::uint64_t taken = std::min(total / kReservedShare, kMaxReserved) + missing_bytes(list.get());
    return free > taken ? free - taken : 0;
}

Result<void> Segment::probe(std::size_t bytes) {
    auto made = create({}, bytes);
    if (!made) return made.error();
    made.value()->unlink();
    return {};
}

Result<std::shared_ptr<Segment>> Segment::open(const std::string& name, std::size_t min_bytes) {
    FileDescriptor file(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
    if (!file.valid()) return system_error(errno, fmt::format("cannot open shared memory {}", name));
    struct stat found {};
    if (::fstat(file.get(), &found) != 0) return system_error(errno, fmt::format("cannot examine {}", name));
    if (found.st_uid != ::geteuid() || (found.st_mode & 077) != 0)
        return Error{
            EACCES,
            fmt::format(
                "shared memory {} belongs to user {} with mode {:o}, but must belong to this user alone",
                name, found.st_uid, found.st_mode & 0777U)};
    if (static_cast<std::uint64_t>(found.st_size) < min_bytes)
        return Error{EAGAIN,
                     fmt::format("shared memory {} has {} bytes, not {}", name, found.st_size, min_bytes)};
    return map(name, file.get(), static_cast<std::size_t>(found.st_size));
}

Segment::~Segment() {
    ::munmap(data_, bytes_);
}

void Segment::unlink() const {
    ::shm_unlink(name_.c_str());
}

}  // namespace mcastcoll::host
