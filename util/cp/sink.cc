#include "cp/sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstring>
#include <map>
#include <unordered_set>

#include "cp/source.h"
#include "cp/unpacker.h"

namespace mcastcoll::cp {
namespace {

constexpr int kLockTries = 100;  // in all, a tenth of a second each

bool is_root() {
    return ::geteuid() == 0;
}

// Keeps set-user-ID and set-group-ID bits only if the file also gets the owner of the source.
std::uint32_t mode_of(const Entry& entry) {
    return is_root() || entry.user == ::geteuid() ? entry.mode : entry.mode & 01777;
}

bool grants_rights(std::uint32_t mode) {
    return (mode & (S_ISUID | S_ISGID)) != 0;
}

// Whether the target's file equals the source, as far as can be determined without reading it.
bool is_complete(const struct stat& found, const Entry& entry) {
    const bool same = S_ISREG(found.st_mode) && static_cast<std::uint64_t>(found.st_size) == entry.size &&
                      found.st_mtim.tv_sec == entry.modified_s && found.st_mtim.tv_nsec == entry.modified_ns;
    const bool is_roots = found.st_uid == 0 || found.st_uid == entry.user;
    if (!same || (is_root() && !(is_roots && found.st_nlink == 1))) return false;
    const bool owners = !is_root() || (found.st_uid == entry.user && found.st_gid == entry.group);
    return !grants_rights(mode_of(entry)) || (owners && (found.st_mode & 07777) == mode_of(entry));
}

// A partial file of an earlier run of this user; no other user can have such a file open for writing.
bool is_partial(const struct stat& found) {
    if (!S_ISREG(found.st_mode)) return false;
    return !is_root() || (found.st_uid == 0 && found.st_nlink == 1 && (found.st_mode & 07777) == 0600);
}

bool is_same(const std::optional<struct stat>& a, const struct stat& b) {
    return a && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
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
    if (failures_++ == 0) failure_ = fmt::format("{}: {}", path, what);
}

// Paths below a blocked folder are not read, written or removed.
bool Sink::is_blocked(const Entry& entry) const {
    return !entry.path.empty() && blocked_.contains(entry.path.substr(0, entry.path.rfind('/')));
}

// Locks a partial file. Waits while the process of an interrupted copy still writes the data that it
// received.
bool Sink::lock(int file) {
    for (; ::flock(file, LOCK_EX | LOCK_NB) != 0; --lock_tries_) {
        if (errno != EWOULDBLOCK || lock_tries_ <= 0) return false;
        ::usleep(100'000);
    }
    return true;
}

std::uint64_t Sink::find_position(const Entry& entry) {
    const Target::Place place = target_.place_of(entry);
    if (const auto found = place.look(place.name); found && is_complete(*found, entry)) return kComplete;
    const auto partial = place.look(partial_name(place.name, entry));
    if (!partial || !is_partial(*partial)) return 0;
    const auto size = static_cast<std::uint64_t>(partial->st_size);
    return size <= entry.size ? size : 0;
}

std::vector<std::uint64_t> Sink::survey() {
    for (const Entry& entry : catalogue_)
        if (entry.kind == Kind::directory) make_folder(entry);
    positions_.assign(catalogue_.size(), 0);
    for (std::size_t i = 0; i < catalogue_.size(); ++i)
        if (catalogue_[i].kind == Kind::file && !is_blocked(catalogue_[i]))
            positions_[i] = find_position(catalogue_[i]);
    remove_stale();
    return positions_;
}

// Removes partial files of earlier versions of these sources, and no other files. A locked file stays, since
// another process is writing it.
void Sink::remove_stale() {
    struct Own {
        const Entry* one;  // any entry of the folder
        std::unordered_set<std::string> names, partials;
    };
    std::map<std::string, Own> folders;
    for (const Entry& entry : catalogue_) {
        if (entry.kind != Kind::file || is_blocked(entry)) continue;
        Own& own = folders[entry.path.substr(0, entry.path.rfind('/') + 1)];
        own.one = &entry;
        const std::string path = target_.path_of(entry);
        const std::string partial = partial_name(path.substr(path.rfind('/') + 1), entry);
        own.names.emplace(name_of_partial(partial));
        own.partials.insert(partial);
    }
    for (const auto& [path, own] : folders) {
        const Target::Place place = target_.place_of(*own.one);
        const int at = ::openat(place.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const std::unique_ptr<DIR, int (*)(DIR*)> folder(at >= 0 ? ::fdopendir(at) : nullptr, &::closedir);
        if (folder == nullptr) continue;
        while (const dirent* found = ::readdir(folder.get())) {
            const std::string name(name_of_partial(found->d_name));
            if (name.empty() || !own.names.contains(name) || own.partials.contains(found->d_name)) continue;
            // Another user may have put a pipe there, and a blocking open() would wait for a writer.
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

// A symbolic link to a folder would lead out of the target, so the link is not followed.
void Sink::make_folder(const Entry& entry) {
    const auto block = [&](const char* why) {
        blocked_.insert(entry.path);
        note(target_.path_of(entry), why);
    };
    if (is_blocked(entry)) return block("has no parent folder");
    const Target::Place place = target_.place_of(entry);
    if (!place.folder.valid()) return block(std::strerror(errno));
    const char* const name = place.name.c_str();
    if (::mkdirat(place.folder.get(), name, 0700) == 0) return;
    if (errno != EEXIST) return block(std::strerror(errno));
    const int as_is = entry.path.empty() ? 0 : O_NOFOLLOW;
    const FileDescriptor folder(::openat(place.folder.get(), name, O_PATH | O_DIRECTORY | O_CLOEXEC | as_is));
    struct stat found {};
    if (!folder.valid() || ::fstat(folder.get(), &found) != 0)
        return block("is in the way: it is not a folder");
    if ((found.st_mode & 0300) == 0300) return;
    // fchmod() rejects an O_PATH descriptor, and open() may need a permission that the folder lacks so far.
    ::chmod(fmt::format("/proc/self/fd/{}", folder.get()).c_str(), (found.st_mode & 07777) | 0700);
}

// Makes the link under another name first, so that owner and time are set on this very link, whatever is at
// the final name.
void Sink::make_link(const Entry& entry) {
    const std::string path = target_.path_of(entry);
    if (is_blocked(entry)) return note(path, "has no parent folder");
    const Target::Place place = target_.place_of(entry);
    if (!place.folder.valid()) return note(path, std::strerror(errno));
    const int at = place.folder.get();
    const std::string partial = partial_name(place.name, entry);
    const timespec times[] = {{0, UTIME_OMIT}, {entry.modified_s, entry.modified_ns}};
    const auto give = [&](const std::string& name) {
        const FileDescriptor link(::openat(at, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        std::string now(entry.link.size() + 1, '\0');
        const ssize_t size = link.valid() ? ::readlinkat(link.get(), "", now.data(), now.size()) : -1;
        if (size < 0 || now.substr(0, static_cast<std::size_t>(size)) != entry.link) return false;
        ::utimensat(at, name.c_str(), times, AT_SYMLINK_NOFOLLOW);
        if (is_root() && ::fchownat(link.get(), "", entry.user, entry.group, AT_EMPTY_PATH) != 0)
            note(path, std::strerror(errno));
        return true;
    };
    ::unlinkat(at, partial.c_str(), 0);
    if (give(place.name)) return;
    if (::symlinkat(entry.link.c_str(), at, partial.c_str()) == 0 && give(partial) &&
        ::renameat(at, partial.c_str(), at, place.name.c_str()) == 0)
        return;
    note(path, std::strerror(errno));
    ::unlinkat(at, partial.c_str(), 0);
}

void Sink::write(Queue& chunks) {
    while (const Chunk chunk = chunks.take()) {
        Unpacker unpacker(*chunk);
        for (;;) {
            const auto record = unpacker.next();
            if (!record) note(target_.path(), record.error().message);
            if (!record || !record.value()) break;
            act(*record.value());
        }
    }
    if (open_ != nullptr) drop_open(true);  // incomplete: the next copy continues here
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
    open->path = target_.path_of(entry);
    if (is_blocked(entry)) return note(open->path, "has no parent folder");
    open->place = target_.place_of(entry);
    open->partial = partial_name(open->place.name, entry);
    if (open->place.folder.valid() && open_partial(*open, position))
        open_ = std::move(open);
    else if (errno != 0)
        note(open->path, errno == EWOULDBLOCK ? "another process is copying it" : std::strerror(errno));
}

// Opens an existing partial file, or makes a new one. Root removes a file that another user may have open for
// writing.
FileDescriptor Sink::open_or_make(const Open& open) {
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, at = open.place.folder.get();
    const char* const name = open.partial.c_str();
    FileDescriptor file(::openat(at, name, flags));
    struct stat found {};
    if (file.valid() && ::fstat(file.get(), &found) == 0 && is_partial(found)) return file;
    if (file.valid()) errno = EINVAL;
    file.reset();
    if (is_root() && (errno == EINVAL || errno == ELOOP))
        ::unlinkat(at, name, 0);
    else if (errno != ENOENT)
        return file;
    return FileDescriptor(::openat(at, name, flags | O_CREAT | O_EXCL, 0600));
}

bool Sink::open_partial(Open& open, std::uint64_t position) {
    const Target::Place& place = open.place;
    for (;;) {
        const auto is = place.look(place.name);
        // A folder of that name would prevent the final rename.
        if (is && S_ISDIR(is->st_mode)) return errno = EISDIR, false;
        // Another process, or another host with the same disk, may have completed the file meanwhile.
        if (is && is_complete(*is, catalogue_[open.entry])) {
            positions_[open.entry] = kComplete;
            return errno = 0, false;
        }
        struct stat found {};
        open.file = open_or_make(open);
        const bool retry = !open.file.valid() && errno == EEXIST;  // another process has just made it
        if (!retry && (!open.file.valid() || !lock(open.file.get()) || ::fstat(open.file.get(), &found) != 0))
            return false;
        if (!retry && is_same(place.look(open.partial), found)) break;
        // The process that held the lock has renamed the file, so this descriptor is the complete file and
        // must not be changed.
        if (--lock_tries_ <= 0) return errno = EWOULDBLOCK, false;
    }
    if (!add_beginning(open.digest, open.file.get(), position)) return errno = EIO, false;
    open.digested = position;
    return ::ftruncate(open.file.get(), static_cast<off_t>(position)) == 0;
}

void Sink::drop_open(bool keep) {
    if (!keep) ::unlinkat(open_->place.folder.get(), open_->partial.c_str(), 0);
    open_.reset();
}

void Sink::add_data(std::uint64_t offset, std::string_view bytes) {
    if (open_ == nullptr) return;
    const std::uint64_t size = catalogue_[open_->entry].size;
    const bool fits = offset >= open_->digested && offset <= size && bytes.size() <= size - offset;
    if (!fits || !write_all(open_->file.get(), bytes, offset)) {
        note(open_->path,
             fits ? std::strerror(errno) : "its data is out of order, or longer than its listed size");
        return drop_open(false);  // a file that cannot be completed would only take up space
    }
    open_->digest.add_zeros(offset - open_->digested);
    open_->digest.add(bytes);
    open_->digested = offset + bytes.size();
}

bool Sink::set_attributes(int file, const std::string& path, const Entry& entry) {
    const timespec times[] = {{0, UTIME_OMIT}, {entry.modified_s, entry.modified_ns}};
    const bool done = (!is_root() || ::fchown(file, entry.user, entry.group) == 0) &&
                      ::fchmod(file, mode_of(entry)) == 0 && ::futimens(file, times) == 0;
    if (!done) note(path, std::strerror(errno));
    return done;
}

void Sink::end(Drop drop, std::string_view digest) {
    if (open_ == nullptr) return;
    const Entry& entry = catalogue_[open_->entry];
    if (drop != Drop::no) return drop_open(false);  // the head reports the reason
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
    const int at = open_->place.folder.get();
    if (::renameat(at, open_->partial.c_str(), at, open_->place.name.c_str()) != 0) {
        note(open_->path, std::strerror(errno));
        return drop_open(false);
    }
    open_.reset();
    ++files_written_;
}

void Sink::finish() {
    if (thread_.joinable()) thread_.join();
    // Complete files get the source's mode, too; folders last, innermost first.
    for (std::size_t i = catalogue_.size(); i-- > 0;) {
        const Entry& entry = catalogue_[i];
        if (is_blocked(entry) || blocked_.contains(entry.path)) continue;
        if (entry.kind == Kind::link || (entry.kind == Kind::file && positions_[i] != kComplete)) continue;
        const bool is_folder = entry.kind == Kind::directory;
        const Target::Place place = target_.place_of(entry);
        const FileDescriptor file(::openat(place.folder.get(), place.name.c_str(),
                                           O_RDONLY | O_CLOEXEC | O_NONBLOCK | (is_folder ? O_DIRECTORY : 0) |
                                               (entry.path.empty() && is_folder ? 0 : O_NOFOLLOW)));
        struct stat found {};
        const std::string path = target_.path_of(entry);
        if (!file.valid() || ::fstat(file.get(), &found) != 0) {
            if (failures_ == 0) note(path, std::strerror(errno));
        } else if (is_folder || is_complete(found, entry)) {
            set_attributes(file.get(), path, entry);
        } else {
            note(path, "has changed while the copy ran");
        }
    }
}

}  // namespace mcastcoll::cp
