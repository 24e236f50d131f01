// Small components of the engine, each by itself: watermarks, leaving, peers to monitor.
#include <criterion/criterion.h>

#include <tuple>
#include <vector>

#include "engine/checkpoint.h"
#include "engine/departure.h"
#include "engine/failure_detector.h"

using namespace mcastcoll;
using namespace mcastcoll::engine;

namespace {

constexpr Nanoseconds kPartSoon = Nanoseconds::from_us(100), kPartLate = Nanoseconds::from_ms(10);

GroupConfig parts_config(std::uint32_t self, std::uint32_t members) {
    GroupConfig config;
    config.self = rank_of(self);
    config.members = members;
    return config;
}

RankList ranks(std::initializer_list<std::uint32_t> list) {
    RankList result;
    for (const std::uint32_t rank : list) result.add(rank_of(rank));
    return result;
}

// A member with a checkpoint every four operations, in a tree of this arity.
struct Member {
    Member(std::uint32_t self, std::uint32_t members, std::uint32_t arity = 1, Repair repair = Repair::pull)
        : core([&] {
              GroupConfig config = parts_config(self, members);
              config.tree_arity = arity;
              config.checkpoint_every = config.channels = 4;
              config.repair = repair;
              return config;
          }()) {
        core.now = kPartSoon;
        core.reachability.take_first({.works = true, .deaf = {}, .mute = {}});
        core.phase = Phase::active;
    }
    void finish(std::uint64_t operations) {
        while (core.slots.next() < operations)
            core.slots.take(operation_of(core.slots.post())).state = SlotState::finished;
        core.slots.close_finished();
        checkpoint.settle();
    }
    static wire::Header header(wire::Kind kind, std::uint32_t from, std::uint64_t number,
                               std::uint32_t map_version = 0) {
        wire::Header header;
        header.kind = kind;
        header.sender = rank_of(from);
        header.operation = operation_of(number);
        header.fragment = fragment_of(map_version);
        return header;
    }
    void up(std::uint32_t child, std::uint64_t number) {
        checkpoint.on_up(header(wire::Kind::watermark_up, child, number));
        checkpoint.settle();
    }
    void inform(std::uint64_t number, std::uint32_t map_version = 0) {
        checkpoint.on_watermark(
            header(wire::Kind::watermark_down, index_of(core.parent), number, map_version), core.parent);
    }
    void requested(std::uint32_t child, std::uint64_t above) {
        checkpoint.on_request(header(wire::Kind::watermark_request, child, above));
    }
    // Kind, receiver and number of each message.
    using Messages = std::vector<std::tuple<wire::Kind, std::uint32_t, std::uint64_t>>;
    // Returns the member's next messages.
    Messages messages() {
        Messages all;
        for (Effect effect; checkpoint.next_message(effect);) {
            const wire::Header said = wire::decode(effect.header).header;
            all.emplace_back(said.kind, index_of(effect.to), number_of(said.operation));
        }
        return all;
    }

    Core core;
    Checkpoint checkpoint{core};
};

using Messages = Member::Messages;
constexpr auto kUp = wire::Kind::watermark_up, kDown = wire::Kind::watermark_down,
               kRequest = wire::Kind::watermark_request;

}  // namespace

Test(watermark, rises_when_all_below_have_finished) {
    Member root(0, 3, 2);
    root.finish(8);
    root.up(1, 8);
    cr_assert(root.checkpoint.opened() == 0 && root.messages().empty(), "one has not");
    root.up(2, 4);
    cr_assert_eq(root.checkpoint.opened(), 4U);
    cr_assert(root.messages() == (Messages{{kDown, 1, 4}, {kDown, 2, 4}}));
    cr_assert(root.messages().empty(), "once");
    cr_assert_eq(root.checkpoint.behind().count, 1U);
    cr_assert(root.checkpoint.behind().contains(rank_of(2)));
    root.up(2, 2);
    cr_assert(root.checkpoint.opened() == 4 && root.messages().empty(), "late and doubled");
}

Test(watermark, goes_up_and_comes_down_through_others) {
    Member middle(1, 3);
    middle.up(2, 8);
    middle.finish(6);
    cr_assert(middle.messages() == (Messages{{kUp, 0, 4}}), "in whole checkpoints");
    cr_assert_eq(middle.checkpoint.opened(), 0U, "only rank 0 knows what all have");
    middle.inform(4);
    cr_assert_eq(middle.checkpoint.opened(), 4U);
    cr_assert(middle.messages() == (Messages{{kDown, 2, 4}}));
    for (const std::uint64_t old : {4U, 2U}) middle.inform(old);
    cr_assert(middle.checkpoint.opened() == 4 && middle.messages().empty(), "no news");
}

