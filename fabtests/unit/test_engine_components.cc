// Components of an engine, each by itself: a core without an engine around it, and operations posted by hand.
#include <criterion/criterion.h>

#include <cerrno>

#include "engine/admission.h"
#include "engine/checkpoint.h"
#include "engine/elections.h"
#include "engine/failure_detector.h"
#include "engine/holds.h"
#include "engine/receiver.h"
#include "engine/sender.h"
#include "engine_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::bench;
using namespace mcastcoll::engine;

namespace {

constexpr std::uint64_t kFragment = 1424, kSmall = 2 * kFragment, kLarge = 200 * kFragment;

// A core of a group in which every member receives from all, and the components around it for single tests.
struct Parts {
    explicit Parts(const GroupConfig& config) : core(config) {
        core.now = Nanoseconds::from_ms(1);
        core.reachability.take_first({.works = true, .deaf = {}, .mute = {}});
        core.phase = Phase::active;
    }
    Parts(std::uint32_t self, std::uint32_t members) : Parts(config_of(self, members)) {}

    Slot& post(std::uint32_t root, std::uint64_t bytes, CollectiveKind kind = CollectiveKind::broadcast) {
        buffers.push_back(content(bytes));
        Slot& slot = *core.claim(operation_of(core.slots.post()));
        slot.operation = {
            .kind = kind, .root = rank_of(root), .buffer = buffers.back().data(), .bytes = bytes};
        slot.operation.input = slot.operation.buffer;
        slot.operation.combiner = {mix_words, 4};
        slot.state = SlotState::active;
        slot.posted_at = slot.progress_at = core.now;
        slot.length_known = true;
        slot.bytes = bytes;
        slot.fragments = core.config.fragments(bytes);
        const SupplyGraph& graph = core.graph_of(slot);
        const Rank from = rank_of(root), self = core.config.self;
        slot.supplier = graph.supplier(from, self, 1);
        slot.expect_clients(graph.clients(from, self, 1));
        slot.reporting.parent = graph.report_parent(from, self, core.config.tree_arity);
        slot.reporting.children = graph.report_children(from, self, core.config.tree_arity);
        return slot;
    }
    wire::Header header(Kind kind, std::uint32_t from, std::uint32_t fragment = 0, std::uint64_t total = 0,
                        std::uint64_t operation = 0) const {
        return {.kind = kind,
                .key = core.config.key,
                .epoch = core.config.epoch,
                .sender = rank_of(from),
                .operation = operation_of(operation),
                .fragment = fragment_of(fragment),
                .payload_bytes = 0,
                .total = total};
    }
    bool completed(int status) {
        Effect effect;
        return core.notices.next_operation(effect) && effect.status == status;
    }

    Core core;
    std::vector<ByteString> buffers;
    FlowControl flow{core};
    RootRepairer root_repairer{core};
    Repairer repairer{core, root_repairer};
    Supplier supplier{core, flow, repairer};
    Holds holds{core};
    Sender sender{core, flow, supplier, holds};
    Receiver receiver{core, flow, root_repairer, repairer, supplier};
    Gatherer gatherer{core, flow, supplier};
    Checkpoint checkpoint{core};
};

// Returns the header of a component's next message, or a header of kind 0 if there is none.
template <typename Next>
wire::Header said(Next next) {
    Effect effect;
    if (!next(effect)) return {.kind = Kind{}};
    ByteString bytes(effect.header.begin(), effect.header.end());
    bytes.insert(bytes.end(), effect.payload.begin(), effect.payload.end());
    return wire::decode(bytes).header;
}

}  // namespace

