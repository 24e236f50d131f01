#include "core/collectives.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/layout.h"
#include "core/provider.h"

#define MCC_NAME(enumerator, name, collective) [enumerator] = #name,
const char* const mcc_collective_names[kMccCollectives] = {MCC_COLLECTIVES(MCC_NAME)};

#define MCC_OP(enumerator, name, collective) [enumerator] = collective,
const enum fi_collective_op mcc_collective_ops[kMccCollectives] = {MCC_COLLECTIVES(MCC_OP)};

enum { kAll = (1 << kMccCollectives) - 1 };

static bool is(const char* name, const char* word, size_t letters) {
    return strlen(name) == letters && 0 == strncmp(name, word, letters);
}

static bool read_word(const char* word, size_t letters, unsigned* bits) {
    *bits = is("all", word, letters) ? kAll : 0;
    bool known = 0 != *bits || is("none", word, letters);
    for (int i = 0; i < kMccCollectives && !known; ++i) {
        known = is(mcc_collective_names[i], word, letters);
        if (known) *bits = 1U << i;
    }
    return known;
}

bool mcc_read_collectives(const char* name, const char* text, unsigned* enabled, char* reason) {
    *enabled = 0;
    for (bool first = true; '\0' != *text; first = false) {
        const size_t letters = strcspn(text, ",");
        const bool without = '^' == text[0];
        unsigned bits = 0;
        if (!read_word(text + without, letters - without, &bits)) {
            snprintf(reason, kMccReasonBytes,
                     "%s: '%.*s' is none of all, none"
#define MCC_LISTED(enumerator, name, collective) ", " #name
                     MCC_COLLECTIVES(MCC_LISTED),
                     name, (int)letters, text);
            return false;
        }
        if (first && without) *enabled = kAll;
        *enabled = without ? *enabled & ~bits : *enabled | bits;
        text += letters + (',' == text[letters]);
    }
    return true;
}

// The libfabric datatypes and operators with exactly the meaning of MPI's. MPI requires the same elements and
// operator of a reduction on every member. Datatypes that differ only in name (MPI_INT and MPI_INT32_T) map
// to the same libfabric datatype, so every member comes to the same result here. Combinations forbidden by
// MPI go to MPI, which reports the error. No counterpart exists for MINLOC and MAXLOC with pair types,
// LOGICAL (the Fortran compiler defines its values), WCHAR, 16-byte types except C's long double,
// user-defined operators, and derived datatypes.
typedef enum { kInteger, kUnsigned, kReal, kComplex } Kind;

enum {
    kArithmetic = 1 << FI_SUM | 1 << FI_PROD,
    kOrder = 1 << FI_MIN | 1 << FI_MAX,
    kLogical = 1 << FI_LAND | 1 << FI_LOR | 1 << FI_LXOR,
    kBits = 1 << FI_BAND | 1 << FI_BOR | 1 << FI_BXOR,
    kWhole = kArithmetic | kOrder | kLogical | kBits
};

