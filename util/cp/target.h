// Where the entries of a catalogue are on this disk.
//
// Each folder is opened from the target's own descriptor, and every call after that names a descriptor and
// one name in it. So nothing is written through a symbolic link below the target, even if somebody puts one
// in a folder's place while the copy runs.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "cp/catalogue.h"

namespace mcastcoll::cp {

// The folder that an entry is in, and the entry's name there.
struct Place {
    FileDescriptor folder;  // for *at() calls alone (O_PATH); invalid, and errno set: there is none
    std::string name;

    std::optional<struct stat> look(const std::string& what, int flags = AT_SYMLINK_NOFOLLOW) const;
};

class Target {
  public:
    explicit Target(std::string path) : path_(std::move(path)) {}
    const std::string& path() const { return path_; }
    std::string path_of(const Entry& entry) const { return path_ + entry.path; }
    Place place_of(const Entry& entry);

  private:
    std::string path_;
    FileDescriptor folder_;  // once something below it was asked for
};

// A folder below `base`, through folders alone. One call of a kernel that has openat2(), or one for each
// folder.
FileDescriptor open_beneath(int base, const std::string& path);
FileDescriptor open_step_by_step(int base, const std::string& path);

}  // namespace mcastcoll::cp