Test(core, has_slots_for_a_window_of_operations) {
    Parts p(0, 3);
    const std::uint64_t slots = p.core.slots.size();
    for (std::uint64_t i = 0; i < 4; ++i) p.core.finish(p.post(1, 0));
    const struct {
        std::uint64_t operation;
        bool found;
        std::uint64_t stale, future, kept;
    } rows[] = {{3, true, 0, 0, 0},         {slots - 1, true, 0, 0, 0}, {slots + 4, false, 0, 1, 0},
                {slots + 1, true, 0, 1, 2},  // such a packet proves that every member has finished 0 and 1
                {1, false, 1, 1, 2},        {2, true, 1, 1, 2}};
    for (const auto& row : rows) {
        cr_assert_eq(p.core.claim(operation_of(row.operation)) != nullptr, row.found, "%zu", row.operation);
        cr_assert_eq(p.core.counters.stale_operation, row.stale);
        cr_assert_eq(p.core.counters.future_operation, row.future);
        cr_assert_eq(p.core.slots.first_kept(), row.kept);
    }
}

Test(core, a_failure_ends_what_is_open_and_what_has_not_begun) {
    Parts p(0, 3);
    p.post(1, kSmall);
    p.core.pending.push({});
    p.core.fail(rank_of(2), ECONNRESET);
    p.core.fail(rank_of(1), EIO);
    cr_assert(p.completed(ECONNRESET) && p.completed(ECONNRESET));
    cr_assert(p.core.over() && p.core.idle() && p.core.failure.lost == rank_of(2), "the first one counts");
    Effect effect;
    cr_assert_not(p.core.notices.next_operation(effect));
}

Test(admission, listens_from_the_leaves_up) {
    for (const bool self_first : {true, false}) {
        Parts p(1, 7);  // parent 0, children 5 and 6
        Admission admission(p.core);
        p.core.phase = Phase::forming;
        if (self_first) cr_assert_not(admission.start());
        cr_assert_not(admission.on_ready(p.header(Kind::ready, 5)) ||
                      admission.on_ready(p.header(Kind::ready, 5)) ||
                      admission.on_ready(p.header(Kind::ready, 2)));
        cr_assert_eq(p.core.counters.unexpected_kind, 1U, "2 is no child");
        if (self_first) cr_assert_not(admission.on_ready(p.header(Kind::ready, 6)));
        if (!self_first) cr_assert_not(admission.on_ready(p.header(Kind::ready, 6)) || admission.start());
        const auto next = [&](Effect& effect) { return admission.next_message(effect); };
        cr_assert(said(next).kind == Kind::ready);
        cr_assert(said(next).kind == Kind{}, "once");
        // The parent may not have started, so the message `ready` is repeated at increasing intervals.
        Nanoseconds interval{};
        for (int i = 0; i < 12; ++i) {
            const Nanoseconds before = p.core.now;
            p.core.now = admission.next_deadline();
            cr_assert(p.core.now - before >= interval && p.core.now - before <= kMaxReadyInterval);
            interval = p.core.now - before;
            admission.on_timeout();
            cr_assert(said(next).kind == Kind::ready);
            cr_assert(said(next).kind == Kind{}, "once");
        }
        cr_assert(interval == kMaxReadyInterval);
        p.core.phase = Phase::probing;
        cr_assert_eq(admission.next_deadline(), kNever, "it has");
    }
}

Test(elections, are_requested_once_when_operations_were_silent) {
    Parts p(1, 4);
    Elections elections(p.core);
    const auto next = [&](Effect& effect) { return elections.next_message(effect); };
    while (said(next).kind != Kind{}) continue;
    for (std::uint32_t i = 1; i <= kSilentEnough + 1; ++i) {
        p.core.finish(p.post(0, 0));
        elections.settle();
        cr_assert_eq(said(next).kind == Kind::election_request, i == kSilentEnough, "after %u", i);
    }
    cr_assert_eq(p.core.counters.election_requests_sent, 1U);
}

