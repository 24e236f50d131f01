#include "support/reduction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "support/buffer.h"
#include "support/failure.h"

namespace mcastcoll::fabtest {
namespace {

template <typename T>
struct IsComplex : std::false_type {};
template <typename R>
struct IsComplex<std::complex<R>> : std::true_type {};

template <typename T>
constexpr bool kIsComplex = IsComplex<T>::value;
template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T>;

template <typename T>
T load(const std::byte* from, std::size_t index) {
    T value;
    std::memcpy(&value, from + index * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
void store(std::byte* to, std::size_t index, T value) {
    if constexpr (kIsComplex<T>) {
        store(to, 2 * index, value.real());
        store(to, 2 * index + 1, value.imag());
        return;
    }
    // Six of an x87 extended number's 16 bytes are padding. The padding is sent, too, so it is initialized
    // for valgrind.
    constexpr std::size_t kUsed = std::is_same_v<T, long double> ? 10 : sizeof(T);
    std::memset(to + index * sizeof(T), 0, sizeof(T));
    std::memcpy(to + index * sizeof(T), &value, kUsed);
}

bool is_bitwise(fi_op op) {
    return op == FI_BOR || op == FI_BAND || op == FI_BXOR;
}

template <typename T>
bool allows(fi_op op) {
    if (is_bitwise(op)) return kIsInteger<T>;
    if (op == FI_MIN || op == FI_MAX) return !kIsComplex<T>;
    return op == FI_SUM || op == FI_PROD || op == FI_LOR || op == FI_LAND || op == FI_LXOR;
}

// Whether an element of a logical reduction is zero: rarely where one zero decides the result, mostly where
// one nonzero element does.
bool is_zero(fi_op op, std::uint64_t word) {
    if (op == FI_LAND) return word % 8 == 0;
    if (op == FI_LOR) return word % 8 != 0;
    return op == FI_LXOR && word % 2 == 0;
}

template <typename T>
T integer(fi_op op, std::uint64_t word) {
    if (is_zero(op, word)) return 0;
    word >>= 4;
    if (op == FI_BAND) word |= mix(word);  // otherwise hardly a bit would remain set
    if (op == FI_BOR) word &= mix(word);
    if (op == FI_PROD || op == FI_LAND || op == FI_LOR || op == FI_LXOR) word |= 1;
    return static_cast<T>(word);
}

template <typename R>
R real(fi_op op, Values values, std::uint64_t word) {
    if (is_zero(op, word)) return 0;
    word >>= 4;
    const R fraction = static_cast<R>(word % (1u << 20)) / (1u << 20);
    if (values == Values::rough) return R{1} / 3 + fraction;
    const R sign = (word >> 32) % 2 ? R{-1} : R{1};
    switch (op) {
        case FI_SUM:  // eighths: this many can be added without rounding
            return sign * static_cast<R>(word % 4096) / 8;
        case FI_PROD:  // powers of two
            return sign * std::array<R, 3>{1, 2, R{1} / 2}[(word >> 33) % 3];
        default:
            return sign * (fraction + R{1} / 7);
    }
}

template <typename R>
std::complex<R> complex_number(fi_op op, Values values, std::uint64_t word) {
    if (is_zero(op, word)) return {};
    const R one = real<R>(op, values, word);
    const bool turned = (word >> 50) % 2;
    // Products of numbers on the axes are exact; for logical operators either part is enough.
    if (values == Values::exact && op != FI_SUM)
        return turned ? std::complex<R>(0, one) : std::complex<R>(one, 0);
    return {one, real<R>(op, values, mix(word))};
}

template <typename T>
void fill(std::byte* to, std::size_t count, fi_op op, Values values, std::uint64_t seed) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t word = mix(seed ^ (i * 0x9e3779b97f4a7c15ULL));
        if constexpr (kIsInteger<T>)
            store(to, i, integer<T>(op, word));
        else if constexpr (kIsComplex<T>)
            store(to, i, complex_number<typename T::value_type>(op, values, word));
        else
            store(to, i, real<T>(op, values, word));
    }
}

template <typename T>
T apply_arithmetic(fi_op op, T a, T b) {
    if constexpr (kIsInteger<T>) {  // wraps around
        const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
        return static_cast<T>(op == FI_SUM ? x + y : x * y);
    } else {
        return op == FI_SUM ? a + b : a * b;
    }
}

template <typename T>
T apply(fi_op op, T a, T b) {
    const bool p = a != T{}, q = b != T{};
    switch (op) {
        case FI_SUM:
        case FI_PROD:
            return apply_arithmetic(op, a, b);
        case FI_LOR:
            return static_cast<T>(p || q ? 1 : 0);
        case FI_LAND:
            return static_cast<T>(p && q ? 1 : 0);
        case FI_LXOR:
            return static_cast<T>(p != q ? 1 : 0);
        default:
            break;
    }
    if constexpr (!kIsComplex<T>) {
        if (op == FI_MIN) return std::min(a, b);
        if (op == FI_MAX) return std::max(a, b);
    }
    if constexpr (kIsInteger<T>) {
        if (op == FI_BOR) return static_cast<T>(a | b);
        if (op == FI_BAND) return static_cast<T>(a & b);
        if (op == FI_BXOR) return static_cast<T>(a ^ b);
    }
    fail("the test itself is wrong: operator {} is not for this datatype", static_cast<int>(op));
}

template <typename T>
void combine(std::byte* inout, const std::byte* in, std::size_t count, fi_op op) {
    for (std::size_t i = 0; i < count; ++i) store(inout, i, apply(op, load<T>(inout, i), load<T>(in, i)));
}

template <typename T>
bool is_near(T got, T wanted, unsigned roundings) {
    if (got == wanted) return true;
    if constexpr (kIsInteger<T>) {
        return false;
    } else if constexpr (kIsComplex<T>) {
        using R = typename T::value_type;
        return std::abs(got - wanted) <=
               static_cast<R>(4 * roundings) * std::numeric_limits<R>::epsilon() * std::abs(wanted);
    } else {
        return std::abs(got - wanted) <=
               static_cast<T>(roundings) * std::numeric_limits<T>::epsilon() * std::abs(wanted);
    }
}

template <typename T>
std::optional<std::size_t> find_difference(const std::byte* got, const std::byte* wanted, std::size_t count,
                                           unsigned roundings) {
    for (std::size_t i = 0; i < count; ++i)
        if (!is_near(load<T>(got, i), load<T>(wanted, i), roundings)) return i;
    return {};
}

// The number of bytes of a real number's value, without padding.
template <typename R>
constexpr std::size_t value_bytes() {
    constexpr int kX87Digits = 64;
    return std::numeric_limits<R>::digits == kX87Digits && !kIsInteger<R> ? 10 : sizeof(R);
}

template <typename T>
std::uint64_t digest(const std::byte* data, std::size_t count) {
    const auto of_parts = [&]<typename R>(R, std::size_t parts) {
        std::uint64_t sum = parts;
        for (std::size_t i = 0; i < parts; ++i) {
            std::array<std::uint64_t, 2> words{};
            std::memcpy(words.data(), data + i * sizeof(R), value_bytes<R>());
            sum = mix(sum, words[0], words[1]);
        }
        return sum;
    };
    if constexpr (kIsComplex<T>)
        return of_parts(typename T::value_type{}, 2 * count);
    else
        return of_parts(T{}, count);
}

template <typename T>
Datatype datatype(fi_datatype type, const char* name) {
    return {type,     name,        sizeof(T),           !kIsInteger<T>, &allows<T>,
            &fill<T>, &combine<T>, &find_difference<T>, &digest<T>};
}

}  // namespace

const std::vector<Datatype>& datatypes() {
    static const std::vector<Datatype> all = {
        datatype<std::int8_t>(FI_INT8, "int8"),
        datatype<std::uint8_t>(FI_UINT8, "uint8"),
        datatype<std::int16_t>(FI_INT16, "int16"),
        datatype<std::uint16_t>(FI_UINT16, "uint16"),
        datatype<std::int32_t>(FI_INT32, "int32"),
        datatype<std::uint32_t>(FI_UINT32, "uint32"),
        datatype<std::int64_t>(FI_INT64, "int64"),
        datatype<std::uint64_t>(FI_UINT64, "uint64"),
        datatype<float>(FI_FLOAT, "float"),
        datatype<double>(FI_DOUBLE, "double"),
        datatype<std::complex<float>>(FI_FLOAT_COMPLEX, "float complex"),
        datatype<std::complex<double>>(FI_DOUBLE_COMPLEX, "double complex"),
        datatype<long double>(FI_LONG_DOUBLE, "long double"),
        datatype<std::complex<long double>>(FI_LONG_DOUBLE_COMPLEX, "long double complex"),
    };
    return all;
}

const Datatype& datatype_of(fi_datatype type) {
    for (const Datatype& one : datatypes())
        if (one.type == type) return one;
    fail("the test itself is wrong: it knows no datatype {}", static_cast<int>(type));
}

const std::vector<Operator>& operators() {
    static const std::vector<Operator> all = {
        {FI_MIN, "MIN"},   {FI_MAX, "MAX"}, {FI_SUM, "SUM"},   {FI_PROD, "PROD"}, {FI_LOR, "LOR"},
        {FI_LAND, "LAND"}, {FI_BOR, "BOR"}, {FI_BAND, "BAND"}, {FI_LXOR, "LXOR"}, {FI_BXOR, "BXOR"},
    };
    return all;
}

const char* name_of(fi_op op) {
    for (const Operator& one : operators())
        if (one.op == op) return one.name;
    return "NOOP";
}

}  // namespace mcastcoll::fabtest
