// A buffer with guards at both ends and contents that everybody can compute from a seed, so that a receiver
// checks every byte, and the bytes around them, without being told what was sent.
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

    // Contents that depend on seed alone; and contents that no seed gives.
    void fill(std::uint64_t seed);
    void poison();

    // Throws Failure naming the first byte that is not as fill(seed) left it, or the guard that is spoilt.
    void check(std::uint64_t seed, const char* what) const;
    void check_guards(const char* what) const;

  private:
    static constexpr std::size_t kGuardBytes = 64;
    std::vector<std::byte> storage_;
};

// A number that looks random and differs for different arguments: seeds of operations, choices of tests.
std::uint64_t mix(std::uint64_t value);
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
    return mix(mix(mix(a) ^ b) ^ c);
}

}  // namespace mcastcoll::fabtest
