// Team: the processes of one host that belong to a group, and their collectives through shared memory.
//
// Every member counts the *steps* of the operations alike (layout.h) and carries the operations out in the
// order in which they were posted. In a step members publish lines and slots, and read those of others:
//
//   broadcast   the root publishes, the others copy out. Up to kInlineBytes beside the flag; then through
//               everybody's slots, piece by piece; then straight out of the root's memory
//   barrier     everybody publishes an empty line and waits for all others'. No tree: with more members
//               than cores every further hop is a context switch, with enough cores lines come in parallel
//   allgather   everybody publishes, everybody copies out; gather: the root only
//   scatter     the root publishes, into everybody's slots; each copies its own out
//   alltoall    everybody publishes for, and copies out of, one partner after the other
//   reduce      everybody publishes, and combines all in rank order: small ones each for itself, larger
//   allreduce   ones a share each of the vector, which the others copy out
//   reduce_scatter  everybody publishes, and combines its own slice of all, in rank order
//
// Large blocks and vectors (not reduce's) are read where their owners have them, if the kernel lets us.
// Results of reductions are the same bits whoever comes first, since they are always combined in rank order.
//
// Who has nothing to do never waits in here: progress() returns. run() waits as suits the machine
// (waiting.cc). A Team belongs to one thread at a time. Buffers belong to the team from post() until `done`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "host/alarm.h"
#include "host/backoff.h"
#include "host/calibration.h"
#include "host/failure_detector.h"
#include "host/layout.h"
#include "host/operation.h"
#include "host/segment.h"
#include "host/single_copy.h"
#include "host/window.h"

namespace mcastcoll::host {

struct TeamConfig {
    // Of the shared memory. Member 0 may leave it empty, and tells the others name().
    std::string name;
    // Proves that a segment is the one meant.
    std::uint64_t key = 0;
    std::uint32_t self = 0;
    std::uint32_t size = 1;
    // By member: its clusters, outside in (NUMA node, shared cache ...). May be empty.
    std::vector<std::vector<std::uint32_t>> clusters{};
    // Copy straight between processes where the kernel allows it. Off for one is off for all.
    bool single_copy = true;

    // What member 0 decides for all; 0 leaves it to measurement.
    std::uint32_t slots = 0;       // 2 to 32
    std::uint32_t slot_bytes = 0;  // a multiple of 128, up to 64 KiB
    std::uint64_t single_copy_from = 0;
    std::uint64_t share_from = 0;
    std::uint64_t both_copy_from = 0;
    std::uint64_t blocks_direct_from = 0;
    std::uint64_t reduce_direct_from = 0;
    enum class Crowding { measured, crowded, roomy } crowding = Crowding::measured;
    // For members that are threads of one process: the mapping of member 0's team. Thread sanitizers see only
    // addresses.
    std::shared_ptr<Segment> segment{};
};

struct TeamCounters {
    std::uint64_t operations = 0;
    std::uint64_t failed_operations = 0;
    std::uint64_t inline_steps = 0;  // carried beside the flag
    std::uint64_t slot_steps = 0;    // through slots
    std::uint64_t single_copies = 0;
    std::uint64_t both_copies = 0;
    std::uint64_t single_copy_bytes = 0;
    std::uint64_t yields = 0;
    std::uint64_t sleeps = 0;
    std::uint64_t moves = 0;  // away from a core that another member had, too
    std::uint64_t liveness_checks = 0;
};

struct Offer;

class Team {
  public:
    static constexpr std::size_t kMaxOpen = Window::kMost;

    // Member 0 creates, the others attach. Neither waits: operations wait until all are there.
    static Result<std::unique_ptr<Team>> create(const TeamConfig& config);
    static Result<std::unique_ptr<Team>> attach(const TeamConfig& config);
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    // Who leaves while others wait for it ends their operations with ECONNRESET.
    ~Team();

    const std::string& name() const { return segment_->name(); }
    const std::shared_ptr<Segment>& segment() const { return segment_; }
    std::uint32_t self() const { return self_; }
    std::uint32_t size() const { return size_; }
    // All are here and have agreed; moved on by progress().
    bool formed();