// Returns the operators of a datatype as bits, and its kind. Some MPI libraries have no constant handles, so
// the handles are compared in sequence, the most frequent first.
static int operators_for(MPI_Datatype type, Kind* kind) {
    // Without Fortran or C++ support, handles of such datatypes may be MPI_DATATYPE_NULL.
    if (MPI_DATATYPE_NULL == type) return 0;
    *kind = kInteger;
    if (MPI_INT == type || MPI_LONG == type || MPI_LONG_LONG == type || MPI_INT64_T == type ||
        MPI_INT32_T == type || MPI_SHORT == type || MPI_SIGNED_CHAR == type || MPI_INT8_T == type ||
        MPI_INT16_T == type || MPI_INTEGER == type || MPI_AINT == type || MPI_OFFSET == type ||
        MPI_COUNT == type || MPI_INTEGER1 == type || MPI_INTEGER2 == type || MPI_INTEGER4 == type ||
        MPI_INTEGER8 == type)
        return kWhole;
    *kind = kReal;
    if (MPI_DOUBLE == type || MPI_FLOAT == type || MPI_LONG_DOUBLE == type || MPI_REAL == type ||
        MPI_DOUBLE_PRECISION == type || MPI_REAL4 == type || MPI_REAL8 == type)
        return kArithmetic | kOrder;
    *kind = kUnsigned;
    if (MPI_UNSIGNED == type || MPI_UNSIGNED_LONG == type || MPI_UINT64_T == type || MPI_UINT32_T == type ||
        MPI_UNSIGNED_LONG_LONG == type || MPI_UNSIGNED_SHORT == type || MPI_UNSIGNED_CHAR == type ||
        MPI_UINT8_T == type || MPI_UINT16_T == type)
        return kWhole;
    if (MPI_BYTE == type) return kBits;
    if (MPI_C_BOOL == type || MPI_CXX_BOOL == type) return kLogical;
    *kind = kComplex;
    if (MPI_C_FLOAT_COMPLEX == type || MPI_C_DOUBLE_COMPLEX == type || MPI_C_LONG_DOUBLE_COMPLEX == type ||
        MPI_CXX_FLOAT_COMPLEX == type || MPI_CXX_DOUBLE_COMPLEX == type ||
        MPI_CXX_LONG_DOUBLE_COMPLEX == type || MPI_COMPLEX == type || MPI_DOUBLE_COMPLEX == type ||
        MPI_COMPLEX8 == type || MPI_COMPLEX16 == type)
        return kArithmetic;
    return 0;
}

// Returns libfabric's datatype; -1: libfabric has none of this kind and size.
static int datatype_of(Kind kind, size_t width) {
    static const struct {
        Kind kind;
        size_t width;
        enum fi_datatype type;
    } kRows[] = {{kInteger, 1, FI_INT8},
                 {kInteger, 2, FI_INT16},
                 {kInteger, 4, FI_INT32},
                 {kInteger, 8, FI_INT64},
                 {kUnsigned, 1, FI_UINT8},
                 {kUnsigned, 2, FI_UINT16},
                 {kUnsigned, 4, FI_UINT32},
                 {kUnsigned, 8, FI_UINT64},
                 {kReal, sizeof(float), FI_FLOAT},
                 {kReal, sizeof(double), FI_DOUBLE},
                 {kReal, sizeof(long double), FI_LONG_DOUBLE},
                 {kComplex, 2 * sizeof(float), FI_FLOAT_COMPLEX},
                 {kComplex, 2 * sizeof(double), FI_DOUBLE_COMPLEX},
                 {kComplex, 2 * sizeof(long double), FI_LONG_DOUBLE_COMPLEX}};
    for (size_t i = 0; i < sizeof(kRows) / sizeof(kRows[0]); ++i)
        if (kind == kRows[i].kind && width == kRows[i].width) return (int)kRows[i].type;
    return -1;
}

static int operator_of(MPI_Op op) {
    if (MPI_SUM == op) return FI_SUM;
    if (MPI_MAX == op) return FI_MAX;
    if (MPI_MIN == op) return FI_MIN;
    if (MPI_LOR == op) return FI_LOR;
    if (MPI_BOR == op) return FI_BOR;
    if (MPI_LAND == op) return FI_LAND;
    if (MPI_BAND == op) return FI_BAND;
    if (MPI_PROD == op) return FI_PROD;
    if (MPI_BXOR == op) return FI_BXOR;
    return MPI_LXOR == op ? FI_LXOR : -1;
}

bool mcc_reduction(MPI_Datatype datatype, MPI_Op op, enum fi_datatype* type, enum fi_op* fabric_op,
                   size_t* width) {
    Kind kind;
    const int column = operator_of(op);
    if (column < 0 || 0 == (operators_for(datatype, &kind) >> column & 1)) return false;
    *width = mcc_width(datatype);
    const int row = datatype_of(kind, *width);
    if (row < 0) return false;
    *type = (enum fi_datatype)row;
    *fabric_op = (enum fi_op)column;
    return true;
}
