// The result of a copy, on the head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mcastcoll::cp {

struct Summary {
    std::size_t hosts = 0, files = 0, files_sent = 0;  // hosts: number of requested copies
    std::uint64_t bytes = 0, bytes_sent = 0;
    double seconds = 0;
    std::map<std::string, std::string> failed;  // hosts, and reasons
    std::vector<std::string> complaints;        // about sources

    // The program's exit status: 0 on success, 1 if any part failed, 2 if no host has a copy.
    int code() const;
};
std::string as_json(const Summary& summary);

}  // namespace mcastcoll::cp
