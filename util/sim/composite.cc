#include "composite.h"

#include <fmt/format.h>

#include <algorithm>

namespace mcastcoll::sim {
namespace {

// What is not an engine's carries a header as long as an engine's.
constexpr wire::HeaderBytes kHeader{};

}  // namespace

Composite::Composite(Options options, std::vector<Step> script)
    : options_(std::move(options)),
      script_(std::move(script)),
      members_(options_.ranks),
      leader_of_(options_.ranks),
      times_(script_.size()) {
    make_leaders();
    std::vector<std::uint32_t> host_of(options_.ranks), site_of(options_.ranks);
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
        host_of[rank] = rank;
        site_of[rank] = members_[rank].site;
    }
    network_ = std::make_unique<Network>(options_.model, options_.faults, options_.ranks, std::move(host_of),
                                         std::move(site_of), options_.seed, *this);
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank)
        network_->listen(rank, leads(rank) ? 0 : Network::kNoRange);
}

void Composite::make_leaders() {
    const Layout& layout = options_.model.layout;
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
        Member& member = members_[rank];
        member.site = layout.site(rank);
        leader_of_[rank] =
            rank > 0 && layout.machine(rank) == layout.machine(rank - 1) ? leader_of_[rank - 1] : rank;
        members_[leader_of_[rank]].last_of_machine = rank;
        if (!leads(rank)) continue;
        if (leaders_.size() <= member.site) leaders_.resize(member.site + 1);
        member.rank_in_site = static_cast<std::uint32_t>(leaders_[member.site].size());
        leaders_[member.site].push_back(rank);
    }
    for (std::uint32_t site = 0; site < leaders_.size(); ++site)
        for (const std::uint32_t rank : leaders_[site]) {
            engine::GroupConfig config = options_.config;
            config.members = static_cast<std::uint32_t>(leaders_[site].size());
            config.self = rank_of(members_[rank].rank_in_site);
            config.key = GroupKey{0x7369746573000000ULL + site};
            members_[rank].engine = std::make_unique<engine::Engine>(config);
            ++to_join_;
        }
}

void Composite::trouble(std::string what) {
    if (trouble_.empty()) trouble_ = fmt::format("step {}: {}", step_, what);
}

std::uint32_t Composite::gate_of(std::uint32_t site) const {
    return members_[root()].site == site ? leader_of_[root()] : leaders_[site][0];
}

void Composite::begin_step() {
    if (step_over) step_over(step_);
    if (step_ == script_.size()) return;
    content_ = content_of(0, step_, bytes());
    times_[step_].resize(options_.ranks);
    unfinished_ = options_.ranks;
    choose_ways();
    began_at_ = network_->now() + options_.settle;
    network_->wake_run(0, options_.ranks, began_at_, kEnter);
}

void Composite::choose_ways() {
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
        Member& member = members_[rank];
        member.buffer.assign(bytes(), std::byte{0xee});
        member.have = member.published = 0;
        member.entered = member.through = false;
        member.engine_done = !leads(rank);
        member.outward.clear();
    }
    Member& root_member = members_[root()];
    root_member.buffer = content_;
    Member& gate = members_[leader_of_[root()]];
    if (!leads(root())) root_member.outward.push_back({.to = leader_of_[root()], .sent = 0, .next = {}});
    for (std::uint32_t site = 0; site < leaders_.size(); ++site)
        if (site != root_member.site) gate.outward.push_back({.to = gate_of(site), .sent = 0, .next = {}});
}

void Composite::enter(std::uint32_t rank) {
    Member& member = members_[rank];
    member.entered = true;
    if (rank == root()) member.have = bytes();
    if (leads(rank)) {
        const std::uint32_t gate = gate_of(member.site);
        Collective operation;
        operation.root = rank_of(members_[gate].rank_in_site);
        operation.buffer = member.buffer.data();
        operation.bytes = bytes();
        if (rank == gate) operation.ready = member.have;
        if (!member.engine->submit(operation, network_->now()).ok())
            return trouble(fmt::format("rank {}'s engine refused it", rank));
    }
    pump(rank);
}

