#include "core/collectives.h"

#define MCC_NAME(enumerator, name, collective) [enumerator] = #name,
const char* const mcc_collective_names[kMccCollectives] = {MCC_COLLECTIVES(MCC_NAME)};

#define MCC_OP(enumerator, name, collective) [enumerator] = collective,
const enum fi_collective_op mcc_collective_ops[kMccCollectives] = {MCC_COLLECTIVES(MCC_OP)};
