#include "cp/sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <unordered_set>

namespace mcastcoll::cp {
namespace {

constexpr int kLockTries = 100;  // a tenth of a second each, in all

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_in_folder(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

bool is_at(const std::string& path, const struct stat& file) {
    struct stat found {};
    return ::lstat(path.c_str(), &found) == 0 && found.st_dev == file.st_dev && found.st_ino == file.st_ino;
}

bool write_all(int file, std::string_view bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t done = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(done));
        offset += static_cast<std::uint64_t>(done);
    }
    return true;
}

}  // namespace

Sink::Sink(std::string target, Catalogue catalogue)
    : target_(std::move(target)), catalogue_(std::move(catalogue)), lock_tries_(kLockTries) {}

Sink::~Sink() {
    if (thread_.joinable()) thread_.join();
}

void Sink::note(const std::string& path, const std::string& what) {
    if (troubles_++ == 0) trouble_ = fmt::format("{}: {}", path, what);
}

std::string Sink::partial_of(const Entry& entry) const {
    return folder_of(path_of(entry)) + "/" + partial_name(name_in_folder(path_of(entry)), entry);
}

// Nothing is looked at, written or removed there.
bool Sink::is_blocked(const Entry& entry) const {
    return !entry.path.empty() && blocked_.contains(entry.path.substr(0, entry.path.rfind('/')));
}

