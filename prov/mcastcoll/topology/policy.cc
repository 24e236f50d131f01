#include "topology/policy.h"

#include "wire/bytes.h"

namespace mcastcoll::topology {
namespace {

constexpr std::uint8_t kPolicyVersion = 1;
constexpr std::size_t kAlgorithmsAt = 4;

}  // namespace

std::array<std::byte, kPolicyBytes> encode(const Policy& policy) {
    std::array<std::byte, kPolicyBytes> out{};
    wire::put(out.data(), kPolicyVersion);
    wire::put(out.data() + 1, static_cast<std::uint8_t>(policy.flat ? 1 : 0));
    wire::put(out.data() + 2, policy.off.bits);
    for (std::size_t i = 0; i < kLevels; ++i) {
        const Algorithm algorithm = policy.algorithms.at(level_of(i));
        wire::put(out.data() + kAlgorithmsAt + 2 * i, algorithm.number);
        wire::put(out.data() + kAlgorithmsAt + 2 * i + 1, algorithm.arity);
    }
    return out;
}

std::optional<Policy> decode_policy(Bytes bytes) {
    if (bytes.size() != kPolicyBytes || wire::get<std::uint8_t>(bytes.data()) != kPolicyVersion)
        return std::nullopt;
    const auto flat = wire::get<std::uint8_t>(bytes.data() + 1);
    const auto off = wire::get<std::uint16_t>(bytes.data() + 2);
    if (flat > 1 || off >= 1U << kLevels || (off & 1U) != 0) return std::nullopt;
    Policy policy;
    policy.flat = flat == 1;
    policy.off = LevelSet{off};
    for (std::size_t i = 0; i < kLevels; ++i) {
        const std::byte* at = bytes.data() + kAlgorithmsAt + 2 * i;
        const auto algorithm = algorithm_of(wire::get<std::uint8_t>(at), wire::get<std::uint8_t>(at + 1));
        if (!algorithm || !algorithm->allowed_at(level_of(i))) return std::nullopt;
        policy.algorithms.set(level_of(i), *algorithm);
    }
    return policy;
}

}  // namespace mcastcoll::topology
