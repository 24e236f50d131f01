// Findings as text for people, and as JSON for programs.
#pragma once

#include "judge.h"

namespace mcastcoll::doctor {

std::string as_text(const Verdict& verdict, const Crew& crew, bool colour);
// One object: verdict, findings, what is fine, what could not be looked at, the matrix, and all facts.
std::string as_json(const Verdict& verdict, const Crew& crew);

const char* name_of(Severity severity);

}  // namespace mcastcoll::doctor
