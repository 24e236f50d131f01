#include "cp/source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>

#include "cp/target.h"

namespace mcastcoll::cp {

bool read_all(int descriptor, char* to, std::size_t size, std::uint64_t offset) {
    for (std::size_t done = 0; done < size;) {
        const ssize_t got = ::pread(descriptor, to + done, size - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<std::size_t>(got);
    }
    return true;
}

bool add_beginning(Digest& digest, int descriptor, std::uint64_t size) {
    std::string buffer(std::min<std::uint64_t>(size, std::size_t{1} << 20), '\0');
    for (std::uint64_t at = 0; at < size;) {
        const std::size_t now = std::min<std::uint64_t>(size - at, buffer.size());
        if (!read_all(descriptor, buffer.data(), now, at)) return false;
        digest.add({buffer.data(), now});
        at += now;
    }
    return true;
}

Source::~Source() {
    stop_ = true;
    pool_->open_up();
    if (thread_.joinable()) thread_.join();
}

void Source::start_text(std::string text) {
    thread_ = std::thread([this, text = std::move(text)] { send_text(text); });
}

void Source::start_files(const Catalogue& catalogue, std::vector<std::uint64_t> positions) {
    thread_ = std::thread(
        [this, &catalogue, positions = std::move(positions)] { send_files(catalogue, positions); });
}

void Source::send_text(std::string_view text) {
    Chunker chunker(pool_, out_);
    while (!text.empty() && !stop_) {
        Packer& packer = chunker.packer();
        const std::size_t size = std::min(packer.room(), text.size());
        packer.text(text.substr(0, size));
        text.remove_prefix(size);
    }
    chunker.finish();
}

void Source::send_files(const Catalogue& catalogue, const std::vector<std::uint64_t>& positions) {
    Chunker chunker(pool_, out_);
    for (std::size_t i = 0; i < catalogue.size() && !stop_; ++i)
        if (catalogue[i].kind == Kind::file && positions[i] != kComplete)
            send_file(chunker, catalogue, i, positions[i]);
    chunker.finish();
}

// Follows no symbolic link below the path given by the user: otherwise the owner of a folder could make root
// read any file.
FileDescriptor Source::open_file(const Entry& entry) {
    constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const std::string& source = entry.source;
    if (source.size() <= entry.named) return FileDescriptor(::open(source.c_str(), kFlags));
    const FileDescriptor top(::open(source.substr(0, entry.named).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::size_t slash = source.rfind('/'), begin = entry.named + 1;
    const std::string below = slash > begin ? source.substr(begin, slash - begin) : ".";
    const FileDescriptor folder = top.valid() ? open_beneath(top.get(), below) : FileDescriptor();
    if (!folder.valid()) return FileDescriptor();
    return FileDescriptor(::openat(folder.get(), source.c_str() + slash + 1, kFlags));
}

bool Source::is_unchanged(const Entry& entry, const FileDescriptor& file) {
    struct stat now {};
    return ::fstat(file.get(), &now) == 0 && static_cast<std::uint64_t>(now.st_size) == entry.size &&
           now.st_mtim.tv_sec == entry.modified_s && now.st_mtim.tv_nsec == entry.modified_ns;
}

void Source::complain(const Entry& entry, const char* what) {
    complaints_.push_back(fmt::format("{}: {}", entry.source, what));
}

void Source::send_file(Chunker& chunker, const Catalogue& catalogue, std::size_t index,
                       std::uint64_t position) {
    const Entry& entry = catalogue[index];
    const FileDescriptor file = open_file(entry);
    if (!file.valid()) return complain(entry, std::strerror(errno));
    if (!is_unchanged(entry, file)) return complain(entry, "has changed since it was listed");
    Digest digest;
    if (!add_beginning(digest, file.get(), position)) return complain(entry, std::strerror(errno));
    chunker.packer().begin(index, position);
    Drop drop = send_data(chunker, entry, file, position, digest);
    if (drop == Drop::unreadable)
        complain(entry, "cannot be read to its end");
    else if (!is_unchanged(entry, file))
        complain(entry, "changed while it was read"), drop = Drop::changed;
    chunker.packer().end(drop, digest.take());
}

Drop Source::send_data(Chunker& chunker, const Entry& entry, const FileDescriptor& file,
                       std::uint64_t position, Digest& digest) {
    const bool has_holes = entry.occupied < entry.size;
    std::uint64_t data_end = has_holes ? position : entry.size;
    for (std::uint64_t at = position; at < entry.size && !stop_;) {
        if (at == data_end) {  // is there a hole?
            const off_t next = ::lseek(file.get(), static_cast<off_t>(at), SEEK_DATA);
            const std::uint64_t data = next >= 0 ? static_cast<std::uint64_t>(next) : entry.size;
            if (next < 0 && errno != ENXIO) return Drop::unreadable;
            digest.add_zeros(data - at);
            at = data;
            if (at >= entry.size) break;
            const off_t hole = ::lseek(file.get(), next, SEEK_HOLE);
            data_end = hole > next ? std::min(static_cast<std::uint64_t>(hole), entry.size) : entry.size;
        }
        Packer& packer = chunker.packer();
        const std::size_t size = std::min<std::uint64_t>(packer.room(), data_end - at);
        const std::span<char> place = packer.data(at, size);
        if (!read_all(file.get(), place.data(), size, at)) return Drop::unreadable;
        digest.add({place.data(), place.size()});
        at += size;
        bytes_read_ += size;
    }
    return Drop::no;
}

}  // namespace mcastcoll::cp
