// The writing side of a host: a survey of existing files, and a thread that writes the contents of chunks.
//
// A file is written under a temporary name in the same folder, and renamed when its digest equals the digest
// sent by the head. An error in one file does not stop the copying of the other files.
//
// Root may write into folders of other users, who can put any entry there at any time. So root continues a
// partial file, or accepts a file as complete, only if no other user can still write to the file. Set-user-ID
// and set-group-ID bits are set only on files whose digest was computed in this run.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/file_descriptor.h"
#include "cp/catalogue.h"
#include "cp/chunk.h"
#include "cp/digest.h"
#include "cp/queue.h"
#include "cp/target.h"

namespace mcastcoll::cp {

class Sink {
  public:
    Sink(std::string target, Catalogue catalogue);
    ~Sink();
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    // Makes folders, and removes partial files of earlier versions of the sources. Returns for each entry the
    // position from which its data is needed here; kComplete for complete files.
    std::vector<std::uint64_t> survey();
    // Makes links, and starts the thread.
    void start(Queue& chunks);
    // Waits for the last chunk, and sets the modes and times of folders.
    void finish();

    // The first error, and the number of errors; valid after finish().
    const std::string& failure() const { return failure_; }
    std::uint64_t failures() const { return failures_; }
    std::uint64_t files_written() const { return files_written_; }

  private:
    struct Open {
        std::size_t entry;
        Target::Place place;
        FileDescriptor file;
        std::string partial, path;  // the partial file's name, and the file's path for messages
        Digest digest;
        std::uint64_t digested;
    };

    bool is_blocked(const Entry& entry) const;
    std::uint64_t find_position(const Entry& entry);
    bool lock(int file);
    void remove_stale();
    void make_folder(const Entry& entry);
    void make_link(const Entry& entry);
    void write(Queue& chunks);
    void act(const Record& record);
    void begin(std::size_t index, std::uint64_t position);
    static FileDescriptor open_or_make(const Open& open);
    bool open_partial(Open& open, std::uint64_t position);
    void add_data(std::uint64_t offset, std::string_view bytes);
    void end(Drop drop, std::string_view digest);
    bool set_attributes(int file, const std::string& path, const Entry& entry);
    void note(const std::string& path, const std::string& what);
    void drop_open(bool keep);

    Target target_;
    Catalogue catalogue_;
    std::unordered_set<std::string> blocked_;  // paths where no folder can be made
    std::vector<std::uint64_t> positions_;
    std::unique_ptr<Open> open_;
    int lock_tries_;
    std::string failure_;
    std::uint64_t failures_ = 0, files_written_ = 0;
    std::thread thread_;
};

}  // namespace mcastcoll::cp
