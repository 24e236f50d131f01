// How a group comes to be: the join (group/join.h) with this endpoint's sockets and messages as its port, up
// to the welcome; then the levels, and the engine's own probe and vote.
#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>

#include "group/welcome.h"
#include "ofi/group.h"
#include "ofi/live_station.h"
#include "provider/guard.h"
#include "wire/packet.h"

namespace mcastcoll::ofi {
namespace {

// How often at most a member is looked at because somebody greets in its place.
constexpr Nanoseconds kDoubtInterval = Nanoseconds::from_ms(1000);

}  // namespace

void Group::start(Nanoseconds now) {
    join_.start(now);
    follow_join(now);
}

// Members know from the application's list where each other's service addresses may be: who sends from
// elsewhere is nobody.
bool Group::comes_from(Rank rank, const RendezvousSource& source) {
    if (index_of(rank) >= size() || rank == plan_.self) return false;
    if (!Rendezvous::may_be(plan_.members[index_of(rank)], source)) return false;
    sources_.insert_or_assign(rank, source);
    return true;
}

wire::Hello Group::own_hello() const {
    return station_.own_hello(plan_.id, plan_.self, plan_.members.size());
}

void Group::greet(std::uint32_t attempt, Bytes hello) {
    station_.greet(plan_.members.front(), attempt, hello);
}

void Group::send(Rank to, std::uint32_t attempt, Bytes datagram) {
    const auto known = sources_.find(to);
    if (known != sources_.end())
        station_.reply(known->second, datagram);
    else
        station_.greet(plan_.members[index_of(to)], attempt, datagram);
}

const wire::Hello* Group::miscounted_hello(Rank rank) {
    return station_.miscounted_hello(*this, rank);
}

std::optional<Nanoseconds> Group::round_trip(std::uint64_t one, std::uint64_t other) const {
    return station_.round_trips().find(one, other);
}

void Group::keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds round_trip) {
    station_.round_trips().keep(one, other, round_trip);
}

Result<fi_addr_t> Group::peer(const wire::ByteString& private_address) {
    return station_.messenger().peer(private_address);
}

int Group::tell(std::vector<fi_addr_t> to, wire::ByteString word) {
    if (word.size() > kMessageBytes) return FI_EMSGSIZE;
    station_.messenger().tell(std::move(to), std::move(word), plan_.token);
    return 0;
}

void Group::withdraw() {
    station_.messenger().withdraw(plan_.token);
}

void Group::explain(std::string_view sentence) {
    station_.log(Level::info, "{}: {}", name(), sentence);
}

void Group::on_hello(const wire::Hello& hello, Nanoseconds now) {
    join_.on_hello(hello, now);
    follow_join(now);
}

void Group::follow_join(Nanoseconds now) {
    if (formed() || ended_) return;
    if (join_.state() == group::Join::State::complete) return welcome_everybody(now);
    if (join_.error() != 0) end_join(join_.error());
}

bool Group::formed_with_another(const wire::Hello& hello) const {
    return formed() && join_.greeted_by_another(hello);
}

void Group::doubt(Rank rank, Nanoseconds now) {
    Member& member = members_[index_of(rank)];
    if (error_ != 0 || rank == plan_.self || now < member.doubt_at) return;
    member.doubt_at = now + kDoubtInterval;
    station_.look_at(member.messenger_peer, member.watch_point, now);
}

void Group::welcome_everybody(Nanoseconds now) {
    const group::Guests& guests = join_.guests();
    const Settings& settings = station_.settings();
    const topology::Policy policy = settings.topology.policy();
    wire::Welcome welcome =
        group::make_welcome(plan_.id, guests, join_.places(), {plan_.settings, policy, settings.selection});
    const levels::Placement placement = group::placement_of(welcome);
    Carrier carrier = choose_carrier(placement);
    auto made = station_.new_identity(carrier);
    if (!made && carrier == Carrier::verbs) {
        station_.log(Level::info, "{}: over UDP, not over verbs: {}", name(), made.error().message);
        carrier = Carrier::udp;
        made = station_.new_identity(carrier);
    }
    if (!made) return end_join(made.error().code);
    const GroupIdentity& identity = made.value();
    welcome.key = identity.key;
    welcome.epoch = identity.epoch;
    group::fit_datagrams(welcome, guests, placement, carrier == Carrier::verbs);
    choose_addresses(welcome, identity.address, placement);
    if (const int error = join_.welcome(welcome); error != 0) return end_join(error);
    begin(welcome, now);
}

