// Formation of a team: the segment, the members' records (`MemberRecord`) in it, and the agreement.
//
// Each member announces its stages in its record: attached (its identity is complete), probed (its
// access to the other memories is known). When every member has attached, the segment's name is removed, so a
// crash leaves no file behind. When every member has probed, member 0 writes the agreement. No call blocks:
// operations posted earlier wait in the window.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/clusters.h"
#include "host/context.h"
#include "host/memories.h"
#include "host/segment.h"

namespace mcastcoll::host {

struct TeamConfig {
    // Name of the shared memory. Member 0 may leave the name empty and pass name() to its peers.
    std::string name;
    // Identifies the team: a segment with another key is refused.
    std::uint64_t key = 0;
    std::uint32_t self = 0;
    std::uint32_t size = 1;
    // On member 0: data to be stored in the memory for the others from the start.
    std::span<const std::byte> table{};
    // By member: its clusters, outermost first (NUMA node, shared cache ...). May be empty. Used by member 0
    // only.
    std::vector<Clusters::Ids> clusters{};
    // Whether to copy directly between processes where the kernel allows it. If off for one member it is off
    // for all.
    bool single_copy = true;

    // Member 0 decides these values for all. 0: a default, or a value from the available memory or from
    // measurement.
    std::uint32_t slots = 0;       // 2 to 32
    std::uint32_t slot_bytes = 0;  // a multiple of 128, up to 64 KiB
    Thresholds thresholds{};
    enum class Crowding { measured, crowded, roomy } crowding = Crowding::measured;
    // The result of find_segment(). For members that are threads of one process, the mapping of member 0's
    // team instead: thread sanitizers compare addresses only.
    std::shared_ptr<Segment> segment{};
};

// Slot size for the amount of memory that can still be shared.
std::uint32_t slot_bytes_for(std::uint32_t members, std::uint32_t slots, std::uint64_t spare_bytes);

// Bytes of the slots that measure_copies() reads and writes.
inline constexpr std::size_t kMeasuredBytes = 27 * 1024;
// Measures copies from the peer's memory. `slots` are the peer's slots in this process's mapping, freshly
// written by the peer, and start at `address` in the peer's mapping. Overwrites them. The result is not
// `measured` if the slots are too small, or if copying fails.
CopyCosts measure_copies(const RemoteMemory& peer, std::span<std::byte> slots, std::uint64_t address);

// Chooses the thresholds between the algorithms. crowded: more members than cores.
Thresholds thresholds(std::uint32_t members, bool crowded, std::size_t slot_bytes, const CopyCosts& costs);
Bounds bounds_of(const Agreement& agreement, std::uint32_t members, std::size_t slot_bytes);

class Formation {
  public:
    // The memory, and its validated shape.
    struct Found {
        std::shared_ptr<Segment> segment;
        Shape shape;
    };
    // Makes the segment on member 0, and finds it on the other members.
    static Result<Found> open_segment(const TeamConfig& config);
    static Result<Found> find_segment(const std::string& name, std::uint64_t key);
    // The table that member 0 has stored for the others.
    static std::span<const std::byte> table_of(const Found& found);

    Formation(const TeamConfig& config, const Found& found);
    Formation(const Formation&) = delete;
    Formation& operator=(const Formation&) = delete;

    const Found& found() const { return found_; }
    Header& header() const { return header_; }
    // Writes this member's record.
    Result<void> arrive(Rings& rings);
    bool is_over() const { return state_ == State::over; }
    // Does not block. Returns true when formation is over and bounds and clusters are set.
    bool advance(Context& c);
    void leave(Rings& rings);
    // Describes sizes and thresholds, with their reasons.
    std::string explain(const Context& c) const;

  private:
    enum class State : std::uint8_t { arrived, probed, over };

    static Result<Found> look_into(const std::shared_ptr<Segment>& segment, std::uint64_t key);
    static Result<Shape> shape_of(const Segment& segment, std::uint64_t key);

    bool all_are_at(Stage stage, Rings& rings);
    void probe(Context& c);
    CopyCosts measure_costs(Context& c) const;
    void agree(Context& c);
    void adopt(Context& c);

    TeamConfig config_;  // member 0 keeps the clusters until the agreement; others have none
    const Found found_;
    Header& header_;
    State state_ = State::arrived;
    // Members before counted_at_ have reached stage counted_. Stages only rise.
    Stage counted_ = Stage::absent;
    std::uint32_t counted_at_ = 0;
    std::uint64_t nonce_ = 0;  // peers read it in this process's memory
};

}  // namespace mcastcoll::host
