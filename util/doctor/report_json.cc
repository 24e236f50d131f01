#include <nlohmann/json.hpp>

#include "report.h"

namespace mcastcoll::doctor {

std::string as_json(const Diagnosis& diagnosis, const Facts& facts) {
    using Json = nlohmann::ordered_json;
    Json object;
    object["diagnosis"] = diagnosis.sentence;
    object["severity"] = name_of(diagnosis.worst);
    object["exit_code"] = static_cast<int>(diagnosis.worst);
    object["findings"] = Json::array();
    for (const Finding& one : diagnosis.findings)
        object["findings"].push_back({{"id", one.id},
                                      {"severity", name_of(one.severity)},
                                      {"hosts", one.hosts},
                                      {"title", one.title},
                                      {"cause", one.cause},
                                      {"cost", one.cost},
                                      {"mend", one.mend}});
    object["fine"] = diagnosis.fine;
    object["unseen"] = diagnosis.unseen;
    object["names"] = names_of(facts);
    object["facts"] = Json::parse(to_json(facts));
    return object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mcastcoll::doctor
