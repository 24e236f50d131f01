// Every pair of datatype and operator compared with a reference without types: elements become a sign, an
// integer of 128 bits or two numbers of 113 bits' precision, are combined there, and are converted back. Sums
// and products of float and double are exact there before a single rounding, so bits can be compared; tests
// of longer types use numbers small enough for exact results in every type.
#include <criterion/criterion.h>
#include <rdma/fi_collective.h>

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "reduce/kernels.h"

using namespace mcastcoll;

namespace {

// Without this type, long double has 128 bits.
#ifdef __SIZEOF_FLOAT128__
__extension__ using Quad = __float128;
#else
using Quad = long double;
#endif
static_assert(sizeof(Quad) == 16);
__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

enum class Sort { with_sign, without_sign, real, complex };

struct Datatype {
    const char* name;
    int value;
    Sort sort;
    std::size_t bytes;  // of an element
};

constexpr std::array kDatatypes = {
    Datatype{"int8", FI_INT8, Sort::with_sign, 1},
    Datatype{"uint8", FI_UINT8, Sort::without_sign, 1},
    Datatype{"int16", FI_INT16, Sort::with_sign, 2},
    Datatype{"uint16", FI_UINT16, Sort::without_sign, 2},
    Datatype{"int32", FI_INT32, Sort::with_sign, 4},
    Datatype{"uint32", FI_UINT32, Sort::without_sign, 4},
    Datatype{"int64", FI_INT64, Sort::with_sign, 8},
    Datatype{"uint64", FI_UINT64, Sort::without_sign, 8},
    Datatype{"float", FI_FLOAT, Sort::real, sizeof(float)},
    Datatype{"double", FI_DOUBLE, Sort::real, sizeof(double)},
    Datatype{"float complex", FI_FLOAT_COMPLEX, Sort::complex, 2 * sizeof(float)},
    Datatype{"double complex", FI_DOUBLE_COMPLEX, Sort::complex, 2 * sizeof(double)},
    Datatype{"long double", FI_LONG_DOUBLE, Sort::real, sizeof(long double)},
    Datatype{"long double complex", FI_LONG_DOUBLE_COMPLEX, Sort::complex, 2 * sizeof(long double)},
    Datatype{"int128", 14, Sort::with_sign, 16},
    Datatype{"uint128", 15, Sort::without_sign, 16},
};

struct Operator {
    const char* name;
    fi_op value;
    bool reals, complexes;  // whether valid for these; all operators are valid for integers
};

constexpr std::array kOperators = {
    Operator{"min", FI_MIN, true, false},  Operator{"max", FI_MAX, true, false},
    Operator{"sum", FI_SUM, true, true},   Operator{"product", FI_PROD, true, true},
    Operator{"lor", FI_LOR, true, true},   Operator{"land", FI_LAND, true, true},
    Operator{"bor", FI_BOR, false, false}, Operator{"band", FI_BAND, false, false},
    Operator{"lxor", FI_LXOR, true, true}, Operator{"bxor", FI_BXOR, false, false},
};

bool allowed(const Datatype& type, const Operator& op) {
    if (type.sort == Sort::real) return op.reals;
    if (type.sort == Sort::complex) return op.complexes;
    return true;
}

fi_datatype as_datatype(int value) {
    return static_cast<fi_datatype>(value);
}

// An element of any datatype.
struct Element {
    Wide bits = 0;
    Quad real = 0, imaginary = 0;
};

Quad load_real(const std::byte* from, std::size_t bytes) {
    float f;
    double d;
    long double l;
    if (bytes == sizeof f) return std::memcpy(&f, from, bytes), Quad(f);
    if (bytes == sizeof d) return std::memcpy(&d, from, bytes), Quad(d);
    return std::memcpy(&l, from, bytes), Quad(l);
}

void store_real(std::byte* to, std::size_t bytes, Quad value) {
    const auto f = static_cast<float>(value);
    const auto d = static_cast<double>(value);
    const auto l = static_cast<long double>(value);
    std::memcpy(to,
                bytes == sizeof f   ? static_cast<const void*>(&f)
                : bytes == sizeof d ? static_cast<const void*>(&d)
                                    : static_cast<const void*>(&l),
                bytes);
}

// Returns the start of the `bytes` low-order bytes of a value.
template <typename Bits>
auto* low_bytes(Bits& bits, std::size_t bytes) {
    using Byte = std::conditional_t<std::is_const_v<Bits>, const std::byte, std::byte>;
    const bool first = std::endian::native == std::endian::little;
    return reinterpret_cast<Byte*>(&bits) + (first ? 0 : sizeof bits - bytes);
}

Element load(const Datatype& type, const std::byte* from) {
    Element element;
    if (type.sort == Sort::real) {
        element.real = load_real(from, type.bytes);
    } else if (type.sort == Sort::complex) {
        element.real = load_real(from, type.bytes / 2);
        element.imaginary = load_real(from + type.bytes / 2, type.bytes / 2);
    } else {
        std::memcpy(low_bytes(element.bits, type.bytes), from, type.bytes);
        const auto unused = static_cast<unsigned>(128 - 8 * type.bytes);
        if (type.sort == Sort::with_sign)
            element.bits = static_cast<Wide>(static_cast<SignedWide>(element.bits << unused) >> unused);
    }
    return element;
}

void store(const Datatype& type, std::byte* to, const Element& element) {
    if (type.sort == Sort::real) {
        store_real(to, type.bytes, element.real);
    } else if (type.sort == Sort::complex) {
        store_real(to, type.bytes / 2, element.real);
        store_real(to + type.bytes / 2, type.bytes / 2, element.imaginary);
    } else {
        std::memcpy(to, low_bytes(element.bits, type.bytes), type.bytes);
    }
}

Element truth(const Datatype& type, bool value) {
    return type.sort == Sort::real || type.sort == Sort::complex ? Element{0, value ? Quad(1) : Quad(0), 0}
                                                                 : Element{value ? Wide{1} : Wide{0}, 0, 0};
}

bool is_true(const Datatype& type, const Element& e) {
    if (type.sort == Sort::real || type.sort == Sort::complex) return e.real != 0 || e.imaginary != 0;
    return e.bits != 0;
}

bool less(const Datatype& type, const Element& a, const Element& b) {
    if (type.sort == Sort::real) return a.real < b.real;
    if (type.sort == Sort::with_sign)
        return static_cast<SignedWide>(a.bits) < static_cast<SignedWide>(b.bits);
    return a.bits < b.bits;
}

Element combined(const Datatype& type, fi_op op, const Element& a, const Element& b) {
    switch (op) {
        case FI_MIN:
            return less(type, b, a) ? b : a;
        case FI_MAX:
            return less(type, a, b) ? b : a;
        case FI_SUM:
            return {a.bits + b.bits, a.real + b.real, a.imaginary + b.imaginary};
        case FI_PROD:
            return {a.bits * b.bits, a.real * b.real - a.imaginary * b.imaginary,
                    a.real * b.imaginary + a.imaginary * b.real};
        case FI_LOR:
            return truth(type, is_true(type, a) || is_true(type, b));
        case FI_LAND:
            return truth(type, is_true(type, a) && is_true(type, b));
        case FI_LXOR:
            return truth(type, is_true(type, a) != is_true(type, b));
        case FI_BOR:
            return {a.bits | b.bits, 0, 0};
        case FI_BAND:
            return {a.bits & b.bits, 0, 0};
        default:
            return {a.bits ^ b.bits, 0, 0};
    }
}

// Whether two elements are equal: ignores padding, and treats all NaNs as equal.
bool same(const Datatype& type, const std::byte* a, const std::byte* b) {
    if (type.sort != Sort::real && type.sort != Sort::complex) return std::memcmp(a, b, type.bytes) == 0;
    const std::size_t parts = type.sort == Sort::complex ? 2 : 1, part = type.bytes / parts;
    const bool padded = part == sizeof(long double) && std::numeric_limits<long double>::digits == 64;
    const std::size_t meant = padded ? 10 : part;
    for (std::size_t i = 0; i < parts; ++i) {
        const Quad x = load_real(a + i * part, part), y = load_real(b + i * part, part);
        if (x != x && y != y) continue;
        if (std::memcmp(a + i * part, b + i * part, meant) != 0) return false;
    }
    return true;
}

// Draws elements; half of them come from a list of special values.
class Drawing {
  public:
    void fill(const Datatype& type, std::byte* to, std::size_t elements) {
        for (std::size_t i = 0; i < elements; ++i) store(type, to + i * type.bytes, draw(type));
    }

