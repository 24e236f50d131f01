// Progress of a copy for people: on a terminal one line that is rewritten, else a line now and then.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"

namespace mcastcoll::cp {

// "4.5 GiB"; "0:31", "2:03:04".
std::string bytes_as_text(double bytes);
std::string time_as_text(double seconds);

class Progress {
  public:
    Progress(std::string program, std::uint64_t total, bool quiet);
    void show(std::uint64_t done);
    // Clears the line, to make room for another.
    void clear();
    double seconds() const;

  private:
    std::string program_;
    std::uint64_t total_;
    bool quiet_, terminal_, shown_ = false;
    Nanoseconds begun_, next_;
};

}  // namespace mcastcoll::cp
