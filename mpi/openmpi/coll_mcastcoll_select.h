// The selection: which calls are served here, and which by the module that was there before, because it is
// faster, or which both serve by turns until that is known. A table of rules, from a file or built in; every
// rank has the same, which the cards check.

#ifndef MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_SELECT_H
#define MCASTCOLL_MPI_OPENMPI_COLL_MCASTCOLL_SELECT_H

#include "coll_mcastcoll.h"

typedef struct MccRules MccRules;

// path: NULL or empty for what is built in. NULL with a reason if there is something wrong with it.
MccRules* mcc_rules_read(const char* path, char* reason);
void mcc_rules_free(MccRules* rules);
uint64_t mcc_rules_digest(const MccRules* rules, uint64_t state);
// Through the component's output, in the form of the file.
void mcc_rules_print(const MccRules* rules);
// What the rules say for a communicator; false: no memory.
bool mcc_select(const MccRules* rules, MccModule* m, int members);
void mcc_select_free(MccModule* m);
// Here, previous or, of blocking forms only and until it is known, measured.
MccRoute mcc_selected(const MccModule* m, MccForm form, MccCollective collective, size_t bytes);

#endif
