// What every functional test takes on its command line.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace mcastcoll::fabtest {

struct Options {
    std::string provider = "mcastcoll";
    std::string inner;                  // FI_MCASTCOLL_INNER
    std::string fault;                  // FI_MCASTCOLL_FAULT
    std::string places = "flat";        // of the members; see program.cc
    std::string address = "127.0.0.1";  // members' source address, or several for them to take in turns, with
                                        // commas; empty leaves it to the provider
    std::string cluster;                // whose hosts the members are on; empty: all on this one
    unsigned members = 4;
    std::uint64_t seed = 1;
    // Only what hangs takes so long: a busy machine is no failure.
    unsigned timeout_s = 300;       // of one case
    unsigned wait_s = 90;           // of one operation
    std::vector<std::string> only;  // names of cases; empty is all
    bool list = false;
    bool verbose = false;
    bool large = false;            // what takes minutes or gigabytes
    std::uint64_t operations = 0;  // of the cases that count them; 0: as many as suit them

    // libfabric's own providers serve to check the tests themselves; they leave out what mcastcoll must do.
    bool is_mcastcoll() const { return provider == "mcastcoll"; }
};

// Whether fewer rounds of the same are to do: with sanitizers everything takes its time.
inline bool quick() {
    return std::getenv("MCC_QUICK") != nullptr;
}

}  // namespace mcastcoll::fabtest