// From memory, or from another site: what comes next, since neither way reorders.
void Composite::take_piece(std::uint32_t rank, Bytes piece) {
    Member& member = members_[rank];
    if (member.have + piece.size() > member.buffer.size())
        return trouble(fmt::format("rank {} got more than there is", rank));
    std::copy(piece.begin(), piece.end(), member.buffer.begin() + static_cast<std::ptrdiff_t>(member.have));
    got(rank, member.have + piece.size());
    pump(rank);
}

void Composite::got(std::uint32_t rank, std::uint64_t have) {
    Member& member = members_[rank];
    member.have = have;
    if (leads(rank) && rank == gate_of(member.site) && rank != root())
        member.engine->advance(operation_of(step_), have, network_->now());
    if (have < bytes()) return;
    if (member.buffer != content_) trouble(fmt::format("rank {} has wrong bytes", rank));
}

void Composite::on_packet(std::uint32_t rank, Bytes datagram) {
    members_[rank].engine->on_packet(datagram, network_->now());
    pump(rank);
}

void Composite::on_message(std::uint32_t rank, std::uint32_t from, Bytes message) {
    const bool engines = leads(rank) && leads(from) && members_[rank].site == members_[from].site;
    if (!engines) return take_piece(rank, message.subspan(kHeader.size()));
    members_[rank].engine->on_message(message, network_->now());
    pump(rank);
}

void Composite::on_wake(std::uint32_t rank, std::uint32_t tag) {
    switch (static_cast<Tag>(tag)) {
        case kStart:
            members_[rank].engine->start(network_->now());
            return pump(rank);
        case kTimer:
            return on_timer(rank);
        case kPump:
            if (members_[rank].pump_at <= network_->now()) members_[rank].pump_at = kNever;
            return pump(rank);
        case kEnter:
            return enter(rank);
    }
}

void Composite::wake_pump(std::uint32_t rank, Nanoseconds at) {
    Member& member = members_[rank];
    if (member.pump_at <= at) return;
    member.pump_at = at;
    network_->wake(rank, at, kPump);
}

// One piece, if there is one and it may go now.
bool Composite::send_outward(std::uint32_t rank, Outward& outward) {
    Member& member = members_[rank];
    if (!member.entered || outward.sent == member.have) return false;
    if (outward.next > network_->now()) {
        wake_pump(rank, outward.next);
        return false;
    }
    const std::uint64_t count = std::min<std::uint64_t>(options_.piece_bytes, member.have - outward.sent);
    network_->send_message(rank, outward.to, kHeader, Bytes(member.buffer).subspan(outward.sent, count));
    outward.sent += count;
    if (members_[outward.to].site != member.site)
        outward.next = network_->now() + network_->wan().wire_time(count + kHeader.size());
    return true;
}

// A machine reads a whole piece, or the rest.
void Composite::publish(std::uint32_t rank) {
    Member& member = members_[rank];
    if (member.last_of_machine == rank || !member.entered) return;
    while (member.published < member.have &&
           (member.have == bytes() || member.have - member.published >= options_.piece_bytes)) {
        const std::uint64_t count =
            std::min<std::uint64_t>(options_.piece_bytes, member.have - member.published);
        const Bytes piece = Bytes(member.buffer).subspan(member.published, count);
        // Everybody on the machine but the root, which may be in the middle.
        const std::uint32_t except = root() > rank && root() <= member.last_of_machine ? root() : kNobody;
        const std::uint32_t first_end = except == kNobody ? member.last_of_machine + 1 : except;
        if (first_end > rank + 1) network_->publish(rank, rank + 1, first_end - rank - 1, kHeader, piece);
        if (except != kNobody && except < member.last_of_machine)
            network_->publish(rank, except + 1, member.last_of_machine - except, kHeader, piece);
        member.published += count;
    }
}

