// The list, for whatever this build has.
#include "gateway/ways/way.h"

namespace mcastcoll::ways {

std::vector<NamedWay> all_ways() {
    std::vector<NamedWay> ways{
        {"plain", "recv and sendmsg, as the gateway does", make_plain},
        {"splice", "through a pipe; nothing is kept, which a gateway cannot do",
         [](const Settings& settings) { return make_splice(settings, false); }},
        {"splice-tee", "through a pipe, and what must be kept in a second one",
         [](const Settings& settings) { return make_splice(settings, true); }},
        {"zerocopy", "plain, with MSG_ZEROCOPY into the stream", make_zero_copy},
    };
#ifdef MCC_HAVE_URING
    if (uring_works()) {
        ways.push_back({"io_uring", "requests in a ring, one call for all that is to be done", make_uring});
        ways.push_back({"io_uring-zerocopy",
                        "the same, with frames in registered memory, sent without a copy",
                        make_uring_zero_copy});
    }
#endif
    return ways;
}

}  // namespace mcastcoll::ways
