// Which of libfabric's datatypes and operators are exactly MPI's.
//
// MPI wants datatype, count and operator of a reduction to be the same on all ranks, so whatever is decided
// here on them is decided alike everywhere. Only predefined datatypes and operators have a counterpart;
// MINLOC and MAXLOC with their pairs, LOGICAL (whose values are the Fortran compiler's), WCHAR and what is of
// 16 bytes but not C's long double are left to others.

#include "coll_mcastcoll.h"
#include "ompi/datatype/ompi_datatype_internal.h"

typedef enum { kSigned, kUnsigned, kReal, kComplex } Sort;

static const struct {
    MPI_Datatype handle;
    Sort sort;
} kRows[] = {
    {MPI_INT8_T, kSigned},
    {MPI_INT16_T, kSigned},
    {MPI_INT32_T, kSigned},
    {MPI_INT64_T, kSigned},
    {MPI_SIGNED_CHAR, kSigned},
    {MPI_SHORT, kSigned},
    {MPI_INT, kSigned},
    {MPI_LONG, kSigned},
    {MPI_LONG_LONG, kSigned},
    {MPI_AINT, kSigned},
    {MPI_OFFSET, kSigned},
    {MPI_COUNT, kSigned},
    {MPI_INTEGER, kSigned},
    {MPI_UINT8_T, kUnsigned},
    {MPI_UINT16_T, kUnsigned},
    {MPI_UINT32_T, kUnsigned},
    {MPI_UINT64_T, kUnsigned},
    {MPI_UNSIGNED_CHAR, kUnsigned},
    {MPI_UNSIGNED_SHORT, kUnsigned},
    {MPI_UNSIGNED, kUnsigned},
    {MPI_UNSIGNED_LONG, kUnsigned},
    {MPI_UNSIGNED_LONG_LONG, kUnsigned},
    {MPI_BYTE, kUnsigned},
    {MPI_C_BOOL, kUnsigned},
    {MPI_FLOAT, kReal},
    {MPI_DOUBLE, kReal},
    {MPI_LONG_DOUBLE, kReal},
    {MPI_REAL, kReal},
    {MPI_DOUBLE_PRECISION, kReal},
    {MPI_C_FLOAT_COMPLEX, kComplex},
    {MPI_C_DOUBLE_COMPLEX, kComplex},
    {MPI_C_LONG_DOUBLE_COMPLEX, kComplex},
    {MPI_COMPLEX, kComplex},
    {MPI_DOUBLE_COMPLEX, kComplex},
};

// Open MPI's header of operators wants one that Debian does not ship, so their handles have to do. In the
// order of their use.
static const struct {
    MPI_Op handle;
    enum fi_op op;
} kOperators[] = {
    {MPI_SUM, FI_SUM}, {MPI_MAX, FI_MAX},   {MPI_MIN, FI_MIN},   {MPI_LOR, FI_LOR},   {MPI_LAND, FI_LAND},
    {MPI_BOR, FI_BOR}, {MPI_BAND, FI_BAND}, {MPI_PROD, FI_PROD}, {MPI_LXOR, FI_LXOR}, {MPI_BXOR, FI_BXOR},
};

// By Open MPI's number of the predefined datatype; aliases have the same. -1: none.
static int8_t g_datatypes[OMPI_DATATYPE_MPI_MAX_PREDEFINED];

static int fabric_datatype(Sort sort, size_t bytes) {
    switch (sort) {
        case kSigned:
            return 1 == bytes   ? FI_INT8
                   : 2 == bytes ? FI_INT16
                   : 4 == bytes ? FI_INT32
                   : 8 == bytes ? FI_INT64
                                : -1;
        case kUnsigned:
            return 1 == bytes   ? FI_UINT8
                   : 2 == bytes ? FI_UINT16
                   : 4 == bytes ? FI_UINT32
                   : 8 == bytes ? FI_UINT64
                                : -1;
        case kReal:
            return sizeof(float) == bytes         ? FI_FLOAT
                   : sizeof(double) == bytes      ? FI_DOUBLE
                   : sizeof(long double) == bytes ? FI_LONG_DOUBLE
                                                  : -1;
        case kComplex:
            return 2 * sizeof(float) == bytes         ? FI_FLOAT_COMPLEX
                   : 2 * sizeof(double) == bytes      ? FI_DOUBLE_COMPLEX
                   : 2 * sizeof(long double) == bytes ? FI_LONG_DOUBLE_COMPLEX
                                                      : -1;
    }
    return -1;
}

void mcc_types_init(void) {
    for (int i = 0; i < OMPI_DATATYPE_MPI_MAX_PREDEFINED; ++i) g_datatypes[i] = -1;
    for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); ++i) {
        const int32_t id = kRows[i].handle->id;
        // Where there is no Fortran, its datatypes share the number of what is unavailable.
        if (id <= 0 || id >= OMPI_DATATYPE_MPI_UNAVAILABLE) continue;
        g_datatypes[id] = (int8_t)fabric_datatype(kRows[i].sort, kRows[i].handle->super.size);
    }
}

bool mcc_reduction(ompi_datatype_t* datatype, MPI_Op op, enum fi_datatype* type, enum fi_op* operation) {
    if (!ompi_datatype_is_predefined(datatype)) return false;
    if (datatype->id < 0 || datatype->id >= OMPI_DATATYPE_MPI_MAX_PREDEFINED) return false;
    const int row = g_datatypes[datatype->id];
    size_t column = 0;
    while (column < sizeof(kOperators) / sizeof(kOperators[0]) && kOperators[column].handle != op) ++column;
    if (row < 0 || column == sizeof(kOperators) / sizeof(kOperators[0])) return false;
    *type = (enum fi_datatype)row;
    *operation = kOperators[column].op;
    return 0 != (mca_coll_mcastcoll_component.reductions[row] >> *operation & 1);
}
