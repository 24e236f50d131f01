// A buffer with guards at both ends. Every process can compute its contents from a seed, so a receiver checks
// every byte, and the bytes around the buffer, without a copy of the sent data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mcastcoll::fabtest {

class Buffer {
  public:
    explicit Buffer(std::size_t bytes);

    std::byte* data() { return storage_.data() + kGuardBytes; }
    std::size_t size() const { return storage_.size() - 2 * kGuardBytes; }

    // Writes contents that depend only on the seed.
    void fill(std::uint64_t seed);
    // Writes contents different from those of any seed.
    void poison();

    // Throws Failure with the first byte that differs from fill(seed), or with the overwritten guard.
    void check(std::uint64_t seed, const char* what) const;
    void check_guards(const char* what) const;

  private:
    static constexpr std::size_t kGuardBytes = 64;
    std::vector<std::byte> storage_;
};

// Returns a pseudorandom number that depends only on the arguments, for seeds of operations and choices of
// tests.
std::uint64_t mix(std::uint64_t value);
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
    return mix(mix(mix(a) ^ b) ^ c);
}

}  // namespace mcastcoll::fabtest
