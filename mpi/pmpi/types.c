// Which of libfabric's datatypes and operators are exactly MPI's.
//
// MPI wants the elements and the operator of a reduction to be the same on all members; datatypes that only
// differ in name (MPI_INT and MPI_INT32_T) have one counterpart, so whatever is decided here is decided alike
// everywhere. What MPI does not combine is left to it, so that it can complain. MINLOC and MAXLOC with their
// pairs, LOGICAL (whose values are the Fortran compiler's), user-defined operators and derived datatypes have
// no counterpart.

#include "pmpi.h"

typedef enum { kInteger, kUnsigned, kBytes, kTruth, kReal, kComplex } Kind;

enum {
    kArithmetic = 1 << FI_SUM | 1 << FI_PROD,
    kOrder = 1 << FI_MIN | 1 << FI_MAX,
    kLogical = 1 << FI_LAND | 1 << FI_LOR | 1 << FI_LXOR,
    kBits = 1 << FI_BAND | 1 << FI_BOR | 1 << FI_BXOR,
};

// Handles need not be constants in every MPI, hence comparisons in the order of use.
static int kind_of(MPI_Datatype type) {
    if (MPI_INT == type || MPI_LONG == type || MPI_LONG_LONG == type || MPI_INT64_T == type ||
        MPI_INT32_T == type || MPI_SHORT == type || MPI_SIGNED_CHAR == type || MPI_INT8_T == type ||
        MPI_INT16_T == type || MPI_INTEGER == type || MPI_AINT == type || MPI_OFFSET == type ||
        MPI_COUNT == type || MPI_INTEGER1 == type || MPI_INTEGER2 == type || MPI_INTEGER4 == type ||
        MPI_INTEGER8 == type)
        return kInteger;
    if (MPI_DOUBLE == type || MPI_FLOAT == type || MPI_LONG_DOUBLE == type || MPI_REAL == type ||
        MPI_DOUBLE_PRECISION == type || MPI_REAL4 == type || MPI_REAL8 == type)
        return kReal;
    if (MPI_UNSIGNED == type || MPI_UNSIGNED_LONG == type || MPI_UINT64_T == type || MPI_UINT32_T == type ||
        MPI_UNSIGNED_LONG_LONG == type || MPI_UNSIGNED_SHORT == type || MPI_UNSIGNED_CHAR == type ||
        MPI_UINT8_T == type || MPI_UINT16_T == type)
        return kUnsigned;
    if (MPI_C_FLOAT_COMPLEX == type || MPI_C_DOUBLE_COMPLEX == type || MPI_C_LONG_DOUBLE_COMPLEX == type ||
        MPI_COMPLEX == type || MPI_DOUBLE_COMPLEX == type || MPI_COMPLEX8 == type || MPI_COMPLEX16 == type)
        return kComplex;
    if (MPI_BYTE == type) return kBytes;
    if (MPI_C_BOOL == type) return kTruth;
    return -1;
}

static int operator_of(MPI_Op op) {
    const struct {
        MPI_Op handle;
        enum fi_op op;
    } rows[] = {{MPI_SUM, FI_SUM},   {MPI_MAX, FI_MAX},   {MPI_MIN, FI_MIN},   {MPI_LOR, FI_LOR},
                {MPI_BOR, FI_BOR},   {MPI_LAND, FI_LAND}, {MPI_BAND, FI_BAND}, {MPI_PROD, FI_PROD},
                {MPI_BXOR, FI_BXOR}, {MPI_LXOR, FI_LXOR}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i)
        if (rows[i].handle == op) return (int)rows[i].op;
    return -1;
}

bool pmpi_reduction(PmpiOperation operation, MPI_Datatype datatype, MPI_Op op, enum fi_datatype* type,
                    enum fi_op* fabric_op, size_t* width) {
    static const struct {
        MccSort sort;
        int operators;
    } kKinds[] = {[kInteger] = {kMccSigned, kArithmetic | kOrder | kLogical | kBits},
                  [kUnsigned] = {kMccUnsigned, kArithmetic | kOrder | kLogical | kBits},
                  [kBytes] = {kMccUnsigned, kBits},
                  [kTruth] = {kMccUnsigned, kLogical},
                  [kReal] = {kMccReal, kArithmetic | kOrder},
                  [kComplex] = {kMccComplex, kArithmetic}};
    // Where there is no Fortran its handles are that of nothing.
    const int kind = MPI_DATATYPE_NULL == datatype ? -1 : kind_of(datatype);
    const int column = operator_of(op);
    int bytes = 0;
    if (kind < 0 || column < 0 || !(kKinds[kind].operators >> column & 1)) return false;
    if (MPI_SUCCESS != PMPI_Type_size(datatype, &bytes) || bytes <= 0) return false;
    const int row = mcc_provider_datatype(kKinds[kind].sort, (size_t)bytes);
    const int collective = kPmpiReduce == operation      ? FI_REDUCE
                           : kPmpiAllreduce == operation ? FI_ALLREDUCE
                                                         : FI_REDUCE_SCATTER;
    if (row < 0 || !(pmpi.provider.reductions[collective][row] >> column & 1)) return false;
    *type = (enum fi_datatype)row;
    *fabric_op = (enum fi_op)column;
    *width = (size_t)bytes;
    return true;
}
