// Ways for a gateway to move bytes, to be measured beside each other: from a process's connection into frames
// on a trunk's stream, and from there back into a connection.  All do what a gateway must with one of each: a
// header before each piece, at most so much in a frame, and frames kept as if the other side acknowledged
// them late.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "trunk/frame.h"

namespace mcastcoll::ways {

struct Settings {
    std::size_t piece = trunk::kMaxPayload;
    std::size_t kept = 4 << 20;  // bytes of frames that are not acknowledged yet
    int processor = -1;  // of the relay's own, the other ends have the others; -1: as the kernel likes
};

struct Counters {
    std::uint64_t calls = 0;            // of the system
    std::uint64_t without_copy = 0;     // sends that were to go without a copy
    std::uint64_t copied_all_same = 0;  // of these, those which the kernel copied nevertheless
};

// Nothing moved for this long: something is wrong.
inline constexpr int kPatience_ms = 10'000;
// A batch for one call, as the gateway has it.
inline constexpr std::size_t kBatch = 256 * 1024, kBatchFrames = 64;
inline constexpr unsigned kReadsInARow = 4;
inline constexpr std::size_t kReceiveBuffer = 512 * 1024;
// Up to here a frame gets memory of its own size, and is not worth any tricks.
inline constexpr std::size_t kWorthCopying = 16 * 1024;

class Way {
  public:
    explicit Way(const Settings& settings) : settings_(settings) {}
    virtual ~Way() = default;
    // Relays in both directions until both have ended.  The sockets stay the caller's.
    virtual Result<void> run(int connection, int stream) = 0;
    const Counters& counters() const { return counters_; }

  protected:
    trunk::FrameHeader next_header(std::size_t length) {
        ++sequence_;
        return {trunk::FrameType::data, static_cast<std::uint32_t>(length), 1,
                static_cast<std::uint32_t>(sequence_), sequence_};
    }

    Settings settings_;
    Counters counters_;

  private:
    std::uint64_t sequence_ = 0;
};

struct NamedWay {
    std::string name, about;
    std::function<std::unique_ptr<Way>(const Settings&)> make;
};
// All that this build and this kernel have; plain, what the gateway does, is the first.
std::vector<NamedWay> all_ways();

std::unique_ptr<Way> make_plain(const Settings& settings);
std::unique_ptr<Way> make_zero_copy(const Settings& settings);
std::unique_ptr<Way> make_splice(const Settings& settings, bool keep);
std::unique_ptr<Way> make_uring(const Settings& settings);
std::unique_ptr<Way> make_uring_zero_copy(const Settings& settings);
// Whether the kernel has, and lets us have, all that the ways with io_uring need.
bool uring_works();

}  // namespace mcastcoll::ways
