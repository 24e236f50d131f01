// The user's options for forming a host set.
#pragma once

#include <string>

namespace mcastcoll {
class Arguments;
}

namespace mcastcoll::hostset {

struct Options {
    std::string hosts;  // "a,b,c", or "@FILE" with one host per line
    std::string rsh = "ssh -o BatchMode=yes";
    std::string join;  // for processes started by a head: the head's addresses
    bool here = false;
    unsigned wait_s = 30;

    // Adds --hosts, --rsh, --join, --here and --wait.
    void add_to(Arguments& arguments);
};

}  // namespace mcastcoll::hostset