Test(flow_control, opens_the_window_with_the_slowest_report) {
    Parts p(0, 3);
    Slot& slot = p.post(0, kLarge);
    slot.base = slot.fragments;
    const std::uint32_t window = p.core.config.window;
    const struct {
        std::uint32_t reporter, fragments, limit;
    } rows[] = {{1, 10, window}, {2, 20, window + 10}, {1, 30, window + 20}, {1, 5, window + 20}};
    for (std::uint32_t i = 0; i < window; ++i) p.flow.sent();
    slot.multicasting.next = window;
    cr_assert(p.flow.is_full(slot));
    for (const auto& row : rows) {
        p.flow.on_report(p.header(Kind::report, row.reporter, row.fragments));
        cr_assert_eq(p.flow.limit(slot), row.limit);
    }
    cr_assert_not(p.flow.is_full(slot));
    cr_assert_eq(p.flow.in_flight(), window - 20);
    // Every member has the data, and the member supplied by this root is done.
    for (const std::uint32_t reporter : {1U, 2U})
        p.flow.on_report(p.header(Kind::report, reporter, slot.fragments));
    cr_assert_eq(slot.state, SlotState::active);
    p.flow.on_done(p.header(Kind::done, 1));
    cr_assert(slot.state == SlotState::finished && p.completed(0));
    cr_assert_eq(p.flow.in_flight(), 0U);
}

Test(root_repairer, sends_one_nak_in_each_round_and_gives_up_after_two) {
    GroupConfig config = config_of(2, 4);
    config.repair = Repair::sync;
    Parts p(config);
    Slot& slot = p.post(0, kSmall);
    slot.repair_mode.route = Route::root;
    const auto next = [&](Effect& effect) { return p.root_repairer.next_message(slot, effect); };
    cr_assert(p.root_repairer.uses_root(slot) && p.root_repairer.nak(slot, 2));
    cr_assert(said(next).kind == Kind::root_nak);
    cr_assert(p.root_repairer.nak(slot, 2) && said(next).kind == Kind{}, "that was said");
    p.core.now = slot.naks.at;
    cr_assert(p.root_repairer.nak(slot, 2) && said(next).kind == Kind::root_nak, "in vain");
    p.core.now = slot.naks.at;
    cr_assert_not(p.root_repairer.nak(slot, 2) || p.root_repairer.uses_root(slot), "again");
}

Test(repairer, naks_each_fragment_once) {
    Parts p(2, 4);
    Slot& slot = p.post(0, kSmall);
    const auto next = [&](Effect& effect) { return p.repairer.next_message(slot, effect); };
    cr_assert_eq(p.repairer.next_deadline(), kNever);
    slot.reception.revealed = 2;
    p.repairer.arm_gap(slot);
    cr_assert_eq(p.repairer.next_deadline(), p.core.now + p.core.deadlines.gap());
    p.repairer.on_timeout();
    cr_assert(said(next).kind == Kind{}, "it may be mere reordering");
    p.core.now = p.repairer.next_deadline();
    p.repairer.on_timeout();
    cr_assert(said(next).kind == Kind::nak);
    p.repairer.forward_nak(slot);
    cr_assert(said(next).kind == Kind{}, "messages are reliable");
}

Test(supplier, remembers_what_it_cannot_answer) {
    Parts p(1, 4);
    Slot& slot = p.post(0, kSmall);
    const auto next = [&](Effect& effect) { return p.supplier.next_message(slot, effect); };
    p.supplier.on_nak(p.header(Kind::nak, 2, 0, kSmall), ByteString{std::byte{3}});
    cr_assert(said(next).kind == Kind{});
    cr_assert(slot.naks.due, "the NAK is forwarded");
    const ByteString fragment(kFragment);
    p.receiver.on_data(p.header(Kind::data, 0, 1, kSmall), fragment);
    const wire::Header second = said(next);
    cr_assert(second.kind == Kind::data && index_of(second.fragment) == 1);
    p.receiver.on_data(p.header(Kind::data, 0, 0, kSmall), fragment);
    cr_assert(slot.state == SlotState::finished && said(next).kind == Kind::data, "it is kept for that");
    p.supplier.on_nak(p.header(Kind::nak, 2, 0, kSmall + 1), {});
    cr_assert_eq(p.core.failure.error, EMSGSIZE, "they mean different messages");
}

