// Prints findings as text for people, and as JSON for programs.
#pragma once

#include "judge.h"

namespace mcastcoll::doctor {

std::string as_text(const Verdict& verdict, const Crew& crew, bool colour);
// One object: verdict, findings, checks without a finding, failed observations, the matrix, and all facts.
std::string as_json(const Verdict& verdict, const Crew& crew);

const char* name_of(Severity severity);

}  // namespace mcastcoll::doctor
