// A munged daemon for one test, with its own key and socket.
#pragma once

#include <sys/types.h>

#include <string>

namespace mcastcoll::fabtest {

class Munged {
  public:
    // Starts munged; after a failure why_not() gives the reason. `key_of` is the folder of another Munged,
    // whose key this one uses; a new key if empty.
    explicit Munged(const std::string& key_of = {});
    ~Munged();
    Munged(const Munged&) = delete;
    Munged& operator=(const Munged&) = delete;

    const std::string& why_not() const { return why_not_; }
    const std::string& folder() const { return folder_; }
    std::string socket() const { return folder_ + "/socket"; }
    // Sends a signal to munged: SIGSTOP, SIGCONT or SIGKILL.
    void signal(int number) const;

  private:
    std::string make_key(const std::string& key_of) const;
    void start();
    void await_socket();

    std::string folder_, why_not_;
    pid_t process_ = -1;
};

}  // namespace mcastcoll::fabtest
