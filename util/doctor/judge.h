// Interprets facts. Pure: the same facts give the same findings.
#pragma once

#include "facts.h"

namespace mcastcoll::doctor {

enum class Severity : std::uint8_t { note, limits, broken };  // the worst one is the exit code

struct Finding {
    std::string id;  // for programs; does not change between versions
    Severity severity{};
    std::string title, cause, cost, mend;  // mend: commands, one per line, or instructions
    std::vector<std::string> hosts;        // affected; empty: all
};

struct Diagnosis {
    std::string sentence;
    Severity worst = Severity::note;
    std::vector<Finding> findings;    // most severe first
    std::vector<std::string> fine;    // checks without a finding
    std::vector<std::string> unseen;  // failed observations, and reasons
};

Diagnosis judge(const Facts& facts);

// Names for hosts: the host's name, with its position among the members if the name is not unique.
std::vector<std::string> names_of(const Facts& facts);

}  // namespace mcastcoll::doctor
