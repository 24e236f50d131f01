#include "cp/catalogue.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>

#include "base/file_descriptor.h"
#include "base/system.h"
#include "hostset/encoding.h"
#include "hostset/reader.h"
#include "hostset/writer.h"

namespace mcastcoll::cp {
namespace {

constexpr std::string_view kPartial = ".mcastcoll-";
constexpr std::size_t kHashDigits = 16, kMaxNamePrefix = 200;  // of the 255 allowed in a name

bool leads_out(std::string_view path) {
    if (!path.empty() && path.front() != '/') return true;
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t end = std::min(path.find('/', at + 1), path.size());
        const std::string_view name = path.substr(at + 1, end - at - 1);
        if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string_view::npos)
            return true;
        at = end;
    }
    return false;
}

class Lister {
  public:
    Lister(Catalogue& catalogue, std::vector<std::string>& complaints)
        : catalogue_(catalogue), complaints_(complaints) {}

    // Adds a source under the name given by the user.
    void add(const std::string& source, const std::string& path) {
        named_ = source.size();
        add(AT_FDCWD, source, source, path);
    }
    void add_contents(const std::string& source, const std::string& path) {
        named_ = source.size();
        add_contents(open_folder(AT_FDCWD, source, 0), source, path);
    }

  private:
    static FileDescriptor open_folder(int at, const std::string& name, int flags) {
        return FileDescriptor(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
    }

    void add(int at, const std::string& name, const std::string& source, const std::string& path) {
        struct stat found {};
        if (::fstatat(at, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
            return complain(source, std::strerror(errno));
        Entry entry;
        entry.path = path;
        entry.source = source;
        entry.named = named_;
        entry.mode = found.st_mode & 07777;
        entry.user = found.st_uid;
        entry.group = found.st_gid;
        entry.modified_s = found.st_mtim.tv_sec;
        entry.modified_ns = found.st_mtim.tv_nsec;
        if (S_ISREG(found.st_mode)) {
            entry.size = static_cast<std::uint64_t>(found.st_size);
            entry.occupied = std::min(entry.size, static_cast<std::uint64_t>(found.st_blocks) * 512);
            catalogue_.push_back(std::move(entry));
        } else if (S_ISLNK(found.st_mode)) {
            add_link(at, name, std::move(entry));
        } else if (S_ISDIR(found.st_mode)) {
            entry.kind = Kind::directory;
            catalogue_.push_back(std::move(entry));
            add_contents(open_folder(at, name, O_NOFOLLOW), source, path);
        } else {
            complain(source, "is neither a file, a folder nor a symbolic link");
        }
    }

    void add_contents(const FileDescriptor& folder, const std::string& source, const std::string& path) {
        if (!folder.valid()) return complain(source, std::strerror(errno));
        std::vector<std::string> names = names_in(folder, source);
        std::sort(names.begin(), names.end());
        for (const std::string& name : names)
            if (name_of_partial(name).empty())
                add(folder.get(), name, source + "/" + name, path + "/" + name);
    }

    std::vector<std::string> names_in(const FileDescriptor& folder, const std::string& source) {
        std::vector<std::string> names;
        const int own = ::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const std::unique_ptr<DIR, int (*)(DIR*)> entries(own >= 0 ? ::fdopendir(own) : nullptr, &::closedir);
        if (entries == nullptr) return complain(source, std::strerror(errno)), names;
        errno = 0;
        while (const dirent* found = ::readdir(entries.get())) {
            if (const std::string_view name = found->d_name; name != "." && name != "..")
                names.emplace_back(name);
            errno = 0;
        }
        if (errno != 0) complain(source, std::strerror(errno));
        return names;
    }

    void complain(const std::string& source, const char* what) {
        complaints_.push_back(fmt::format("{}: {}", source, what));
    }

    void add_link(int at, const std::string& name, Entry entry) {
        entry.kind = Kind::link;
        entry.link.resize(PATH_MAX);
        const ssize_t size = ::readlinkat(at, name.c_str(), entry.link.data(), entry.link.size());
        if (size < 0) return complain(entry.source, std::strerror(errno));
        entry.link.resize(static_cast<std::size_t>(size));
        catalogue_.push_back(std::move(entry));
    }

    Catalogue& catalogue_;
    std::vector<std::string>& complaints_;
    std::size_t named_ = 0;
};

}  // namespace

Result<std::vector<std::string>> names_of(const std::vector<std::string>& sources) {
    std::vector<std::string> names;
    for (const std::string& source : sources) {
        const std::size_t end = source.find_last_not_of('/');
        if (end == std::string::npos) return Error{EINVAL, fmt::format("'{}' has no name", source)};
        const std::size_t slash = source.rfind('/', end);
        const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
        std::string name = source.substr(begin, end - begin + 1);
        if (name == "..") return Error{EINVAL, fmt::format("'{}' has no name", source)};
        if (name == ".") name.clear();
        if (std::find(names.begin(), names.end(), name) != names.end())
            return Error{EINVAL, fmt::format("two sources are called '{}'", name)};
        names.push_back(std::move(name));
    }
    return names;
}

Catalogue list_sources(const std::vector<std::string>& sources, const std::vector<std::string>& names,
                       bool into, std::vector<std::string>& complaints) {
    Catalogue catalogue;
    Lister lister(catalogue, complaints);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (into && names[i].empty())
            lister.add_contents(sources[i], "");
        else
            lister.add(sources[i], into ? "/" + names[i] : "");
    }
    return catalogue;
}

std::string as_bytes_of(const Catalogue& catalogue) {
    hostset::Writer writer;
    writer.number(catalogue.size());
    for (const Entry& entry : catalogue) {
        writer.number(static_cast<std::uint64_t>(entry.kind)).text(entry.path).number(entry.mode);
        writer.number(entry.user).number(entry.group).number(static_cast<std::uint64_t>(entry.modified_s));
        writer.number(static_cast<std::uint64_t>(entry.modified_ns)).number(entry.size).text(entry.link);
    }
    return writer.take();
}

Result<Catalogue> parse_catalogue(std::string_view bytes) {
    hostset::Reader reader(bytes);
    Catalogue catalogue;
    for (std::uint64_t left = reader.number(); left > 0 && reader.ok(); --left) {
        Entry entry;
        const std::uint64_t kind = reader.number();
        entry.kind = static_cast<Kind>(kind);
        entry.path = reader.text();
        entry.mode = static_cast<std::uint32_t>(reader.number() & 07777);
        entry.user = static_cast<std::uint32_t>(reader.number());
        entry.group = static_cast<std::uint32_t>(reader.number());
        entry.modified_s = static_cast<std::int64_t>(reader.number());
        entry.modified_ns = static_cast<std::int64_t>(reader.number());
        entry.size = reader.number();
        entry.link = reader.text();
        if (kind > static_cast<std::uint64_t>(Kind::link) || leads_out(entry.path))
            return Error{EBADMSG, fmt::format("'{}' is outside the target", entry.path)};
        catalogue.push_back(std::move(entry));
    }
    if (!reader.at_end()) return Error{EBADMSG, "cannot parse the list of files"};
    return catalogue;
}

Result<std::string> target_on(std::string_view target, std::string_view host) {
    std::string path;
    for (std::size_t i = 0; i < target.size(); ++i) {
        if (target[i] != '%') {
            path += target[i];
            continue;
        }
        const char what = i + 1 < target.size() ? target[++i] : '\0';
        if (what != 'h' && what != '%')
            return Error{EINVAL,
                         fmt::format("'{}': after % there is h, for the host's name, or another %", target)};
        path += what == 'h' ? host : "%";
    }
    if (path.empty()) return Error{EINVAL, "the target is empty"};
    return path;
}

std::string partial_name(std::string_view name, const Entry& entry) {
    const std::string who = fmt::format("{} {} {}.{}", name, entry.size, entry.modified_s, entry.modified_ns);
    return fmt::format(".{}{}{:016x}", name.substr(0, kMaxNamePrefix), kPartial,
                       stable_hash(hostset::bytes_of(who), 0));
}

std::string_view name_of_partial(std::string_view name) {
    const std::size_t at = name.rfind(kPartial);
    if (at == std::string_view::npos || name.front() != '.' || at < 2) return {};
    const std::string_view digits = name.substr(at + kPartial.size());
    if (digits.size() != kHashDigits ||
        digits.find_first_not_of("0123456789abcdef") != std::string_view::npos)
        return {};
    return name.substr(1, at - 1);
}

}  // namespace mcastcoll::cp
