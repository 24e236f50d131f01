#include "engine/slot.h"

#include <algorithm>
#include <utility>

namespace mcastcoll::engine {

Slot::Slot(const GroupConfig& config, MutableBytes stash_bytes)
    : stash(stash_bytes), have(config.window), asked(config.window) {
    clients.assign(kMaxArity + 1, Client(config.window));
}

void Client::forget() {
    rank = kNoRank;
    expected = done = waiting = false;
    wanted.clear_all();
    base = wanted_from = wanted_to = 0;
}

void Slot::reset(OperationId operation_id) {
    id = operation_id;
    state = SlotState::vacant;
    operation = {};
    early = nullptr;
    length_known = stashed = false;
    bytes = 0;
    fragments = 0;
    base = asked_to = revealed = 0;
    have.clear_all();
    asked.clear_all();
    heard = chained = heard_ever = false;
    posted_at = {};
    ask_at = asked_at = kNever;
    supplier = kNoRank;
    for (std::uint32_t i = 0; i < client_count; ++i) {
        clients[i].forget();
    }
    client_count = 0;
    next_multicast = acknowledged = 0;
    everybody_posted = false;
    report_to = kNoRank;
    report_children = {};
    report_count = 0;
    reported = kNothingReported;
    gathered = 0;
    ask_to = 0;
    early_root = kNoRank;
    report_due = gather_due = gather_sent = done_due = ask_due = false;
}

Client* Slot::client(Rank rank) {
    for (std::uint32_t i = 0; i < client_count; ++i)
        if (clients[i].rank == rank) return &clients[i];
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