// Who has been interrupted may still write what had come before.
bool Sink::lock(int file) {
    for (; ::flock(file, LOCK_EX | LOCK_NB) != 0; --lock_tries_) {
        if (errno != EWOULDBLOCK || lock_tries_ <= 0) return false;
        ::usleep(100'000);
    }
    return true;
}

bool Sink::is_complete(const Entry& entry) const {
    struct stat found {};
    return ::lstat(path_of(entry).c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
           static_cast<std::uint64_t>(found.st_size) == entry.size &&
           found.st_mtim.tv_sec == entry.modified_s && found.st_mtim.tv_nsec == entry.modified_ns;
}

std::vector<std::uint64_t> Sink::survey() {
    for (const Entry& entry : catalogue_)
        if (entry.kind == Kind::directory) make_folder(entry);
    positions_.assign(catalogue_.size(), 0);
    for (std::size_t i = 0; i < catalogue_.size(); ++i) {
        const Entry& entry = catalogue_[i];
        if (entry.kind != Kind::file || is_blocked(entry)) continue;
        struct stat found {};
        if (is_complete(entry))
            positions_[i] = kComplete;
        else if (::lstat(partial_of(entry).c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
                 static_cast<std::uint64_t>(found.st_size) <= entry.size)
            positions_[i] = static_cast<std::uint64_t>(found.st_size);
    }
    remove_stale();
    return positions_;
}

// Beginnings of what the sources were before, of these names and nothing else. What is locked is being
// written.
void Sink::remove_stale() {
    struct Own {
        std::unordered_set<std::string> names, partials;
    };
    std::map<std::string, Own> folders;
    for (const Entry& entry : catalogue_) {
        if (entry.kind != Kind::file || is_blocked(entry)) continue;
        Own& own = folders[folder_of(path_of(entry))];
        const std::string partial = name_in_folder(partial_of(entry));
        own.names.emplace(name_of_partial(partial));
        own.partials.insert(partial);
    }
    for (const auto& [path, own] : folders) {
        const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
        if (folder == nullptr) continue;
        const int at = ::dirfd(folder.get());
        while (const dirent* found = ::readdir(folder.get())) {
            const std::string name(name_of_partial(found->d_name));
            if (name.empty() || !own.names.contains(name) || own.partials.contains(found->d_name)) continue;
            // Others may have made anything there: a pipe would be waited for.
            const FileDescriptor file(
                ::openat(at, found->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
            struct stat what {};
            if (file.valid() && ::fstat(file.get(), &what) == 0 && S_ISREG(what.st_mode) &&
                ::flock(file.get(), LOCK_EX | LOCK_NB) == 0)
                ::unlinkat(at, found->d_name, 0);
        }
    }
}

void Sink::start(Queue& chunks) {
    for (const Entry& entry : catalogue_)
        if (entry.kind == Kind::link) make_link(entry);
    thread_ = std::thread([this, &chunks] { write(chunks); });
}

// A link to a folder would lead out of the target: nothing is written through it.
void Sink::make_folder(const Entry& entry) {
    const std::string path = path_of(entry);
    const auto block = [&](const char* why) {
        blocked_.insert(entry.path);
        note(path, why);
    };
    if (is_blocked(entry)) return block("has no folder to be in");
    if (::mkdir(path.c_str(), 0700) == 0) return;
    if (errno != EEXIST) return block(std::strerror(errno));
    struct stat found {};
    const bool is_target = entry.path.empty();
    if ((is_target ? ::stat(path.c_str(), &found) : ::lstat(path.c_str(), &found)) != 0 ||
        !S_ISDIR(found.st_mode))
        return block("is in the way: it is no folder");
    if ((found.st_mode & 0300) != 0300) ::chmod(path.c_str(), (found.st_mode & 07777) | 0700);
}

void Sink::make_link(const Entry& entry) {
    const std::string path = path_of(entry);
    if (is_blocked(entry)) return note(path, "has no folder to be in");
    std::string now(entry.link.size() + 1, '\0');
    const ssize_t size = ::readlink(path.c_str(), now.data(), now.size());
    const bool same = size >= 0 && now.substr(0, static_cast<std::size_t>(size)) == entry.link;
    const std::string partial = partial_of(entry);
    ::unlink(partial.c_str());
    if (!same && (::symlink(entry.link.c_str(), partial.c_str()) != 0 ||
                  ::rename(partial.c_str(), path.c_str()) != 0)) {
        note(path, std::strerror(errno));
        ::unlink(partial.c_str());
        return;
    }
    const timespec times[] = {{0, UTIME_OMIT}, {entry.modified_s, entry.modified_ns}};
    ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
    if (::geteuid() == 0 && ::lchown(path.c_str(), entry.user, entry.group) != 0)
        note(path, std::strerror(errno));
}

void Sink::write(Queue& chunks) {
    while (const Chunk chunk = chunks.take()) {
        Unpacker unpacker(*chunk);
        for (;;) {
            const auto record = unpacker.next();
            if (!record) note(target_, record.error().message);
            if (!record || !record.value()) break;
            act(*record.value());
        }
    }
    if (open_ != nullptr) drop_open(true);  // the copy is not complete: this is where the next one goes on
}

void Sink::act(const Record& record) {
    switch (record.act) {
        case Act::text:
            return;
        case Act::begin:
            return begin(record.number, record.position);
        case Act::data:
            return add_data(record.number, record.bytes);
        case Act::end:
            return end(static_cast<Drop>(record.number), record.bytes);
    }
}

void Sink::begin(std::size_t index, std::uint64_t position) {
    open_.reset();
    if (index >= catalogue_.size() || positions_[index] == kComplete) return;
    const Entry& entry = catalogue_[index];
    auto open = std::make_unique<Open>();
    open->entry = index;
    open->path = path_of(entry);
    if (is_blocked(entry)) return note(open->path, "has no folder to be in");
    open->partial = partial_of(entry);
    if (open_partial(*open, position))
        open_ = std::move(open);
    else if (errno != 0)
        note(open->path, errno == EWOULDBLOCK ? "another process is copying it" : std::strerror(errno));
}

bool Sink::open_partial(Open& open, std::uint64_t position) {
    struct stat found {};
    // What is no file would be in the way when this one is complete.
    if (::lstat(open.path.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return errno = EISDIR, false;
    for (;;) {
        // Another host or process may have completed it meanwhile.
        if (is_complete(catalogue_[open.entry])) {
            positions_[open.entry] = kComplete;
            return errno = 0, false;
        }
        open.file = FileDescriptor(
            ::open(open.partial.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
        if (!open.file.valid() || !lock(open.file.get()) || ::fstat(open.file.get(), &found) != 0)
            return false;
        if (!S_ISREG(found.st_mode)) return errno = EINVAL, false;
        if (is_at(open.partial, found)) break;
        // Who had it locked has given it its own name, and what is open here is not to be touched.
        if (--lock_tries_ <= 0) return errno = EWOULDBLOCK, false;
    }
    if (!add_beginning(open.digest, open.file.get(), position)) return errno = EIO, false;
    open.digested = position;
    return ::ftruncate(open.file.get(), static_cast<off_t>(position)) == 0;
}

void Sink::drop_open(bool keep) {
    if (!keep) ::unlink(open_->partial.c_str());
    open_.reset();
}

void Sink::add_data(std::uint64_t offset, std::string_view bytes) {
    if (open_ == nullptr) return;
    if (offset < open_->digested || !write_all(open_->file.get(), bytes, offset)) {
        note(open_->path, offset < open_->digested ? "is out of order" : std::strerror(errno));
        return drop_open(false);  // what is of no use here needs no room
    }
    open_->digest.add_zeros(offset - open_->digested);
    open_->digest.add(bytes);
    open_->digested = offset + bytes.size();
}

bool Sink::set_attributes(int file, const std::string& path, const Entry& entry) {
    const bool root = ::geteuid() == 0;
    // Without the owner the bits that lend his rights mean somebody else.
    const mode_t mode = root || entry.user == ::geteuid() ? entry.mode : entry.mode & 01777;
    const timespec times[] = {{0, UTIME_OMIT}, {entry.modified_s, entry.modified_ns}};
    const bool done = (!root || ::fchown(file, entry.user, entry.group) == 0) && ::fchmod(file, mode) == 0 &&
                      ::futimens(file, times) == 0;
    if (!done) note(path, std::strerror(errno));
    return done;
}

void Sink::end(Drop drop, std::string_view digest) {
    if (open_ == nullptr) return;
    const Entry& entry = catalogue_[open_->entry];
    if (drop != Drop::no) return drop_open(false);  // the head says why
    if (entry.size > open_->digested) open_->digest.add_zeros(entry.size - open_->digested);
    if (open_->digest.take() != digest) {
        note(open_->path, "has another digest than the source");
        return drop_open(false);
    }
    if (::ftruncate(open_->file.get(), static_cast<off_t>(entry.size)) != 0) {
        note(open_->path, std::strerror(errno));
        return drop_open(false);
    }
    if (!set_attributes(open_->file.get(), open_->path, entry)) return drop_open(false);
    if (::rename(open_->partial.c_str(), open_->path.c_str()) != 0) {
        note(open_->path, std::strerror(errno));
        return drop_open(false);
    }
    open_.reset();
    ++files_written_;
}

void Sink::finish() {
    if (thread_.joinable()) thread_.join();
    // What was there already gets the source's mode, too; folders last, from the inside.
    for (std::size_t i = catalogue_.size(); i-- > 0;) {
        const Entry& entry = catalogue_[i];
        if (is_blocked(entry) || blocked_.contains(entry.path)) continue;
        if (entry.kind == Kind::link || (entry.kind == Kind::file && positions_[i] != kComplete)) continue;
        const std::string path = path_of(entry);
        const FileDescriptor file(
            ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | (entry.path.empty() ? 0 : O_NOFOLLOW)));
        if (file.valid())
            set_attributes(file.get(), path, entry);
        else if (troubles_ == 0)
            note(path, std::strerror(errno));
    }
}

}  // namespace mcastcoll::cp
