// A group through libfabric, as any program would form it: a join, a barrier and a broadcast whose bytes are
// checked. In a process of its own, so that whatever happens there, the doctor goes on.
#pragma once

#include <sys/types.h>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "facts.h"

namespace mcastcoll::doctor {

class Patient {
  public:
    struct Opened {
        Look<std::string> provider;  // the file that libfabric has loaded
        std::string inner;           // what it stands on
        std::string address;         // of the endpoint, as libfabric has it; empty: there is no endpoint
    };

    static Result<Patient> start();
    Patient(Patient&& other) noexcept;
    Patient& operator=(Patient&& other) noexcept;
    ~Patient();

    Opened opened();
    // With the addresses of all members, this one's among them. Alone it has a second endpoint for company.
    // `comm_key`: of the group, as fi_av_set() takes it.
    EndToEnd run(const std::vector<std::string>& addresses, unsigned self, const std::string& comm_key);

  private:
    Patient(pid_t process, FileDescriptor to, FileDescriptor from, FileDescriptor log);
    std::string last_warning() const;
    void pass_on_log() const;

    pid_t process_;  // 0: none
    FileDescriptor to_, from_;
    FileDescriptor log_;  // its standard error; none where the user has asked for libfabric's log
};

}  // namespace mcastcoll::doctor