    // 0; EINVAL for nonsense; EAGAIN when kMaxOpen are open. All members post the same operations in the same
    // order. The operation stays where it is until done.
    int post(Operation& operation);
    // Never waits. True when something moved.
    bool progress();
    // Posts and waits; calls `meanwhile` now and then, which returns non-zero when it got something done.
    // The operation's error, or post()'s. What lies beside the flag and is there, or comes at once, is over
    // without being posted: the bookkeeping would take longer than the memory does.
    int run(Operation& operation, int (*meanwhile)(void*) = nullptr, void* argument = nullptr);
    // One turn of waiting, after progress() has returned false: spins, yields or sleeps, for `longest` at
    // most. For callers with a loop of their own; who has other things to wait for passes a short time.
    void wait_turn(int (*meanwhile)(void*) = nullptr, void* argument = nullptr,
                   Nanoseconds longest = Nanoseconds::from_ms(10));
    // For callers whose loop is under a lock, which none sleeps with: count as a sleeper, call progress(),
    // sleep without the lock unless that got what is waited for, and stop counting.
    std::uint32_t prepare_nap() { return alarm_.prepare_sleep(); }
    void nap(std::uint32_t turn, Nanoseconds longest) { alarm_.sleep(turn, longest); }
    void end_nap() { alarm_.end_sleep(); }
    // Whom the oldest open operation waits for.
    std::uint32_t awaited() const { return blocker_; }
    // Poisons the team: everybody's open and later operations end with this error.
    void fail(int error, std::uint32_t lost = Alarm::kNobody);
    int failure() const { return alarm_.failure(); }
    // The member that the failure is about, or Alarm::kNobody.
    std::uint32_t lost() const { return alarm_.lost(); }
    // For who sleeps otherwise: when to call progress() again, kNever when nothing is open.
    Nanoseconds next_deadline();

    const TeamCounters& counters() const { return counters_; }
    // Sizes, thresholds, and why.
    std::string explain() const;

  private:
    enum class Advance { idle, moved, finished };
    // Who the others are, in this process's addresses.
    struct Peer {
        Card* card = nullptr;
        Left* left = nullptr;
        Line* lines = nullptr;
        std::byte* slots = nullptr;
        RemoteMemory memory;
    };
    // Where the oldest open operation stands. Its steps begin at step_.
    struct Course {
        bool begun = false;
        bool both = false;            // root and receiver copy
        bool through_slots = false;   // not straight between memories, all have agreed
        bool in_place = false;        // somebody's result goes where its input is
        bool left = false;            // this member has left the step, and waits for its readers
        std::uint64_t published = 0;  // steps that this member has published
        std::uint64_t reduced = 0;    // steps of which it has computed its share
        std::uint64_t gathered = 0;   // steps that it has read
        std::size_t within = 0;       // bytes of the present step
        std::uint32_t next = 0;       // the first member not yet dealt with in the step to be gathered
        std::uint32_t next_reduced = 0;
    };
    // The elements of a block that a member combines.
    struct Share {
        std::size_t begin = 0, bytes = 0;
    };
    // An alltoall's rounds and pieces, and how they are cut into steps.
    struct Meetings {
        std::uint32_t rounds = 0, at_once = 0;
        bool in_line = false;
        std::size_t piece_bytes = 0;
        std::uint64_t pieces = 1, steps = 1;
    };
    // A reduce_scatter's vector, dealt out to steps.
    struct Deal {
        std::uint32_t at_once = 0, groups = 0;  // members with a piece in one step
        std::size_t piece_bytes = 0;
        std::uint64_t steps = 0;
    };
    enum class Agreed { not_yet, direct, slots };
    // A reduction's or allgather's message cut to slots.
    struct Blocks {
        std::size_t bytes = 0;  // of a whole block
        std::uint64_t count = 0;
    };

    Team(const TeamConfig& config, std::shared_ptr<Segment> segment);

    // formation.cc
    Result<void> write_card();
    bool all_are_at(Stage stage);
    void probe_peers();
    CopyCosts measure_costs() const;
    void agree();
    void adopt_agreement();

    // team.cc
    Advance advance(Operation& operation);
    Advance finish(Operation& operation, std::uint64_t steps);
    void end(Operation& operation, int error);
    bool end_all();
    void look_after_blocker();

    // at_once.cc
    bool await_word(std::uint32_t member, Kind kind, std::uint64_t& word);
    bool at_once(Operation& operation);
    bool is_for_gather_one(const Operation& operation) const;
    bool gather_at_once(Operation& operation);
    bool broadcast_at_once(Operation& operation);

    // waiting.cc
    void notice_core();
    void sleep(Nanoseconds longest);

    // broadcast.cc
    Advance broadcast(Operation& operation);
    Advance broadcast_inline(Operation& operation);
    bool fill_slots(Operation& operation, std::size_t offset, std::size_t step_bytes);
    Advance send_slots(Operation& operation);
    Advance take_slots(Operation& operation);
    Advance broadcast_single_copy(Operation& operation);
    Advance offer_memory(Operation& operation);
    Advance take_memory(Operation& operation);
    void copy_failed(std::uint32_t member, int code);

    // both_copy.cc
    bool may_both_copy(const Operation& operation) const;
    void set_busy(bool busy);
    bool write_pieces(const Operation& operation);
    Advance read_pieces(Operation& operation, std::uint64_t from_address);
    bool root_is_writing(const Operation& operation);
    bool is_withdrawn(const Operation& operation);

    // clusters.cc
    void choose_leaders();
    void adopt_leaders();
    Advance barrier(Operation& operation);

    // gather.cc
    Advance gather_one(Operation& operation);
    Advance gather_blocks(Operation& operation);
    bool read_one(Operation& operation, std::uint32_t member, Step step);
    bool gather_block(Operation& operation, const Blocks& blocks);

