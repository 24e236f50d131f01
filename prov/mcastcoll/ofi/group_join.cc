// How a group comes to be: greetings to rank 0 by datagram, again and again until it answers; its welcome to
// everybody over the private endpoints; then the engine's own probe and vote.
#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>

#include "ofi/group.h"
#include "ofi/guard.h"
#include "ofi/live_station.h"
#include "ofi/placing.h"
#include "wire/packet.h"

namespace mcastcoll::ofi {
namespace {

// How long greetings for the same list but another join are not believed to mean this one.
constexpr Nanoseconds kMiscountGrace = Nanoseconds::from_ms(300);
// How often at most a member is looked at because somebody greets in its place.
constexpr Nanoseconds kDoubtInterval = Nanoseconds::from_ms(1000);
constexpr std::uint32_t kLeastFragment = 512;
constexpr std::uint32_t kMostFragment = 8192;
constexpr std::uint32_t kLeastWindow = 16;
constexpr std::uint32_t kMostWindow = 512;

std::string describe(const engine::RepairPlan& plan) {
    if (plan.chained) return "the ring from the start";
    const char* first = plan.route == engine::Route::root ? "asking the root" : "asking the ring";
    return fmt::format("{}{}", first, plan.hands_on ? " and handing on" : "");
}

}  // namespace

void Group::start(Nanoseconds now) {
    if (!leads()) return greet(now);
    greet_at_ = now + kMiscountGrace;
    hellos_.resize(plan_.members.size());
    on_hello(station_.own_hello(plan_.id, plan_.self, plan_.members.size()), now);
}

// Members know from the application's list where each other's service addresses may be: who sends from
// elsewhere is nobody.
bool Group::comes_from(Rank rank, const RendezvousSource& source) {
    if (index_of(rank) >= size() || rank == plan_.self) return false;
    if (!Rendezvous::may_be(plan_.members[index_of(rank)], source)) return false;
    sources_.insert_or_assign(rank, source);
    return true;
}

void Group::send_datagram(Rank to, std::uint32_t attempt, Bytes message) {
    const auto known = sources_.find(to);
    if (known != sources_.end())
        station_.reply(known->second, message);
    else
        station_.greet(plan_.members[index_of(to)], attempt, message);
}

void Group::greet(Nanoseconds now) {
    if (leads()) return adopt_miscounted(now);
    // One that is not sent for want of memory is as good as lost: the next one comes.
    succeeds([&] {
        const wire::Hello hello = station_.own_hello(plan_.id, plan_.self, plan_.members.size());
        station_.greet(plan_.members.front(), attempt_, wire::encode(hello));
    });
    // Quick at first, then patient: a leader that has not called join yet keeps greetings, one that is not
    // there cannot.
    const std::int64_t wait_ms =
        acknowledged_ ? 500 : std::min<std::int64_t>(std::int64_t{1} << std::min(attempt_, 5U), 20);
    greet_at_ = now + Nanoseconds::from_ms(wait_ms);
    ++attempt_;
}

void Group::on_hello(const wire::Hello& hello, Nanoseconds now) {
    if (!leads() || hello.members != plan_.members.size() || formed() || ended_) return;
    std::optional<wire::Hello>& known = hellos_[index_of(hello.rank)];
    if (known) return;
    known = hello;
    if (++hello_count_ == plan_.members.size()) welcome_all(now);
}

bool Group::formed_with_another(const wire::Hello& hello) const {
    if (!formed() || index_of(hello.rank) >= hellos_.size()) return false;
    const std::optional<wire::Hello>& known = hellos_[index_of(hello.rank)];
    return known && known->peer != hello.peer;
}

void Group::doubt(Rank rank, Nanoseconds now) {
    Member& member = members_[index_of(rank)];
    if (error_ != 0 || rank == plan_.self || now < member.doubt_at) return;
    member.doubt_at = now + kDoubtInterval;
    station_.look_at(member.messenger_peer, member.watch_point, now);
}

// A process that was started again counts its joins from zero. So when everybody greets, but not for the same
// join, and goes on doing so, it is the same join all the same.
void Group::adopt_miscounted(Nanoseconds now) {
    greet_at_ = now + kMiscountGrace;
    if (surveying()) return;
    for (std::size_t rank = 0; rank < hellos_.size(); ++rank)
        if (!hellos_[rank] && station_.miscounted_hello(*this, rank_of(rank)) == nullptr) return;
    for (std::size_t rank = 0; rank < hellos_.size(); ++rank)
        if (!hellos_[rank]) hellos_[rank] = *station_.miscounted_hello(*this, rank_of(rank));
    station_.log(Level::info, "{}: a member was started again and counts its joins anew", name());
    hello_count_ = hellos_.size();
    welcome_all(now);
}

void Group::send_welcome(Nanoseconds now) {
    wire::Welcome welcome;
    welcome.id = plan_.id;
    welcome.repair = static_cast<std::uint8_t>(plan_.settings.repair);
    welcome.channels = plan_.settings.channels;
    welcome.root_sync = static_cast<std::uint8_t>(plan_.settings.root_sync);
    welcome.root_delay_us = plan_.settings.root_delay_us;
    const std::vector<wire::ByteString> places = settle_sites();
    for (std::size_t rank = 0; rank < hellos_.size(); ++rank) {
        welcome.peers.push_back(hellos_[rank]->peer);
        welcome.peers.back().place = places[rank];
    }
    welcome.policy = encode_policy(station_.settings().topology.policy());
    const levels::Placement placement(0, places_in(make_map(places, welcome.policy)));
    welcome.selection =
        levels::Selection(station_.settings().selection, placement.members(), placement.hosts()).encode();
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
    std::uint32_t datagram = kMostFragment + wire::kHeaderBytes, window = kMostWindow;
    const std::uint8_t family = hellos_.front()->address_family;
    for (std::uint32_t rank = 0; rank < hellos_.size(); ++rank) {
        const auto& hello = hellos_[rank];
        if (placement.host_leader(rank) != rank) continue;
        if (carrier == Carrier::verbs) {
            datagram = std::min(datagram, hello->verbs.datagram_bytes);
            window = std::min(window, hello->verbs.window);
            welcome.peers[rank].multicast_source = hello->verbs.source;
            continue;
        }
        if (hello->datagram_bytes == 0 || hello->address_family != family) continue;  // it will be found deaf
        datagram = std::min(datagram, hello->datagram_bytes);
        window = std::min(window, hello->window);
    }
    choose_addresses(welcome, identity.address, placement);
    welcome.fragment_bytes =
        std::max(datagram - static_cast<std::uint32_t>(wire::kHeaderBytes), kLeastFragment);
    welcome.window = std::max(window, kLeastWindow);

    if (const int error = tell_greeters([&](const wire::JoinId& id) {
            welcome.id = id;
            return wire::encode(welcome);
        });
        error != 0)
        return end_join(error);
    begin(welcome, now);
}

// One word to all who have greeted, each by the id that it knows the join by. 0 or FI_E*: nobody is told.
int Group::tell_greeters(FunctionRef<wire::ByteString(const wire::JoinId&)> word) {
    std::map<wire::JoinId, std::vector<fi_addr_t>> greeters;
    for (std::size_t rank = 1; rank < hellos_.size(); ++rank) {
        if (!hellos_[rank]) continue;
        auto peer = station_.messenger().peer(hellos_[rank]->peer.private_address);
        if (!peer) return peer.error().code;
        greeters[hellos_[rank]->id].push_back(peer.value());
    }
    for (auto& [id, peers] : greeters) {
        wire::ByteString bytes = word(id);
        if (bytes.size() > kMessageBytes) return FI_EMSGSIZE;
        station_.messenger().tell(std::move(peers), std::move(bytes), plan_.token);
    }
    return 0;
}

void Group::on_welcome(const wire::Welcome& welcome, Nanoseconds now) {
    if (formed() || ended_ || leads() || welcome.peers.size() != plan_.members.size()) return;
    if (welcome.fragment_bytes < kLeastFragment || welcome.fragment_bytes > kMostFragment) return;
    if (welcome.window < kLeastWindow || welcome.window > kMostWindow) return;
    if (welcome.repair >= engine::kRepairCount || welcome.root_sync >= engine::kRootSyncCount) return;
    if (welcome.channels < 1 || welcome.channels > kMostChannels) return;
    if (welcome.root_delay_us > kMostRootDelayUs) return;
    if (!levels::Selection::decode(welcome.selection)) return;
    begin(welcome, now);
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

// The leader tells those who greeted it, so that they need not wait for their deadline, instead of the
// welcome that some may still be waiting for; who has been welcomed and cannot follow tells the others.
void Group::refuse_join(int error) {
    wire::Answer answer{wire::JoinKind::abort, plan_.id, static_cast<std::uint32_t>(error)};
    if (leads()) {
        station_.remember_failed(plan_.id, error);
        station_.messenger().withdraw(plan_.token);
        tell_greeters([&](const wire::JoinId& id) {
            answer.id = id;
            return wire::encode(answer);
        });
        return;
    }
    station_.remember_ended(plan_.id, plan_.members.front());
    std::vector<fi_addr_t> peers;
    for (const Member& member : members_)
        if (member.messenger_peer != FI_ADDR_UNSPEC) peers.push_back(member.messenger_peer);
    station_.messenger().tell(std::move(peers), wire::encode(answer));
}

// What a new verdict about the multicast means, once.
void Group::explain_lane() {
    if (engine_->verdict_version() == explained_verdict_) return;
    explained_verdict_ = engine_->verdict_version();
    const engine::SupplyGraph& graph = engine_->graph();
    const engine::Verdict& verdict = graph.verdict();
    std::string who;
    for (const auto& [what, ranks] :
         {std::pair{"hear nothing", &verdict.deaf}, {"are not heard", &verdict.mute}}) {
        if (ranks->empty()) continue;
        who += fmt::format("; {} {}: rank {}", ranks->size(), what,
                           placement_->segment()[index_of(ranks->front())]);
        if (ranks->size() > 1) who += ", ...";
    }
    station_.log(Level::info, "{}: verdict {} about the multicast: {}{}", name(), explained_verdict_,
                 verdict.lane ? fmt::format("it reaches {} of {} members", graph.hearing_count(),
                                            engine_->config().members)
                              : std::string("it reaches nobody, all is point-to-point"),
                 who);
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

// The automatic choices and what made them.
void Group::explain_changes() {
    if (engine_->counters().policy_changes != changes_told_) {
        const engine::PolicyState policy = engine_->policy();
        changes_told_ = engine_->counters().policy_changes;
        station_.log(
            Level::info,
            "{}: repair is now {} for small, {} for large messages: of 1000, {} small ones were asked "
            "for by the ring successor and {} large fragments were not heard; a repair takes {} us "
            "along the ring, {} us by the root",
            name(), describe(policy.small), describe(policy.large), policy.successor_asks,
            policy.large_missed, policy.ring_repair.value / 1000, policy.root_repair.value / 1000);
    }
    if (engine_->config().root_sync != engine::RootSync::adaptive) return;
    const engine::RootSyncState sync = engine_->root_sync();
    if (sync.present == root_sync_told_) return;
    root_sync_told_ = sync.present;
    station_.log(Level::info,
                 "{}: root synchronisation is now {}: of 1000 own broadcasts {} were asked for; others enter "
                 "{} us later",
                 name(), engine::name_of(sync.present), sync.troubled, sync.lateness.value / 1000);
}

}  // namespace mcastcoll::ofi
