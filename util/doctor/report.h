// Prints findings as text for people, and as JSON for programs.
#pragma once

#include "judge.h"

namespace mcastcoll::doctor {

std::string as_text(const Diagnosis& diagnosis, const Facts& facts, bool colour);
// Returns one JSON object: diagnosis, findings, checks without a finding, failed observations, the matrix,
// and all facts.
std::string as_json(const Diagnosis& diagnosis, const Facts& facts);

const char* name_of(Severity severity);

}  // namespace mcastcoll::doctor
