// The kernels: one loop, instantiated for every pair of the two type lists below and, on x86, for three
// instruction sets. The compiler builds the table of pointers from the same lists, so a new datatype or
// operator takes a single line.
#include "reduce/kernels.h"

#include <array>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

#if defined(__x86_64__) && defined(__GNUC__)
#define MCC_REDUCE_X86 1
#endif

namespace mcastcoll::reduce {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// The datatypes in the order of enum fi_datatype. Older headers have no names for the last two.
using Datatypes = std::tuple<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                             std::uint32_t, std::int64_t, std::uint64_t, float, double, std::complex<float>,
                             std::complex<double>, long double, std::complex<long double>, Int128, Uint128>;
static_assert(FI_INT8 == 0 && FI_UINT64 == 7 && FI_FLOAT == 8 && FI_DOUBLE_COMPLEX == 11 &&
              FI_LONG_DOUBLE == 12 && FI_LONG_DOUBLE_COMPLEX == 13);

template <typename T>
concept Integer = std::integral<T> || std::same_as<T, Int128> || std::same_as<T, Uint128>;
template <typename T>
concept Ordered = Integer<T> || std::floating_point<T>;

// Type for sums and products of integers: unsigned, so that they wrap, and no narrower than int, so that the
// promotion to int does not bring the sign back.
template <typename T>
using Modular =
    std::conditional_t<sizeof(T) <= sizeof(unsigned), unsigned,
                       std::conditional_t<sizeof(T) <= sizeof(std::uint64_t), std::uint64_t, Uint128>>;

// The operators. An operator whose apply() does not accept a datatype has no kernel for the datatype.
template <typename Before>
struct First {
    template <Ordered T>
    static T apply(T inout, T in) {
        return Before{}(in, inout) ? in : inout;
    }
};
template <typename Op>
struct Arithmetic {
    template <Integer T>
    static T apply(T inout, T in) {
        return static_cast<T>(Op{}(static_cast<Modular<T>>(inout), static_cast<Modular<T>>(in)));
    }
    template <typename T>
    static T apply(T inout, T in) {
        return Op{}(inout, in);
    }
};
// Bitwise operators on truth values, without a branch: the vectoriser requires this.
template <typename Op>
struct Logical {
    template <typename T>
    static T apply(T inout, T in) {
        return static_cast<T>(static_cast<bool>(Op{}(inout != T{}, in != T{})));
    }
};
template <typename Op>
struct Bitwise {
    template <Integer T>
    static T apply(T inout, T in) {
        return static_cast<T>(Op{}(inout, in));
    }
};

// The operators in the order of enum fi_op.
using Operators = std::tuple<First<std::less<>>, First<std::greater<>>, Arithmetic<std::plus<>>,
                             Arithmetic<std::multiplies<>>, Logical<std::bit_or<>>, Logical<std::bit_and<>>,
                             Bitwise<std::bit_or<>>, Bitwise<std::bit_and<>>, Logical<std::bit_xor<>>,
                             Bitwise<std::bit_xor<>>>;
static_assert(FI_MIN == 0 && FI_PROD == 3 && FI_LAND == 5 && FI_BAND == 7 && FI_LXOR == 8 && FI_BXOR == 9);

template <typename Op, typename T>
concept Allowed = requires(T value) {
    { Op::apply(value, value) } -> std::same_as<T>;
};

// Bytes of a long double without padding. store_extended() does not write the padding of an 80-bit number, so
// that register contents of this process do not leak into a packet.
constexpr std::size_t kExtendedBytes =
    std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double);
inline void store_extended(std::byte* to, long double value) {
    std::memcpy(to, &value, kExtendedBytes);
}
inline void store_extended(std::byte* to, std::complex<long double> value) {
    store_extended(to, value.real());
    store_extended(to + sizeof(long double), value.imag());
}