  private:
    Quad draw_real(std::size_t bytes, bool special) {
        static constexpr double kAwkward[] = {0.0,
                                              -0.0,
                                              1,
                                              -1,
                                              3,
                                              std::numeric_limits<double>::infinity(),
                                              std::numeric_limits<double>::quiet_NaN()};
        if (random_() % 2 == 0) return Quad(kAwkward[random_() % (special ? 7 : 5)]);
        const auto small = static_cast<double>(random_() % 2001) - 1000;
        if (bytes == sizeof(long double) || !special) return Quad(small);
        std::uniform_real_distribution<double> any(-1e6, 1e6);
        return bytes == sizeof(float) ? Quad(static_cast<float>(any(random_))) : Quad(any(random_));
    }
    Element draw(const Datatype& type) {
        Element element;
        if (type.sort == Sort::real) {
            element.real = draw_real(type.bytes, true);
        } else if (type.sort == Sort::complex) {
            element.real = draw_real(type.bytes / 2, false);
            element.imaginary = draw_real(type.bytes / 2, false);
        } else if (random_() % 2 == 0) {
            const Wide top = Wide{1} << (8 * type.bytes - 1);
            const std::array awkward = {Wide{0}, Wide{1}, ~Wide{0}, top, static_cast<Wide>(top - 1)};
            element.bits = awkward[random_() % awkward.size()];
        } else {
            element.bits = Wide{random_()} << 64 | random_();
        }
        return element;
    }

