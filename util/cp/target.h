// Locates the entries of a catalogue on this disk.
//
// Each folder is opened from the target's own descriptor, and every later call names a descriptor and one
// name in it. So no call writes through a symbolic link below the target, even if another process replaces a
// folder by a link during the copy.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/file_descriptor.h"
#include "cp/catalogue.h"

namespace mcastcoll::cp {

class Target {
  public:
    // The folder of an entry, and the entry's name in the folder.
    struct Place {
        FileDescriptor folder;  // for *at() calls only (O_PATH); invalid, with errno set, on failure
        std::string name;

        std::optional<struct stat> look(const std::string& what, int flags = AT_SYMLINK_NOFOLLOW) const;
    };

    explicit Target(std::string path) : path_(std::move(path)) {}
    const std::string& path() const { return path_; }
    std::string path_of(const Entry& entry) const { return path_ + entry.path; }
    Place place_of(const Entry& entry);

  private:
    std::string path_;
    FileDescriptor folder_;  // opened on the first use of an entry below the target
};

// Opens a folder below `base` without following links: by one openat2() if the kernel has it, otherwise by
// open_step_by_step().
FileDescriptor open_beneath(int base, const std::string& path);
// Does the same with one openat() for each folder of the path.
FileDescriptor open_step_by_step(int base, const std::string& path);

}  // namespace mcastcoll::cp