Test(holds, keep_the_order_of_a_root) {
    GroupConfig config = config_of(0, 4);
    config.root_sync = RootSync::delay;
    config.root_delay = Nanoseconds::from_us(50);
    Parts p(config);
    Slot &first = p.post(0, kSmall), &second = p.post(0, kSmall);
    first.operation.ready = 10;
    p.holds.begin(first);
    p.holds.begin(second);
    p.sender.advance(second);
    cr_assert_eq(p.holds.next_deadline(), kNever, "no time brings bytes");
    p.core.now = p.core.now + config.root_delay;
    p.holds.release();
    cr_assert(first.multicasting.held && second.multicasting.held);
    first.operation.ready = kSmall;
    p.sender.advance(first);
    cr_assert_not(first.multicasting.held || second.multicasting.held,
                  "which have all waited for long enough");
    cr_assert_eq(p.core.counters.roots_held, 2U);
}

Test(sender, multicasts_what_is_ready_and_allowed) {
    Parts p(0, 3);
    Slot& slot = p.post(0, kLarge);
    const auto next = [&](Effect& effect) { return p.sender.next_multicast(slot, effect); };
    const std::uint32_t window = p.core.config.window;
    const struct {
        std::uint64_t ready;
        bool held;
        std::uint32_t sent;
    } rows[] = {{kFragment - 1, false, 0},
                {3 * kFragment, true, 0},
                {3 * kFragment, false, 3},
                {kLarge, false, window - 3}};
    for (const auto& row : rows) {
        slot.multicasting.held = row.held;
        slot.operation.ready = row.ready;
        p.sender.advance(slot);
        cr_assert_eq(p.sender.waits(slot), row.sent > 0);
        std::uint32_t sent = 0;
        while (said(next).kind == Kind::fragment) ++sent;
        cr_assert_eq(sent, row.sent);
    }
    // The root multicasts a missing fragment again, but not a fragment that it has not sent yet.
    p.root_repairer.on_root_nak(p.header(Kind::root_nak, 1, window - 1, 0), ByteString{std::byte{3}});
    const wire::Header again = said(next);
    cr_assert(again.kind == Kind::fragment && index_of(again.fragment) == window - 1);
    cr_assert(said(next).kind == Kind{});
}

Test(receiver, counts_what_it_cannot_use) {
    Parts p(2, 4);
    Slot& slot = p.post(0, kSmall);
    const ByteString fragment(kFragment);
    const struct {
        std::uint32_t sender, index;
        std::uint64_t total;
        std::size_t bytes;
        std::uint64_t taken, duplicates, bad;
    } rows[] = {{1, 0, kSmall, kFragment, 0, 0, 1},     {0, 2, kSmall, kFragment, 0, 0, 2},
                {0, 0, kSmall + 1, kFragment, 0, 0, 3}, {0, 1, kSmall, 7, 0, 0, 4},
                {0, 1, kSmall, kFragment, 1, 0, 4},     {0, 1, kSmall, kFragment, 1, 1, 4},
                {0, 0, kSmall, kFragment, 2, 1, 4},     {0, 0, kSmall, kFragment, 2, 2, 4}};
    for (const auto& row : rows) {
        p.receiver.on_fragment(p.header(Kind::fragment, row.sender, row.index, row.total),
                               Bytes(fragment).first(row.bytes));
        cr_assert_eq(p.core.counters.fragments_by_multicast, row.taken);
        cr_assert_eq(p.core.counters.duplicates, row.duplicates);
        cr_assert_eq(p.core.counters.bad_fragment, row.bad);
    }
    cr_assert(slot.state == SlotState::finished && p.completed(0));
}

Test(gatherer, combines_in_the_order_of_the_tree) {
    const std::vector<std::uint32_t> orders[] = {{1, 2}, {2, 1}};
    std::vector<ByteString> results;
    for (const auto& order : orders) {
        Parts p(0, 3);
        Slot& slot = p.post(0, 64, CollectiveKind::reduce);
        slot.fragments = slot.base = 1;
        p.gatherer.begin(slot);
        cr_assert_eq(p.gatherer.missing(slot).count, 2U);
        for (const std::uint32_t child : order)
            p.gatherer.on_gather(p.header(Kind::gather, child, 0, 64 | wire::kReduceFlag),
                                 ByteString(64, std::byte(child)));
        cr_assert(slot.state == SlotState::finished && p.gatherer.missing(slot).count == 0);
        results.push_back(p.buffers[0]);
    }
    cr_assert(results[0] == results[1] && results[0] != content(64));
}

