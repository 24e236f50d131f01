// Segment: memory shared by processes of one host, with a name during formation.
//
// The name is unguessable and only the user has access (mode 0600, O_EXCL; a process that attaches checks the
// owner). The name contains the creator's process id, start time and pid namespace, so that a later creator
// can detect and remove the segments of crashed processes. All pages are reserved at creation: a full
// /dev/shm is an error then, not a SIGBUS later. Other programs do not reserve theirs: Open MPI's shared
// memory files are sparse, and their owners die of SIGBUS when a page is missing. So segments use only a part
// of the space left when every file in /dev/shm is fully allocated (`spare()`). A memfd needs no name, but
// other processes can open it only through /proc/PID/fd, which a container may forbid even between processes
// of one user; hence shm_open().
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mcastcoll::host {

class Segment {
  public:
    // Creates a segment filled with zeroes. An empty name draws a random one. ENOSPC if it would take more
    // than a quarter of spare().
    static Result<std::shared_ptr<Segment>> create(const std::string& name, std::size_t bytes);
    // Opens an existing segment of this user. EAGAIN if it is still smaller than `min_bytes`.
    static Result<std::shared_ptr<Segment>> open(const std::string& name, std::size_t min_bytes);
    // Bytes of /dev/shm beyond the needs of its files, less a reserve for future files: a quarter of the file
    // system, at most 256 MiB.
    static Result<std::uint64_t> spare();
    // Whether there is room for a segment of this size; the error gives the reason.
    static Result<void> probe(std::size_t bytes);
    // An unguessable name for a segment of this process.
    static Result<std::string> draw_name();
    // The name of a segment made by process `pid` of this pid namespace. A process that knows the pid, the
    // start time and the secret can compute the name.
    static std::string name_of(std::uint32_t pid, std::uint64_t start_time, std::string_view secret);
    // Removes segments of crashed creators of this user and pid namespace; returns their number.
    static std::size_t remove_leftovers();

    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;
    ~Segment();

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    const std::string& name() const { return name_; }
    // Removes the name; existing mappings stay valid. May be called again.
    void unlink() const;

  private:
    Segment(std::string name, std::byte* data, std::size_t bytes)
        : name_(std::move(name)), data_(data), bytes_(bytes) {}
    static Result<std::shared_ptr<Segment>> map(const std::string& name, int descriptor, std::size_t bytes);

    std::string name_;
    std::byte* data_;
    std::size_t bytes_;
};

}  // namespace mcastcoll::host
