// A group through libfabric, formed as in any program: a join, a barrier and a broadcast whose bytes are
// checked. The group runs in a separate process, so that a crash or hang there does not stop the doctor.
#pragma once

#include <sys/types.h>

#include "base/file_descriptor.h"
#include "facts.h"
#include "look.h"

namespace mcastcoll::doctor {

class GroupProcess {
  public:
    struct Opened {
        Look<std::string> provider;  // the file loaded by libfabric
        std::string inner;           // the inner provider
        std::string address;         // of the endpoint, in libfabric's form; empty: no endpoint
    };

    static Result<GroupProcess> start();
    GroupProcess(GroupProcess&& other) noexcept;
    GroupProcess& operator=(GroupProcess&& other) noexcept;
    ~GroupProcess();

    Opened opened();
    // Runs the group; `addresses` has all members, including this one. A single member opens a second
    // endpoint, to have a peer. `comm_key` is the group's key for fi_av_set().
    EndToEnd run(const std::vector<std::string>& addresses, unsigned self, const std::string& comm_key);

  private:
    GroupProcess(pid_t process, FileDescriptor to, FileDescriptor from, FileDescriptor log);
    std::string last_warning() const;
    void print_log() const;

    pid_t process_;  // 0: none
    FileDescriptor to_, from_;
    FileDescriptor log_;  // its standard error; invalid if the user has set FI_LOG_LEVEL
};

}  // namespace mcastcoll::doctor