// Elements are copied in and out, because an address need not be aligned: an unaligned buffer must not fail
// on one caller alone. The copies compile to plain loads and stores. Iteration i touches element i only,
// whether the vectors are distinct or the same (ivdep).
template <typename T, typename Op>
[[gnu::always_inline]] inline void loop(void* out, const void* one, const void* other, std::size_t elements) {
    auto* to = static_cast<std::byte*>(out);
    const auto *from = static_cast<const std::byte*>(one), *and_from = static_cast<const std::byte*>(other);
#ifndef __clang__  // clang compares the addresses before it takes the fast path
#pragma GCC ivdep
#endif
    for (std::size_t i = 0; i < elements; ++i) {
        T a, b;
        std::memcpy(&a, from + i * sizeof(T), sizeof(T));
        std::memcpy(&b, and_from + i * sizeof(T), sizeof(T));
        a = Op::apply(a, b);
        if constexpr (std::same_as<T, long double> || std::same_as<T, std::complex<long double>>)
            store_extended(to + i * sizeof(T), a);
        else
            std::memcpy(to + i * sizeof(T), &a, sizeof(T));
    }
}

using Combine = decltype(Combiner::combine);

template <typename T, typename Op>
void combine_plain(void* out, const void* one, const void* other, std::size_t elements) {
    loop<T, Op>(out, one, other, elements);
}

#if MCC_REDUCE_X86
template <typename T, typename Op>
[[gnu::target("avx2")]] void combine_avx2(void* out, const void* one, const void* other,
                                          std::size_t elements) {
    loop<T, Op>(out, one, other, elements);
}

template <typename T, typename Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")]] void combine_avx512(
    void* out, const void* one, const void* other, std::size_t elements) {
    loop<T, Op>(out, one, other, elements);
}
#endif

enum class Width { plain, avx2, avx512 };

template <typename T, typename Op, Width kWidth>
constexpr Combine kernel() {
    if constexpr (!Allowed<Op, T>) {
        return nullptr;
    } else {
#if MCC_REDUCE_X86
        if (kWidth == Width::avx512) return &combine_avx512<T, Op>;
        if (kWidth == Width::avx2) return &combine_avx2<T, Op>;
#endif
        return &combine_plain<T, Op>;
    }
}

constexpr std::size_t kDatatypes = std::tuple_size_v<Datatypes>, kOperators = std::tuple_size_v<Operators>;

// Returns one row of the table: the kernels of datatype T.
template <Width kWidth, typename T, typename... Op>
constexpr std::array<Combine, kOperators> row(std::type_identity<std::tuple<Op...>>) {
    return {kernel<T, Op, kWidth>()...};
}
// Returns the table: a row for each datatype.
template <Width kWidth, typename... T>
constexpr std::array<std::array<Combine, kOperators>, kDatatypes> table(
    std::type_identity<std::tuple<T...>>) {
    return {row<kWidth, T>(std::type_identity<Operators>{})...};
}

template <typename... T>
constexpr std::array<std::size_t, kDatatypes> sizes(std::type_identity<std::tuple<T...>>) {
    return {sizeof(T)...};
}
constexpr auto kElementBytes = sizes(std::type_identity<Datatypes>{});

const auto& best_table() {
    static constexpr auto plain = table<Width::plain>(std::type_identity<Datatypes>{});
#if MCC_REDUCE_X86
    static constexpr auto avx2 = table<Width::avx2>(std::type_identity<Datatypes>{});
    static constexpr auto avx512 = table<Width::avx512>(std::type_identity<Datatypes>{});
    // Processors without vbmi have wide registers too, but lower their clock when these are used.
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return avx512;
    if (__builtin_cpu_supports("avx2")) return avx2;
#endif
    return plain;
}

// Converts an enumerator to an index. A caller may pass a value that is not an enumerator, so the conversion
// goes through the underlying type.
template <typename Enumerator>
std::size_t index_of_value(Enumerator value) {
    return static_cast<std::size_t>(static_cast<std::underlying_type_t<Enumerator>>(value));
}

}  // namespace

std::optional<Combiner> combiner(fi_datatype datatype, fi_op op) {
    const std::size_t row = index_of_value(datatype), column = index_of_value(op);
    if (row >= kDatatypes || column >= kOperators) return {};
    const Combine combine = best_table()[row][column];
    if (combine == nullptr) return {};
    return Combiner{combine, static_cast<std::uint32_t>(kElementBytes[row])};
}

std::optional<std::size_t> element_bytes(fi_datatype datatype) {
    const std::size_t row = index_of_value(datatype);
    if (row >= kDatatypes) return {};
    return kElementBytes[row];
}

}  // namespace mcastcoll::reduce
