// Reads the component's performance variables through MPI_T, each by its name, and checks that broadcasts
// increase the variables concerned.

#include "mpi_support.h"

static const char kHelp[] =
    "usage: mpirun ... mpi_variables [options]\n"
    "  --count N        broadcasts [200]\n"
    "  --help, --version\n"
    "Rank 0 prints a line for each variable: its name, and its value there in the end.\n";

enum { kMax = 64, kNameBytes = 128 };
static const char kPrefix[] = "coll_mcastcoll_";

typedef struct {
    char name[kNameBytes];
    MPI_T_pvar_handle handle;
} Variable;

static int find_all(MPI_T_pvar_session session, Variable found[kMax]) {
    int all = 0, count = 0;
    MPI_T_pvar_get_num(&all);
    for (int i = 0; i < all && count < kMax; ++i) {
        char name[kNameBytes], text[1];
        int bytes = sizeof(name), text_bytes = sizeof(text), verbosity, kind, bind, is_constant,
            is_continuous, is_atomic, values;
        MPI_Datatype type;
        MPI_T_enum set;
        if (MPI_SUCCESS != MPI_T_pvar_get_info(i, name, &bytes, &verbosity, &kind, &type, &set, text,
                                               &text_bytes, &bind, &is_constant, &is_continuous,
                                               &is_atomic) ||
            0 != strncmp(name, kPrefix, sizeof(kPrefix) - 1))
            continue;
        if (kind != MPI_T_PVAR_CLASS_COUNTER || type != MPI_UNSIGNED_LONG_LONG ||
            bind != MPI_T_BIND_NO_OBJECT)
            continue;
        if (MPI_SUCCESS != MPI_T_pvar_handle_alloc(session, i, NULL, &found[count].handle, &values) ||
            values != 1)
            continue;
        strcpy(found[count++].name, name + sizeof(kPrefix) - 1);
    }
    return count;
}

static unsigned long long value_of(MPI_T_pvar_session session, const Variable* variables, int count,
                                   const char* name) {
    unsigned long long value = 0;
    for (int i = 0; i < count; ++i)
        if (0 == strcmp(variables[i].name, name)) MPI_T_pvar_read(session, variables[i].handle, &value);
    return value;
}

int main(int argc, char** argv) {
    int rank, size, provided;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t wanted = 200;
    const Option options[] = {{"count", &wanted, 1, 1000000, NULL, NULL}, {0}};
    parse_options(argc, argv, rank, "mpi_variables", kHelp, options);

    MPI_T_pvar_session session;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    static Variable variables[kMax];
    const int count = find_all(session, variables);
    static char message[1000];
    MPI_Barrier(MPI_COMM_WORLD);
    const unsigned long long operations = value_of(session, variables, count, "group_operations"),
                             bytes = value_of(session, variables, count, "group_bytes");
    for (uint64_t i = 0; i < wanted; ++i) MPI_Bcast(message, sizeof(message), MPI_BYTE, 0, MPI_COMM_WORLD);
    unsigned long long bad =
        (value_of(session, variables, count, "group_operations") - operations != wanted) +
        (value_of(session, variables, count, "group_bytes") - bytes != wanted * sizeof(message));
    if (bad != 0) printf("rank %d: not as many operations or bytes as there were\n", rank);
    if (0 == rank)
        for (int i = 0; i < count; ++i)
            printf("variable %s %llu\n", variables[i].name,
                   value_of(session, variables, count, variables[i].name));
    unsigned long long total = 0;
    MPI_Reduce(&bad, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank)
        printf("mpi_variables: %d ranks: %d variables checked, %llu bad\n", size, count,
               total + (0 == count));
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return 0 != total || 0 == count;
}
