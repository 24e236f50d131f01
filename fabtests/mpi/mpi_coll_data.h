// Test data of mpi_coll_cases.h: datatypes, operators, and elements, which any rank can compute for any other
// rank.

#ifndef MCASTCOLL_FABTESTS_MPI_COLL_DATA_H
#define MCASTCOLL_FABTESTS_MPI_COLL_DATA_H

#include <complex.h>
#include <stdbool.h>

#include "mpi_support.h"

typedef enum { kInteger, kBytes, kTruth, kReal, kComplex } Sort;

typedef struct {
    const char* name;
    MPI_Datatype type;
    Sort sort;
    size_t width;
} Type;

typedef struct {
    const char* name;
    MPI_Op op;
    unsigned sorts;  // a bit for each supported sort of datatype
} Operator;

// An operation, drawn alike by every member.
typedef struct {
    uint64_t key;
    const Type* type;
    const Operator* op;
    size_t count;
    int root;
    bool in_place, strided;
} DrawnOperation;

static inline const Type* types(size_t* count) {
    static const Type kTypes[] = {
        {"int8", MPI_INT8_T, kInteger, 1},
        {"uint8", MPI_UINT8_T, kInteger, 1},
        {"short", MPI_SHORT, kInteger, sizeof(short)},
        {"uint16", MPI_UINT16_T, kInteger, 2},
        {"int", MPI_INT, kInteger, sizeof(int)},
        {"unsigned", MPI_UNSIGNED, kInteger, sizeof(unsigned)},
        {"long", MPI_LONG, kInteger, sizeof(long)},
        {"unsigned long long", MPI_UNSIGNED_LONG_LONG, kInteger, sizeof(unsigned long long)},
        {"byte", MPI_BYTE, kBytes, 1},
        {"bool", MPI_C_BOOL, kTruth, sizeof(bool)},
        {"float", MPI_FLOAT, kReal, sizeof(float)},
        {"double", MPI_DOUBLE, kReal, sizeof(double)},
        {"long double", MPI_LONG_DOUBLE, kReal, sizeof(long double)},
        {"float complex", MPI_C_FLOAT_COMPLEX, kComplex, sizeof(float complex)},
        {"double complex", MPI_C_DOUBLE_COMPLEX, kComplex, sizeof(double complex)},
    };
    *count = sizeof(kTypes) / sizeof(kTypes[0]);
    return kTypes;
}

static inline const Operator* operators(size_t* count) {
    enum { kI = 1 << kInteger, kB = 1 << kBytes, kT = 1 << kTruth, kR = 1 << kReal, kC = 1 << kComplex };
    static const Operator kOperators[] = {{"sum", MPI_SUM, kI | kR | kC}, {"product", MPI_PROD, kI | kR | kC},
                                          {"max", MPI_MAX, kI | kR},      {"min", MPI_MIN, kI | kR},
                                          {"land", MPI_LAND, kI | kT},    {"lor", MPI_LOR, kI | kT},
                                          {"lxor", MPI_LXOR, kI | kT},    {"band", MPI_BAND, kI | kB},
                                          {"bor", MPI_BOR, kI | kB},      {"bxor", MPI_BXOR, kI | kB}};
    *count = sizeof(kOperators) / sizeof(kOperators[0]);
    return kOperators;
}

static inline void make_part(uint8_t* to, size_t width, int value) {
    const float f = (float)value;
    const double d = value;
    const long double l = value;
    memset(to, 0, width);
    if (width == sizeof(f)) memcpy(to, &f, width);
    if (width == sizeof(d)) memcpy(to, &d, width);
    if (width == sizeof(l)) memcpy(to, &l, width);
}

// Draws a value of 8 or 16 bits that does not overflow, because Open MPI's own kernels differ in overflows.
static inline uint64_t narrow(const DrawnOperation* p, int member, uint64_t random) {
    if (p->op != NULL && p->op->op == MPI_SUM) return random % 2;
    if (p->op != NULL && p->op->op == MPI_PROD) return member == 0 ? random % 100 : 1;
    return random;
}

// Computes element `index` of this member's input. Floating-point products use only factors of magnitude 1.
static inline void make_element(const DrawnOperation* p, int member, size_t index, uint8_t* to) {
    uint64_t state = p->key ^ ((uint64_t)member << 40) ^ index;
    const uint64_t random = next_random(&state);
    const bool product = p->op != NULL && p->op->op == MPI_PROD;
    const int small = product ? (random % 2 ? 1 : -1) : (int)(random % 2001) - 1000;
    const size_t width = p->type->width;
    uint64_t value;
    switch (p->type->sort) {
        case kInteger:
        case kBytes:
            // About a third of the values are zero, for the logical operators.
            value = random % 3 == 0 ? 0 : width < 4 ? narrow(p, member, random >> 8) : random;
            for (size_t i = 0; i < width; ++i) to[i] = (uint8_t)(value >> (8 * i));
            break;
        case kTruth:
            to[0] = random % 4 != 0;
            break;
        case kReal:
            make_part(to, width, small);
            break;
        case kComplex:  // for products, a unit on one of the axes
            make_part(to, width / 2, product && random % 4 > 1 ? 0 : small);
            make_part(to + width / 2, width / 2,
                      product ? (random % 4 > 1 ? small : 0) : (int)(random >> 32) % 1000);
            break;
    }
}

// Compares floating-point numbers by value: the sign of 0.0 depends on the order, and a long double may have
// padding.
static inline long double part_at(const uint8_t* at, size_t width) {
    float f;
    double d;
    long double l;
    if (width == sizeof(f)) return memcpy(&f, at, width), f;
    if (width == sizeof(d)) return memcpy(&d, at, width), d;
    return memcpy(&l, at, sizeof(l)), l;
}

static inline bool same_element(const Type* type, const uint8_t* a, const uint8_t* b) {
    if (type->sort != kReal && type->sort != kComplex) return memcmp(a, b, type->width) == 0;
    const size_t parts = type->sort == kComplex ? 2 : 1, width = type->width / parts;
    for (size_t i = 0; i < parts; ++i)
        if (part_at(a + i * width, width) != part_at(b + i * width, width)) return false;
    return true;
}

#endif
