// Formation: how a team comes to be: the segment, everybody's card in it, and what all must agree on.
//
// Stages, each told by every member in its card: attached (who I am), probed (whom I can copy from). When all
// have attached, the segment's name is removed, so that a crash leaves nothing behind; when all have probed,
// member 0 writes down what everybody goes by. Nobody waits: operations that are posted before wait in the
// window.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/context.h"
#include "host/segment.h"

namespace mcastcoll::host {

struct TeamConfig {
    // Of the shared memory. Member 0 may leave it empty, and tells the others name().
    std::string name;
    // Proves that a segment is the one meant.
    std::uint64_t key = 0;
    std::uint32_t self = 0;
    std::uint32_t size = 1;
    // Member 0's: what is to lie in the memory for the others, from the beginning.
    std::span<const std::byte> table{};
    // By member: its clusters, outside in (NUMA node, shared cache ...). May be empty. Member 0 alone uses
    // them.
    std::vector<Clusters::Ids> clusters{};
    // Copy straight between processes where the kernel allows it. Off for one is off for all.
    bool single_copy = true;

    // What member 0 decides for all; 0 leaves it to measurement.
    std::uint32_t slots = 0;       // 2 to 32
    std::uint32_t slot_bytes = 0;  // a multiple of 128, up to 64 KiB
    Thresholds thresholds{};
    enum class Crowding { measured, crowded, roomy } crowding = Crowding::measured;
    // What find_segment() has found. Or, of members that are threads of one process, the mapping of member
    // 0's team: thread sanitizers see only addresses.
    std::shared_ptr<Segment> segment{};
};

// How large each slot is, where so much memory can still be shared.
std::uint32_t slot_bytes_for(std::uint32_t members, std::uint32_t slots, std::uint64_t spare_bytes);

// So much of the slots measure_copies() reads and writes.
inline constexpr std::size_t kMeasuredBytes = 27 * 1024;
// `slots` are the other's, in this process's addresses, freshly written by it, and at `address` in its own.
// Leaves them written over. Not measured: where they are too small, or copying fails.
CopyCosts measure_copies(const RemoteMemory& peer, std::span<std::byte> slots, std::uint64_t address);

// crowded: more members than cores.
Thresholds thresholds(std::uint32_t members, bool crowded, std::size_t slot_bytes, const CopyCosts& costs);
Bounds bounds_of(const Agreement& agreement, std::uint32_t members, std::size_t slot_bytes);

class Formation {
  public:
    // The memory, and how large it said to be when it was looked at.
    struct Found {
        std::shared_ptr<Segment> segment;
        Shape shape;
    };
    // Member 0 makes it, the others find it.
    static Result<Found> open_segment(const TeamConfig& config);
    static Result<Found> find_segment(const std::string& name, std::uint64_t key);
    // What member 0 has put there for the others.
    static std::span<const std::byte> table_of(const Found& found);

    Formation(const TeamConfig& config, const Found& found);
    Formation(const Formation&) = delete;
    Formation& operator=(const Formation&) = delete;

    const Found& found() const { return found_; }
    Header& header() const { return header_; }
    // Writes this member's card.
    Result<void> arrive(Rings& rings);
    bool is_over() const { return state_ == State::over; }
    // Never waits. True when it is over, and the bounds and clusters are there.
    bool advance(Context& c);
    void leave(Rings& rings);
    // Sizes, thresholds, and why.
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

    TeamConfig config_;  // member 0 keeps the clusters until all have agreed, others none
    const Found found_;
    Header& header_;
    State state_ = State::arrived;
    // Members before this one were at this stage when last looked at. Stages only rise.
    Stage counted_ = Stage::absent;
    std::uint32_t counted_at_ = 0;
    std::uint64_t nonce_ = 0;  // the others read it in this process's memory
};

}  // namespace mcastcoll::host
