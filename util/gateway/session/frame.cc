#include "gateway/session/frame.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::gateway::session {
namespace {

// Returns the smallest and the largest payload of a frame type.
std::pair<std::size_t, std::size_t> payload_size(FrameType type) {
    if (type == FrameType::open || type == FrameType::data) return {1, kMaxPayload};
    if (type == FrameType::credit) return {kCreditSize, kCreditSize};
    if (type == FrameType::welcome) return {kWelcomeSize, kWelcomeSize};
    return {0, 0};
}

}  // namespace

void put_header(std::byte* at, const FrameHeader& header) {
    wire::put(at, std::uint32_t{static_cast<std::uint8_t>(header.type)} << 24);
    wire::put(at + 4, header.length);
    wire::put(at + 8, header.channel);
    wire::put(at + 12, header.order);
    wire::put(at + 16, header.sequence);
}

std::optional<FrameHeader> get_header(Bytes bytes) {
    if (bytes.size() < kHeaderSize) return std::nullopt;
    const auto first = wire::get<std::uint32_t>(bytes.data());
    const auto type = static_cast<FrameType>(first >> 24);
    if ((first & 0xffffff) != 0 || type < FrameType::open || type > FrameType::welcome) return std::nullopt;
    const FrameHeader header{
        type, wire::get<std::uint32_t>(bytes.data() + 4), wire::get<std::uint32_t>(bytes.data() + 8),
        wire::get<std::uint32_t>(bytes.data() + 12), wire::get<std::uint64_t>(bytes.data() + 16)};
    const auto [min, max] = payload_size(type);
    if (header.length < min || header.length > max) return std::nullopt;
    if (is_sequenced(type) && header.sequence == 0) return std::nullopt;
    return header;
}

Frame::Frame(const FrameHeader& with, Bytes payload) : Frame(payload.size()) {
    header = with;
    header.length = static_cast<std::uint32_t>(payload.size());
    assert(payload.size() <= kMaxPayload);
    std::copy(payload.begin(), payload.end(), space().begin());
}

}  // namespace mcastcoll::gateway::session