Test(checkpoint, keeps_a_watermark_until_its_map_is_known) {
    Parts p(1, 4);
    for (int i = 0; i < 16; ++i) p.core.finish(p.post(0, 0));
    p.checkpoint.settle();
    const auto next = [&](Effect& effect) { return p.checkpoint.next_message(effect); };
    cr_assert(said(next).kind == Kind::watermark_up);
    p.checkpoint.on_watermark(p.header(Kind::watermark_down, 2, 0, 0, 16), p.core.parent);
    p.checkpoint.on_watermark(p.header(Kind::watermark_down, 0, 0, 0, 32), p.core.parent);
    cr_assert_eq(p.core.counters.unexpected_kind, 2U, "not the parent; not finished here");
    p.checkpoint.on_watermark(p.header(Kind::watermark_down, 0, 1, 0, 16), p.core.parent);
    p.checkpoint.settle();
    cr_assert_eq(p.checkpoint.opened(), 0U);
    p.core.reachability.take_next({.works = false, .deaf = {}, .mute = {}}, 80);
    p.checkpoint.settle();
    cr_assert_eq(p.checkpoint.opened(), 16U);
}

Test(failure_detector, blames_the_awaited_member) {
    const struct {
        std::uint32_t self, root;
        std::uint64_t bytes;
        CollectiveKind kind;
        std::uint32_t blamed;
    } rows[] = {{2, 1, kSmall, CollectiveKind::broadcast, 1},  // nothing arrived from the root
                {0, 0, kLarge, CollectiveKind::broadcast, 1},  // the supplied member
                {0, 0, 0, CollectiveKind::barrier, 1}};        // has not entered
    for (const auto& row : rows) {
        GroupConfig config = config_of(row.self, 3);
        config.stall_timeout = Nanoseconds{4 * config.watch_delay.value};
        Parts p(config);
        FailureDetector detector(p.core, p.checkpoint, p.gatherer);
        Slot& slot = p.post(row.root, row.bytes, row.kind);
        if (row.root == row.self) slot.base = slot.fragments;
        detector.wake();
        Effect effect;
        bool watched = false;
        for (int scans = 0; !p.core.over(); ++scans) {
            cr_assert_lt(scans, 10);
            p.core.now = detector.next_deadline();
            detector.on_timeout();
            for (; detector.next_watch(effect); watched |= effect.to == rank_of(row.blamed))
                cr_assert_neq(effect.to, config.self);
        }
        cr_assert(watched, "before it is blamed");
        cr_assert_eq(p.core.failure.lost, rank_of(row.blamed));
        cr_assert_eq(p.core.failure.error, ETIMEDOUT);
        cr_assert(p.completed(ETIMEDOUT));
    }
}

Test(failure_detector, informs_all_living_members_once) {
    const struct {
        int error;
        bool informs;
        std::vector<std::uint32_t> informed;
    } rows[] = {{ECONNRESET, true, {0, 3}},
                {ETIMEDOUT, true, {0, 2, 3}},  // the lost member lives
                {ECONNRESET, false, {}}};      // the reporting member informs the others
    for (const auto& row : rows) {
        Parts p(1, 4);
        FailureDetector detector(p.core, p.checkpoint, p.gatherer);
        Effect effect;
        cr_assert_not(detector.next_message(effect));
        cr_assert_eq(p.core.failure.error, 0);
        p.core.fail(rank_of(2), row.error, row.informs);
        for (const std::uint32_t rank : row.informed) {
            cr_assert_neq(p.core.failure.next_to_inform, p.core.config.members);
            cr_assert(detector.next_message(effect) && effect.to == rank_of(rank));
        }
        cr_assert_not(detector.next_message(effect));
        cr_assert_eq(p.core.failure.next_to_inform, p.core.config.members);
        cr_assert(p.core.failure.lost == rank_of(2) && p.core.failure.error == row.error);
    }
}
