#include "hostset/options.h"

#include "arguments/arguments.h"

namespace mcastcoll::hostset {

void Options::add_to(Arguments& arguments) {
    arguments.option("--hosts", hosts,
                     "Without a launcher: comma-separated hosts, or @FILE with one host per line");
    arguments.option("--rsh", rsh, "Command that starts a command line on a host");
    arguments.option("--join", join, "For processes that --hosts starts");
    arguments.option("--wait", wait_s, "Seconds to wait for hosts to start").range(1U, 3600U);
    arguments.flag("--here", here, "Run on this host only");
}

}  // namespace mcastcoll::hostset