Test(watermark, waits_for_the_map_that_it_names) {
    Member leaf(1, 2);
    leaf.finish(8);
    for (const std::uint64_t number : {4U, 8U}) leaf.inform(number, 1);
    leaf.checkpoint.settle();
    cr_assert_eq(leaf.checkpoint.opened(), 0U);
    leaf.core.reachability.take_next({.works = false, .deaf = {}, .mute = {}}, 300);
    leaf.checkpoint.settle();
    cr_assert_eq(leaf.checkpoint.opened(), 8U);
}

Test(watermark, receivers_of_the_multicast_get_no_watermark_but_may_request_it) {
    Member root(0, 2, 1, Repair::sync);
    root.finish(4);
    root.up(1, 4);
    Effect effect;
    cr_assert(root.checkpoint.next_multicast(effect) &&
              wire::decode(effect.header).header.operation == operation_of(4));
    cr_assert_not(root.checkpoint.next_multicast(effect), "once");
    cr_assert(root.messages().empty());
    root.requested(1, 0);
    cr_assert(root.messages() == (Messages{{kDown, 1, 4}}));
}

Test(watermark, requests_each_once_and_answers_when_known) {
    Member middle(1, 3);
    middle.finish(4);
    middle.checkpoint.await();
    const Nanoseconds min =
        std::max(middle.core.config.min_silence, Nanoseconds{2 * middle.core.round_trip.mean().value});
    cr_assert(middle.checkpoint.next_deadline() == kPartSoon + min, "while nothing was measured");
    middle.core.now = middle.checkpoint.next_deadline();
    middle.checkpoint.on_timeout();
    cr_assert(middle.messages() == (Messages{{kRequest, 0, 0}}));
    middle.core.now = kPartLate;
    middle.checkpoint.await();
    cr_assert(middle.checkpoint.next_deadline() == kNever, "the request is sent");
    middle.requested(2, 0);
    cr_assert(middle.messages().empty(), "it does not know");
    middle.inform(4);
    cr_assert_eq(middle.messages().front(), (std::tuple{kDown, 2U, std::uint64_t{4}}));
    // A child that already has this member's watermark makes the member request one from its own parent.
    middle.requested(2, 4);
    cr_assert(middle.messages() == (Messages{{kRequest, 0, 4}}));
}

Test(departure, up_when_all_below_have_left_and_down_again) {
    Departure middle(ranks({3, 4}), rank_of(0));
    wire::Kind kind{};
    Rank to{};
    middle.on_idle();
    cr_assert_not(middle.closing() || middle.next(kind, to));
    cr_assert_not(middle.on_all_left(), "it has not");
    middle.on_child_left(0);
    middle.close();
    middle.on_idle();
    cr_assert(middle.closing());
    cr_assert_not(middle.next(kind, to), "one child is still there");
    middle.on_child_left(1);
    middle.on_idle();
    cr_assert(middle.next(kind, to) && kind == wire::Kind::leave_up && to == rank_of(0));
    cr_assert_not(middle.next(kind, to) || middle.over());
    cr_assert(middle.on_all_left());
    cr_assert(middle.next(kind, to) && kind == wire::Kind::leave_down && to == rank_of(3));
    cr_assert_not(middle.over(), "one child does not know");
    cr_assert(middle.next(kind, to) && to == rank_of(4));
    cr_assert(middle.over());
}

Test(departure, rank_0_alone_leaves_at_once) {
    Departure alone(ranks({}), kNoRank);
    alone.on_idle();
    cr_assert_not(alone.over());
    alone.close();
    alone.on_idle();
    cr_assert(alone.over());
}

Test(failure_detector, requests_a_watch_once_per_process_within_its_memory) {
    Core core(parts_config(1, 2 * kMaxWatched));
    FlowControl flow{core};
    RootRepairer root_repairer{core};
    Repairer repairer{core, root_repairer};
    Supplier supplier{core, flow, repairer};
    Gatherer gatherer{core, flow, supplier};
    Checkpoint checkpoint{core};
    FailureDetector detector(core, checkpoint, gatherer);
    const auto pinged = [&] {
        std::vector<Rank> ranks;
        for (Effect effect; detector.next_watch(effect);) ranks.push_back(effect.to);
        return ranks;
    };
    for (const Rank rank : {kNoRank, rank_of(1), rank_of(5), rank_of(5), rank_of(6), rank_of(5)})
        detector.watch(rank);
    cr_assert(pinged() == (std::vector{rank_of(5), rank_of(6)}));
    for (std::uint32_t i = 0; i < kMaxWatched - 1; ++i) detector.watch(rank_of(100 + i));  // 5 is removed
    cr_assert_eq(pinged().size(), kMaxWatched - 1);
    for (const std::uint32_t rank : {6U, 5U}) detector.watch(rank_of(rank));
    cr_assert(pinged() == (std::vector{rank_of(5)}));
}
