#include "cp/summary.h"

#include <nlohmann/json.hpp>

namespace mcastcoll::cp {

int Summary::code() const {
    if (failed.size() >= hosts) return 2;
    return failed.empty() && complaints.empty() ? 0 : 1;
}

std::string as_json(const Summary& summary) {
    nlohmann::ordered_json object;
    object["hosts"] = summary.hosts;
    object["files"] = summary.files;
    object["files_sent"] = summary.files_sent;
    object["bytes"] = summary.bytes;
    object["bytes_sent"] = summary.bytes_sent;
    object["seconds"] = summary.seconds;
    object["failed"] = nlohmann::ordered_json::object();
    for (const auto& [host, why] : summary.failed) object["failed"][host] = why;
    object["complaints"] = summary.complaints;
    return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace mcastcoll::cp