    std::mt19937_64 random_{20240607};
};

// A vector at a chosen alignment, with a guard on both sides.
struct Vector {
    Vector(std::size_t bytes, std::size_t offset)
        : memory(kGuard + offset + bytes + kGuard, std::byte{0xa5}), at(memory.data() + kGuard + offset) {}
    bool guards_stand(std::size_t bytes) const {
        for (const std::byte* p = memory.data(); p != memory.data() + memory.size(); ++p)
            if ((p < at || p >= at + bytes) && *p != std::byte{0xa5}) return false;
        return true;
    }

    static constexpr std::size_t kGuard = 64;  // a multiple of every alignment
    std::vector<std::byte> memory;
    std::byte* at;
};

void check_pair(const Datatype& type, const Operator& op, std::size_t count, std::size_t offset,
                Drawing& drawing) {
    const auto kernel = reduce::combiner(as_datatype(type.value), op.value);
    cr_assert(kernel.has_value(), "%s %s", type.name, op.name);
    cr_assert_eq(kernel->element_bytes, type.bytes);
    const std::size_t bytes = count * type.bytes;
    Vector inout(bytes, offset), in(bytes, offset / 2);
    drawing.fill(type, inout.at, count);
    drawing.fill(type, in.at, count);
    std::vector<std::byte> expected(bytes);
    const std::vector<std::byte> in_before(in.memory);
    for (std::size_t i = 0; i < bytes; i += type.bytes)
        store(type, expected.data() + i,
              combined(type, op.value, load(type, inout.at + i), load(type, in.at + i)));
    // Result in a separate buffer, in place of the second input, and in place of the first.
    Vector apart(bytes, offset);
    (*kernel)(apart.at, inout.at, in.at, bytes);
    Vector second(bytes, offset / 2);
    std::ranges::copy(in.memory, second.memory.begin());
    (*kernel)(second.at, inout.at, second.at, bytes);
    for (std::size_t i = 0; i < bytes; i += type.bytes) {
        cr_assert(same(type, apart.at + i, expected.data() + i), "%s %s: apart, byte %zu", type.name, op.name,
                  i);
        cr_assert(same(type, second.at + i, expected.data() + i), "%s %s: second, byte %zu", type.name,
                  op.name, i);
    }
    cr_assert(apart.guards_stand(bytes) && second.guards_stand(bytes), "%s %s wrote past", type.name,
              op.name);
    (*kernel)(inout.at, in.at, bytes);
    for (std::size_t i = 0; i < count; ++i)
        cr_assert(same(type, inout.at + i * type.bytes, expected.data() + i * type.bytes),
                  "%s %s: element %zu of %zu at offset %zu", type.name, op.name, i, count, offset);
    cr_assert(inout.guards_stand(bytes), "%s %s wrote past its vector", type.name, op.name);
    cr_assert(in.memory == in_before, "%s %s wrote to its input", type.name, op.name);
}

}  // namespace

