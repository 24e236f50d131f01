// Segment: a piece of memory that the processes of one host share, and its name while they gather.
//
// The name is unguessable and nobody but the user gets in (mode 0600, O_EXCL; who attaches checks the owner).
// It carries the creator's process number, start time and process namespace, so that a later creator can tell
// what a crashed one has left behind, and removes it. All pages are reserved when it is made: a full /dev/shm
// is an error then, not a SIGBUS later. Others do not reserve theirs: Open MPI's shared memory files are
// sparse, and their owners die of SIGBUS where a page is missing. So segments take only a part of what all
// files in /dev/shm leave free once each has all pages of its size (`spare()`). A memfd needs no name, but
// can be opened by others only through /proc/PID/fd, which a container may forbid even between processes of
// one user; so it is shm_open().
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mcastcoll::host {

class Segment {
  public:
    // A fresh segment of zeroes. An empty name draws one. ENOSPC where it would take more than a quarter of
    // what is spare.
    static Result<std::shared_ptr<Segment>> create(const std::string& name, std::size_t bytes);
    // One that is there; it must belong to this user. EAGAIN when it has not `least_bytes` yet.
    static Result<std::shared_ptr<Segment>> open(const std::string& name, std::size_t least_bytes);
    // Bytes of /dev/shm that no file there is going to need, less a reserve for files to come: a quarter of
    // the file system, at most 256 MiB.
    static Result<std::uint64_t> spare();
    // Whether there is room for so many bytes more; the error says why not.
    static Result<void> probe(std::size_t bytes);
    // An unguessable name for a segment of this process.
    static Result<std::string> draw_name();
    // The name of a segment that this process of this process namespace makes, for those who know the process
    // and a word that nobody else does.
    static std::string name_of(std::uint32_t pid, std::uint64_t start_time, std::string_view secret);
    // Removes what crashed creators of this user and process namespace have left; returns how many.
    static std::size_t remove_leftovers();

    Segment(const Segment&) = delete;
    Segment& operator=(const Segment&) = delete;
    ~Segment();

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    const std::string& name() const { return name_; }
    // The name goes, the memory stays for those who have it. Again is harmless.
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
