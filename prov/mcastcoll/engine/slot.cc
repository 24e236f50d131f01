#include "engine/slot.h"

namespace mcastcoll::engine {

Slot::Slot(const GroupConfig& config, std::uint32_t children)
    : have(config.window),
      naks{WindowBitmap(config.window)},
      root_naks{FragmentSet(config.window), WindowBitmap(config.window)},
      clients(kMaxArity + 1, Client{FragmentSet(config.window)}),
      gathering{std::vector<Contribution>(children, Contribution{WindowBitmap(config.window)})} {}

void Slot::reset(OperationId operation_id) {
    if (gathered()) gathering.reset();
    if (!(state == SlotState::finished && complete_here())) have.clear_all();
    id = operation_id;
    state = SlotState::vacant;
    operation = {};
    early = nullptr;
    length_known = retained = lingers = done_due = false;
    bytes = 0;
    fragments = base = parity_rows = 0;
    posted_at = progress_at = {};
    repair_mode = {};
    reception = {};
    supplier = named_root = kNoRank;
    naks.reset();
    root_naks.reset();
    for (Client& client : known_clients()) client.reset();
    client_count = 0;
    multicasting = {};
    reporting.reset();
}

Slot::Client* Slot::find_client(Rank rank) {
    const auto found = std::ranges::find(known_clients(), rank, &Client::rank);
    return found == known_clients().end() ? nullptr : &*found;
}

Slot::Client* Slot::client(Rank rank) {
    if (Client* known = find_client(rank)) return known;
    if (client_count == clients.size()) return nullptr;
    Client& entry = clients[client_count++];
    entry.rank = rank;
    return &entry;
}

void Slot::expect_clients(const RankList& ranks) {
    for (std::uint32_t i = client_count; i > 0; --i) {
        if (ranks.contains(clients[i - 1].rank)) continue;
        std::swap(clients[i - 1], clients[--client_count]);
        clients[client_count].reset();
    }
    for (Rank rank : ranks) client(rank)->expected = true;
}

Slot::ChildReport* Slot::Reporting::of(Rank child) {
    for (std::uint32_t i = 0; i < count; ++i)
        if (reports[i].rank == child) return &reports[i];
    if (count == reports.size()) return nullptr;
    reports[count] = {.rank = child};
    return &reports[count++];
}

}  // namespace mcastcoll::engine