TestSuite(reduce, .timeout = 300);

Test(reduce, every_pair_agrees_with_the_reference) {
    Drawing drawing;
    int pairs = 0;
    for (const Datatype& type : kDatatypes)
        for (const Operator& op : kOperators) {
            if (!allowed(type, op)) continue;
            ++pairs;
            for (const std::size_t count : {0, 1, 7, 1000})
                for (const std::size_t offset : {0, 3}) check_pair(type, op, count, offset, drawing);
        }
    cr_assert_eq(pairs, 10 * 10 + 3 * 7 + 3 * 5);
}

Test(reduce, a_vector_combines_with_itself) {
    Drawing drawing;
    for (const Datatype& type : kDatatypes)
        for (const Operator& op : kOperators) {
            if (!allowed(type, op)) continue;
            constexpr std::size_t kCount = 1000;
            Vector both(kCount * type.bytes, 0);
            drawing.fill(type, both.at, kCount);
            const std::vector<std::byte> before(both.at, both.at + kCount * type.bytes);
            reduce::combiner(as_datatype(type.value), op.value)->combine(both.at, both.at, both.at, kCount);
            for (std::size_t i = 0; i < before.size(); i += type.bytes) {
                const Element old = load(type, before.data() + i);
                std::array<std::byte, 32> expected{};
                store(type, expected.data(), combined(type, op.value, old, old));
                cr_assert(same(type, both.at + i, expected.data()), "%s %s: byte %zu", type.name, op.name, i);
            }
        }
}

Test(reduce, what_there_is_not) {
    for (const Datatype& type : kDatatypes) {
        for (const Operator& op : kOperators)
            cr_assert_eq(reduce::combiner(as_datatype(type.value), op.value).has_value(), allowed(type, op),
                         "%s %s", type.name, op.name);
        // The enum type depends on libfabric's release.
        for (const int op : {int{FI_ATOMIC_READ}, int{FI_ATOMIC_WRITE}, int{FI_CSWAP}, int{FI_MSWAP},
                             int{FI_ATOMIC_OP_LAST}, int{FI_NOOP}})
            cr_assert(!reduce::combiner(as_datatype(type.value), static_cast<fi_op>(op)));
        cr_assert_eq(*reduce::element_bytes(as_datatype(type.value)), type.bytes);
    }
    for (const int value : {16, 100, static_cast<int>(FI_VOID), 300}) {
        cr_assert(!reduce::combiner(as_datatype(value), FI_SUM));
        cr_assert(!reduce::element_bytes(as_datatype(value)));
    }
}

Test(reduce, not_a_number_stays_where_it_came_first) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (const fi_op op : {FI_MIN, FI_MAX}) {
        std::vector<float> first(33, kNan), second(33, 1);
        reduce::combiner(FI_FLOAT, op)->combine(first.data(), first.data(), second.data(), first.size());
        for (const float value : first) cr_assert(std::isnan(value));
        first.assign(33, kNan);
        reduce::combiner(FI_FLOAT, op)->combine(second.data(), second.data(), first.data(), first.size());
        for (const float value : second) cr_assert_eq(value, 1);
    }
}

Test(reduce, complex_products_know_infinity) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::complex<double> a(kInfinity, std::numeric_limits<double>::quiet_NaN());
    const std::complex<double> b(2, 1);
    reduce::combiner(FI_DOUBLE_COMPLEX, FI_PROD)->combine(&a, &a, &b, 1);
    cr_assert(std::isinf(a.real()) || std::isinf(a.imag()), "Annex G of C99");
}

// Processors with fused multiply-add would round once, with different bits than other processors.
Test(reduce, complex_products_are_the_same_on_all_processors) {
    const std::complex<double> x(1 + 0x1p-30, 1 + 0x1p-30);
    std::vector<std::complex<double>> square(33, x);
    reduce::combiner(FI_DOUBLE_COMPLEX, FI_PROD)
        ->combine(square.data(), square.data(), square.data(), square.size());
    for (const auto& value : square) {
        cr_assert_eq(value.real(), 0);
        cr_assert_eq(value.imag(), 2 + 0x1p-28);
    }
}
