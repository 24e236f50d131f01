#include "support/buffer.h"

#include <algorithm>
#include <cstring>

#include "support/failure.h"

namespace mcastcoll::fabtest {
namespace {

constexpr std::byte kGuard{0xa5};
constexpr std::byte kPoison{0x5c};
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

// The word at `index` of the contents for `seed`; cheap, because tests check gigabytes with this function.
std::uint64_t content(std::uint64_t seed, std::size_t index) {
    std::uint64_t word = (seed ^ (index + 1)) * 0x9e3779b97f4a7c15ULL;
    return word ^ (word >> 29);
}

}  // namespace

std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

Buffer::Buffer(std::size_t bytes) : storage_(bytes + 2 * kGuardBytes, kGuard) {}

void Buffer::fill(std::uint64_t seed) {
    for (std::size_t at = 0; at < size(); at += kWordBytes) {
        const std::uint64_t word = content(seed, at / kWordBytes);
        std::memcpy(data() + at, &word, std::min(kWordBytes, size() - at));
    }
}

void Buffer::poison() {
    std::fill_n(data(), size(), kPoison);
}

void Buffer::check(std::uint64_t seed, const char* what) const {
    const std::byte* bytes = storage_.data() + kGuardBytes;
    for (std::size_t at = 0; at < size(); at += kWordBytes) {
        const std::uint64_t word = content(seed, at / kWordBytes);
        const std::size_t length = std::min(kWordBytes, size() - at);
        if (std::memcmp(bytes + at, &word, length) == 0) continue;
        const bool untouched =
            std::all_of(bytes + at, bytes + at + length, [](std::byte b) { return b == kPoison; });
        fail("{}: {} bytes, wrong in the 8 from byte {} on{}", what, size(), at,
             untouched ? ", which were never written" : "");
    }
    check_guards(what);
}

void Buffer::check_guards(const char* what) const {
    const auto spoilt = [](std::byte b) { return b != kGuard; };
    if (std::any_of(storage_.begin(), storage_.begin() + kGuardBytes, spoilt))
        fail("{}: bytes before the buffer were written", what);
    if (std::any_of(storage_.end() - kGuardBytes, storage_.end(), spoilt))
        fail("{}: bytes behind the buffer were written", what);
}

}  // namespace mcastcoll::fabtest
