#include "engine/slot.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::engine {

Slot::Slot(const GroupConfig& config, MutableBytes buffer, std::uint32_t children)
    : retransmit_buffer(buffer), have(config.window), asked(config.window), nacks(config.window) {
    clients.assign(kMaxArity + 1, Client(config.window));
    contributions.assign(children, Contribution(config.window));
}

void Contribution::reset() {
    if (granted > 0) have.clear_all();
    base = granted = 0;
    early = nullptr;
    credit_due = false;
}

void Client::forget() {
    rank = kNoRank;
    expected = done = waiting = asked = served = false;
    wanted.clear_all();
    base = wanted_from = wanted_to = 0;
}

bool Nacks::add(std::uint32_t index) {
    if (said.test(index)) return true;
    if (!pending()) from = to = index;
    const std::uint32_t low = std::min(from, index), high = std::max(to, index + 1);
    if (high - low > due.capacity()) return false;
    due.set(index);
    from = low;
    to = high;
    return true;
}

void Nacks::reset() {
    due.clear_all();
    said.clear_all();
    from = to = rounds = base = target = 0;
    said_until = {};
    asked_at = answer_by = kNever;
}

void Slot::reset(OperationId operation_id) {
    id = operation_id;
    state = SlotState::vacant;
    operation = {};
    early = nullptr;
    length_known = retained = false;
    bytes = 0;
    fragments = 0;
    base = asked_to = revealed = 0;
    polled = kNothingPolled;
    have.clear_all();
    asked.clear_all();
    heard = chained = heard_ever = false;
    partial = whole = doubted = false;
    posted_at = progress_at = {};
    ask_at = asked_at = first_asked_at = kNever;
    nack_root = kNoRank;
    longest_gap = {};
    heard_count = 0;
    plan = {};
    nacks.reset();
    supplier = kNoRank;
    for (std::uint32_t i = 0; i < client_count; ++i) {
        clients[i].forget();
    }
    client_count = 0;
    next_multicast = next_target = acknowledged = 0;
    held = entered = entered_due = troubled = false;
    report_to = kNoRank;
    report_children = {};
    report_count = 0;
    reported = kNothingReported;
    gathered = 0;
    awaits_release = own_combined = announce_due = announced = false;
    told = kNothingTold;
    combined = pieces = piece_bytes = contributed = credit = 0;
    for (Contribution& contribution : contributions) contribution.reset();
    ask_to = 0;
    early_root = kNoRank;
    report_due = gather_due = gather_sent = done_due = ask_due = false;
}

Client* Slot::find_client(Rank rank) {
    for (std::uint32_t i = 0; i < client_count; ++i)
        if (clients[i].rank == rank) return &clients[i];
    return nullptr;
}

Client* Slot::client(Rank rank) {
    if (Client* known = find_client(rank)) return known;
    if (client_count == clients.size()) return nullptr;
    Client& entry = clients[client_count++];
    entry.rank = rank;
    return &entry;
}

void Slot::expect_clients(const RankList& ranks) {
    for (std::uint32_t i = 0; i < client_count;) {
        if (std::find(ranks.begin(), ranks.end(), clients[i].rank) != ranks.end()) {
            ++i;
            continue;
        }
        std::swap(clients[i], clients[--client_count]);
        clients[client_count].forget();
    }
    for (Rank rank : ranks) client(rank)->expected = true;
}

ChildReport* Slot::report(Rank rank) {
    for (std::uint32_t i = 0; i < report_count; ++i)
        if (reports[i].rank == rank) return &reports[i];
    if (report_count == reports.size()) return nullptr;
    reports[report_count] = {.rank = rank};
    return &reports[report_count++];
}

}  // namespace mcastcoll::engine
