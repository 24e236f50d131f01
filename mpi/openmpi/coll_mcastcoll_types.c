// Which of libfabric's datatypes and operators are exactly MPI's.
//
// MPI wants datatype, count and operator of a reduction to be the same on all ranks, so whatever is decided
// here on them is decided alike everywhere. Only predefined datatypes and operators have a counterpart;
// MINLOC and MAXLOC with their pairs, LOGICAL (whose values are the Fortran compiler's), WCHAR and what is of
// 16 bytes but not C's long double are left to others.

#include "coll_mcastcoll.h"
#include "ompi/datatype/ompi_datatype_internal.h"

static const struct {
    MPI_Datatype handle;
    MccSort sort;
} kRows[] = {
    {MPI_INT8_T, kMccSigned},
    {MPI_INT16_T, kMccSigned},
    {MPI_INT32_T, kMccSigned},
    {MPI_INT64_T, kMccSigned},
    {MPI_SIGNED_CHAR, kMccSigned},
    {MPI_SHORT, kMccSigned},
    {MPI_INT, kMccSigned},
    {MPI_LONG, kMccSigned},
    {MPI_LONG_LONG, kMccSigned},
    {MPI_AINT, kMccSigned},
    {MPI_OFFSET, kMccSigned},
    {MPI_COUNT, kMccSigned},
    {MPI_INTEGER, kMccSigned},
    {MPI_UINT8_T, kMccUnsigned},
    {MPI_UINT16_T, kMccUnsigned},
    {MPI_UINT32_T, kMccUnsigned},
    {MPI_UINT64_T, kMccUnsigned},
    {MPI_UNSIGNED_CHAR, kMccUnsigned},
    {MPI_UNSIGNED_SHORT, kMccUnsigned},
    {MPI_UNSIGNED, kMccUnsigned},
    {MPI_UNSIGNED_LONG, kMccUnsigned},
    {MPI_UNSIGNED_LONG_LONG, kMccUnsigned},
    {MPI_BYTE, kMccUnsigned},
    {MPI_C_BOOL, kMccUnsigned},
    {MPI_FLOAT, kMccReal},
    {MPI_DOUBLE, kMccReal},
    {MPI_LONG_DOUBLE, kMccReal},
    {MPI_REAL, kMccReal},
    {MPI_DOUBLE_PRECISION, kMccReal},
    {MPI_C_FLOAT_COMPLEX, kMccComplex},
    {MPI_C_DOUBLE_COMPLEX, kMccComplex},
    {MPI_C_LONG_DOUBLE_COMPLEX, kMccComplex},
    {MPI_COMPLEX, kMccComplex},
    {MPI_DOUBLE_COMPLEX, kMccComplex},
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

void mcc_types_init(void) {
    for (int i = 0; i < OMPI_DATATYPE_MPI_MAX_PREDEFINED; ++i) g_datatypes[i] = -1;
    for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); ++i) {
        const int32_t id = kRows[i].handle->id;
        // Where there is no Fortran, its datatypes share the number of what is unavailable.
        if (id <= 0 || id >= OMPI_DATATYPE_MPI_UNAVAILABLE) continue;
        g_datatypes[id] = (int8_t)mcc_provider_datatype(kRows[i].sort, kRows[i].handle->super.size);
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
    return true;
}