    // scatter.cc
    Advance scatter(Operation& operation);
    void fill_blocks(const Operation& operation, std::size_t offset, std::size_t bytes, Step step,
                     bool in_line, bool together);
    bool take_block(Operation& operation, std::size_t offset, std::size_t bytes, Step step, bool in_line,
                    bool together);

    // alltoall.cc
    Advance alltoall(Operation& operation);
    Meetings meetings_of(const Operation& operation) const;
    bool send_to_partners(const Operation& operation, const Meetings& all);
    bool take_from_partners(Operation& operation, const Meetings& all);

    // reduce_scatter.cc
    Advance reduce_scatter(Operation& operation);
    Deal deal_of(const Operation& operation) const;
    Share piece_of(std::uint32_t member, const Operation& operation, const Deal& deal,
                   std::uint64_t at) const;
    bool contribute_pieces(const Operation& operation, const Deal& deal);
    bool combine_pieces(Operation& operation, const Deal& deal);

    // direct.cc
    Advance move_blocks(Operation& operation);
    Advance copy_blocks(Operation& operation);
    bool publish_offer(const Operation& operation);
    bool see_offer(std::uint32_t member, const Operation& operation, Offer& offer);
    Agreed agree_on_direct(const Operation& operation, bool may_be_in_place);
    bool pull(std::uint32_t member, std::uint64_t from, std::byte* to, std::size_t bytes,
              std::size_t& budget);
    Advance await_readers(Operation& operation, std::uint32_t begin, std::uint32_t end);

    // reduce_direct.cc
    Advance combine_vectors(Operation& operation);
    Advance reduce_directly(Operation& operation);
    bool combine_piece(const Operation& operation, const Share& slice, std::byte* result);

    // shares.cc
    Advance reduce_shares(Operation& operation);
    bool contribute(const Operation& operation, const Blocks& blocks);
    bool reduce_share(const Operation& operation, const Blocks& blocks);
    bool collect_shares(Operation& operation, const Blocks& blocks);
    Share share_of(std::uint32_t member, std::size_t block_bytes, std::size_t element_bytes) const;

    Blocks blocks_of(const Operation& operation) const;

    // Lines and slots.
    Line& line_of(std::uint32_t member, Step step) const {
        // Turned by the member: the lines of one step would else lie a whole number of pages apart, in one
        // set of the cache.
        return peers_[member].lines[(step + member) % kLines];
    }
    std::byte* slot_of(std::uint32_t member, Step step) const {
        return peers_[member].slots + (step % slots_) * slot_bytes_;
    }
    // Whether everybody has left what was `ring` steps before.
    bool may_write(Step step, std::uint64_t ring) {
        if (watermark_ + ring > step) [[likely]]
            return true;
        return raise_watermark(step, ring);
    }
    bool raise_watermark(Step step, std::uint64_t ring);
    void publish(Step step, Kind kind, bool final, std::uint64_t count) {
        line_of(self_, step)
            .word.store(Word::of(step, static_cast<unsigned>(kind), final, count), std::memory_order_release);
        alarm_.published();
    }
    void leave(Step step) {
        peers_[self_].left->step.store(step + 1, std::memory_order_release);
        alarm_.published();
    }
    // The word that a member has published for a step, or 0.
    std::uint64_t look(std::uint32_t member, Step step, Kind kind) {
        const std::uint64_t word = line_of(member, step).word.load(std::memory_order_acquire);
        if (!Word::is_of(word, step)) {
            blocker_ = member;
            return 0;
        }
        if (Word::kind(word) != static_cast<unsigned>(kind)) [[unlikely]]
            return mismatch(), 0;
        return word;
    }
    // Members have posted different things under one number.
    void mismatch();
    std::size_t step_capacity() const;

    TeamConfig config_;
    std::shared_ptr<Segment> segment_;
    Header& header_;
    Alarm alarm_;
    std::uint32_t self_;
    std::uint32_t size_;
    std::uint32_t slots_ = 0;
    std::size_t slot_bytes_ = 0;
    bool formed_ = false;
    bool probed_ = false;
    std::size_t single_copy_from_ = SIZE_MAX;
    std::size_t share_from_ = 0;
    std::size_t reduce_whole_ = 0;  // reduces of up to so many bytes are the root's work
    std::size_t both_copy_from_ = SIZE_MAX;
    std::size_t blocks_direct_from_ = SIZE_MAX;
    std::size_t reduce_direct_from_ = SIZE_MAX;
    std::vector<std::uint32_t> leaders_;  // of clusters, for barriers; none: no clusters
    std::vector<std::uint32_t> cluster_;  // the others of the own one, if this member leads it
    Step step_ = 1;                       // the first step of the oldest open operation
    Step watermark_ = 1;                  // everybody has left all steps before
    Course course_;
    std::vector<Peer> peers_;
    TeamCounters counters_;

    // Waiting.
    std::uint32_t blocker_ = 0;  // whom the last look was in vain for
    FailureDetector detector_;
    Backoff backoff_;
    Window window_;
    std::uint64_t witness_ = 0;
};

}  // namespace mcastcoll::host
