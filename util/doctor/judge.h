// What facts mean. Pure: the same facts, the same findings.
#pragma once

#include "facts.h"

namespace mcastcoll::doctor {

enum class Severity : std::uint8_t { note, limits, broken };  // also the exit code

struct Finding {
    std::string id;  // for programs: it stays what it is
    Severity severity{};
    std::string title, cause, cost, mend;  // mend: commands, one on a line, or what to do
    std::vector<std::string> hosts;        // that it is about; empty: all
};

struct Verdict {
    std::string sentence;
    Severity worst = Severity::note;
    std::vector<Finding> findings;    // the gravest first
    std::vector<std::string> fine;    // what was looked at and is as it should be
    std::vector<std::string> unseen;  // what could not be looked at, and why
};

Verdict judge(const Crew& crew);

// What a host is called: its name, with its place among the members where another one has the same.
std::vector<std::string> names_of(const Crew& crew);

}  // namespace mcastcoll::doctor
