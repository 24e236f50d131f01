// Command-line options of every functional test.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace mcastcoll::fabtest {

struct Options {
    std::string provider = "mcastcoll";
    std::string inner;            // FI_MCASTCOLL_INNER
    std::string fault;            // FI_MCASTCOLL_FAULT
    std::string places = "flat";  // members' sites and hosts; see program.cc
    // members' source address, or a comma-separated list that members take in turns; empty: the provider
    // chooses.
    std::string address = "127.0.0.1";
    std::string cluster;  // run the members on the hosts of this cluster; empty: on this host
    unsigned members = 4;
    std::uint64_t seed = 1;
    // Time limits, reached only by a hang: a slow machine must not fail a test.
    unsigned timeout_s = 300;       // limit for one case
    unsigned wait_s = 90;           // limit for one operation
    std::vector<std::string> only;  // names of cases; empty: all
    bool list = false;
    bool verbose = false;
    bool large = false;            // also run cases that take minutes or gigabytes
    std::uint64_t operations = 0;  // number of operations in cases with a count; 0: the case's default

    // libfabric's own providers are used to check the tests themselves; there, tests of mcastcoll's extra
    // features are skipped.
    bool is_mcastcoll() const { return provider == "mcastcoll"; }
};

// Whether to run fewer rounds of each case: builds with sanitizers are slow.
inline bool quick() {
    return std::getenv("MCC_QUICK") != nullptr;
}

}  // namespace mcastcoll::fabtest