// Sends whatever may be sent, other sites' pieces and the engine's packets in turn; then memory, which takes
// no time of the adapter.
void Composite::pump(std::uint32_t rank) {
    Member& member = members_[rank];
    engine::Effect effect;
    for (bool more = true; more;) {
        more = false;
        for (Outward& outward : member.outward)
            if (network_->may_send(rank)) more = send_outward(rank, outward) || more;
        if (member.engine == nullptr) continue;
        const bool may = network_->may_send(rank);
        if (member.engine->poll_effects({.multicast = may, .message = may}, effect)) {
            take_effect(rank, effect);
            more = true;
        }
    }
    if (leads(rank) && member.entered && rank != gate_of(member.site) && member.have < bytes())
        if (const std::uint64_t have = member.engine->arrived(operation_of(step_)); have > member.have)
            got(rank, have);
    if (leads(rank)) publish(rank);
    if (!network_->may_send(rank)) wake_pump(rank, network_->free_at(rank));
    if (member.engine != nullptr) arm_timer(rank);
    look_whether_through(rank);
}

void Composite::look_whether_through(std::uint32_t rank) {
    Member& member = members_[rank];
    if (!member.entered || member.through || !member.engine_done || member.have < bytes()) return;
    for (const Outward& outward : member.outward)
        if (outward.sent < bytes()) return;
    member.through = true;
    times_[step_][rank] = std::max(network_->busy_until(rank), network_->now()) - began_at_;
    if (--unfinished_ > 0) return;
    ++step_;
    begin_step();
}

void Composite::take_effect(std::uint32_t rank, const engine::Effect& effect) {
    Member& member = members_[rank];
    switch (effect.kind) {
        case engine::Effect::Kind::multicast:
            return network_->multicast(rank, effect.range, effect.header, effect.payload);
        case engine::Effect::Kind::message:
            return network_->send_message(rank, leaders_[member.site][index_of(effect.to)], effect.header,
                                          effect.payload);
        case engine::Effect::Kind::complete:
            if (effect.status != 0) return trouble(fmt::format("rank {} ended with {}", rank, effect.status));
            member.engine_done = true;
            if (member.have < bytes()) got(rank, bytes());
            return;
        case engine::Effect::Kind::joined:
            if (--to_join_ == 0) begin_step();
            return;
        case engine::Effect::Kind::failed:
            return trouble(fmt::format("rank {}'s group failed with {}", rank, effect.status));
        case engine::Effect::Kind::gathered:  // nothing is held here
        case engine::Effect::Kind::watch:
        case engine::Effect::Kind::left:
            return;
    }
}

void Composite::arm_timer(std::uint32_t rank) {
    Member& member = members_[rank];
    const Nanoseconds deadline = member.engine->next_deadline();
    if (deadline >= member.timer) return;
    member.timer = deadline;
    network_->wake(rank, deadline, kTimer);
}

void Composite::on_timer(std::uint32_t rank) {
    Member& member = members_[rank];
    if (member.timer > network_->now()) return;  // an earlier one has done it
    if (const Nanoseconds busy = network_->busy_until(rank); busy > network_->now()) {
        member.timer = busy;
        return network_->wake(rank, busy, kTimer);
    }
    member.timer = kNever;
    if (member.engine->next_deadline() > network_->now()) return arm_timer(rank);
    member.engine->on_timeout(network_->now());
    pump(rank);
}

std::string Composite::run() {
    for (const Step& step : script_)
        if (step.kind != CollectiveKind::broadcast || step.bytes == 0 ||
            index_of(step.root) >= options_.ranks)
            return "only broadcasts of a byte or more, by a rank that there is";
    for (const auto& site : leaders_)
        for (const std::uint32_t rank : site) network_->wake(rank, network_->now(), kStart);
    while (trouble_.empty() && step_ < script_.size() && network_->step()) {
    }
    if (trouble_.empty() && step_ < script_.size()) return fmt::format("step {} never ended", step_);
    return trouble_;
}

}  // namespace mcastcoll::sim