void Group::on_welcome(const wire::Welcome& welcome, Nanoseconds now) {
    if (!formed() && !ended_ && join_.accept(welcome)) begin(welcome, now);
}

void Group::begin(const wire::Welcome& welcome, Nanoseconds now) {
    members_.resize(welcome.peers.size());
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
        if (rank_of(rank) == plan_.self) continue;
        const wire::Peer& peer = welcome.peers[rank];
        auto address = station_.messenger().peer(peer.private_address);
        if (!address) return end_join(address.error().code);
        members_[rank].messenger_peer = address.value();
        members_[rank].watch_point = peer.watch_point;
        if (auto source = decode_address(peer.multicast_source)) members_[rank].source = source->with_port(0);
    }
    key_ = welcome.key;
    epoch_ = welcome.epoch;
    agreed_ = {.repair = static_cast<engine::Repair>(welcome.repair),
               .channels = welcome.channels,
               .root_sync = static_cast<engine::RootSync>(welcome.root_sync),
               .root_delay_us = welcome.root_delay_us};
    pending_.resize(kMostOpen);
    free_pending_.reserve(kMostOpen);
    for (std::size_t i = kMostOpen; i > 0; --i) free_pending_.push_back(static_cast<std::uint32_t>(i - 1));
    form(welcome, now);
    station_.on_keyed(*this);
    move(now);
}

void Group::on_abort(std::uint32_t error, Rank lost, Nanoseconds now) {
    const int code = static_cast<int>(error & 0xffff);
    if (!formed()) return end_join(code);
    fail_group(code, index_of(lost) < members_.size() ? lost : kNoRank, now);
    touched_ = true;
}

// The join is over without a group.
void Group::end_join(int error) {
    if (ended_ || joined_) return;
    ended_ = true;
    succeeds([&] { station_.log(Level::warn, "{}: join failed: {}", name(), fi_strerror(error)); });
    if (!formed() || leads()) succeeds([&] { refuse_join(error); });
    if (!closed_) station_.report_join(mc_.fid, error);
}

// Who has been welcomed and cannot follow tells the others.
void Group::refuse_join(int error) {
    if (leads()) station_.remember_failed(plan_.id, error);
    join_.fail(error);
    if (leads()) return;
    station_.remember_ended(plan_.id, plan_.members.front());
    std::vector<fi_addr_t> peers;
    for (const Member& member : members_)
        if (member.messenger_peer != FI_ADDR_UNSPEC) peers.push_back(member.messenger_peer);
    const wire::Answer answer{wire::JoinKind::abort, plan_.id, static_cast<std::uint32_t>(error)};
    station_.messenger().tell(std::move(peers), wire::encode(answer));
}

void Group::explain_join() {
    if (members_.size() == 1) return station_.log(Level::info, "{}: joined, nobody else is in it", name());
    const std::size_t self = index_of(plan_.self);
    if (!engine_)
        return station_.log(Level::info, "{}: joined as rank {}{}", name(), self, describe_levels());
    const engine::GroupConfig& config = engine_->config();
    const engine::SupplyGraph& graph = engine_->graph();
    const std::string lane =
        graph.hearing_count() == 0
            ? std::string("no multicast, all is point-to-point")
            : fmt::format("multicast {} reaches {} of {} {}", lane_name(), graph.hearing_count(),
                          config.members, has_levels() ? "hosts" : "members");
    station_.log(Level::info,
                 "{}: joined as rank {}{}: {}{}; fragments of {} bytes, window {}, repair {}, root "
                 "synchronisation {}, round trip {} us",
                 name(), self, describe_levels(), lane,
                 no_multicast_.empty() ? std::string() : fmt::format(" (here: {})", no_multicast_),
                 config.fragment_bytes, config.window, engine::name_of(config.repair),
                 engine::name_of(config.root_sync), engine_->round_trip().value / 1000);
    if (graph.hearing_count() > 0 && graph.hearing_count() < config.members)
        for (std::uint32_t i = 0; i < config.members; ++i)
            if (graph.deaf(rank_of(i)))
                station_.log(Level::info,
                             "{}: rank {} cannot hear the multicast, it is served point-to-point", name(),
                             placement_->segment()[i]);
}

}  // namespace mcastcoll::ofi
