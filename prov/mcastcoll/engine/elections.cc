#include "engine/elections.h"

namespace mcastcoll::engine {

Elections::Elections(Core& core)
    : core_(core),
      received_(Speakers::max(core.config.members)),
      ballots_(core.config.members, tree_size(core.config.self, core.config.tree_arity, core.config.members),
               core.config.message_bytes - wire::kHeaderBytes),
      uninformed_(core.children),
      elections_(core.config.min_election_interval, core.config.max_election_interval),
      beacons_(core.config.min_beacon_interval, core.config.max_beacon_interval) {}

void Elections::listen(std::uint64_t number) {
    if (received_in_ != number) std::fill(received_.begin(), received_.end(), false);
    received_in_ = number;
}

// Votes once all speakers were received and all own probes are sent: waiting longer gives no new information.
void Elections::vote_when_all_received() {
    if (stage_ != Stage::probing) return;
    if (speaks_ && probes_sent_ < core_.config.probes) return;
    for (std::uint32_t i = 0; i < ballots_.speakers().count(); ++i)
        if (!received_[i]) return;
    vote();
}

void Elections::vote() {
    stage_ = Stage::voting;
    if (core_.phase == Phase::probing) core_.phase = Phase::voting;
    probe_at_ = vote_at_ = kNever;
    ballots_.cast(core_.self(), received_, core_.config.multicast);
    check_votes();
}

// When the whole subtree has voted, sends the votes to the parent; on rank 0, computes the map.
void Elections::check_votes() {
    if (stage_ != Stage::voting || missing_ != 0) return;
    stage_ = Stage::closed;
    vote_due_ = core_.parent != kNoRank;
    if (!vote_due_) decide(ballots_.judge(core_.graph().map()));
}

void Elections::begin_first() {
    if (core_.config.multicast)
        begin(0, kNoRank);
    else
        take_first({});  // without rank 0's multicast the group uses none
}

void Elections::on_timeout() {
    if (probe_at_ <= core_.now) {
        ++probes_due_;
        const bool more = probes_sent_ + probes_due_ < core_.config.probes;
        probe_at_ = more ? core_.now + core_.config.probe_interval : kNever;
    }
    if (vote_at_ <= core_.now) vote();
    if (elect_at_ <= core_.now) begin(number_ + 1, suspected_);
}

void Elections::on_go(const wire::Header& header) {
    const std::uint64_t number = number_of(header.operation);
    const bool first = number == 0 && core_.phase == Phase::forming;
    const bool next = number == number_ + 1 && core_.phase == Phase::active && stage_ == Stage::closed;
    if (header.sender != core_.parent || !(first || next)) return drop(core_.counters.unexpected_kind);
    begin(number, rank_of(index_of(header.fragment)));
}

void Elections::begin(std::uint64_t number, Rank suspected) {
    if (number == 0)
        core_.phase = Phase::probing;
    else
        ++core_.counters.elections;
    elect_at_ = kNever;
    if (number > 0) elections_.use(core_.now);
    drop_requests(kSilentEnough);  // silence during an election is no reason for the next
    number_ = number;
    listen(number);
    stage_ = Stage::probing;
    ballots_.begin(Speakers(core_.config.members, number, suspected));
    const std::uint32_t place = ballots_.speakers().place(core_.self());
    speaks_ = place != kNoSpeaker;
    if (speaks_) received_[place] = true;
    missing_ = core_.children.bits();
    uninformed_.begin();
    probe_target_ = probes_due_ = probes_sent_ = 0;
    if (!core_.config.multicast) return vote();
    vote_at_ = core_.now + core_.config.probe_settle;
    if (!speaks_) return vote_when_all_received();
    probes_due_ = 1;
    if (core_.config.probes > 1) probe_at_ = core_.now + core_.config.probe_interval;
}

void Elections::on_probe(const wire::Header& header) {
    ++core_.counters.probes_received;
    const std::uint64_t number = number_of(header.operation);
    if (core_.phase == Phase::active) {
        core_.suspicion.received(header.sender);
        if (index_of(header.fragment) == 0) {  // a beacon
            return suspect_if_unexpected(core_.graph(), header.sender);
        }
    }
    if (core_.phase == Phase::active && stage_ == Stage::closed && number == number_ + 1) listen(number);
    if (number != received_in_) return;
    // Before the `go` names the suspected member, a probe from outside the regular speakers must be from that
    // member.
    const std::uint32_t place =
        number == number_ ? ballots_.speakers().place(header.sender)
                          : Speakers(core_.config.members, number, header.sender).place(header.sender);
    if (place == kNoSpeaker) return;
    received_[place] = true;
    vote_when_all_received();
}

void Elections::on_vote(const wire::Header& header, Bytes payload) {
    const std::uint32_t child = core_.child_index(header.sender);
    if (child == kMaxArity || stage_ == Stage::closed || number_of(header.operation) != number_ ||
        (missing_ >> child & 1) == 0 || !ballots_.merge(payload, header.total != 0))
        return drop(core_.counters.unexpected_kind);
    missing_ &= ~(1U << child);
    check_votes();
}

// Called on rank 0.
void Elections::decide(ReachabilityMap map) {
    const std::size_t max = (core_.config.message_bytes - wire::kHeaderBytes) / sizeof(Rank);
    if (map.deaf.size() + map.mute.size() > max) map = {};
    if (core_.phase != Phase::active) return take_first(std::move(map));
    if (!(map == core_.graph().map())) return take_next(std::move(map), core_.slots.end());
    if (requested_) elect_again();
}

void Elections::on_map(const wire::Header& header, Bytes payload) {
    ReachabilityMap map{.works = (header.total & 1) != 0, .deaf = {}, .mute = {}};
    const bool first = core_.phase != Phase::active;
    // Rank 0 distributes a map only when all members have finished the operations of the map before the last.
    if (core_.reachability.pending() && core_.slots.first_open() > core_.reachability.first_operation())
        core_.release_below(core_.reachability.first_operation() + 1);
    const bool next =
        !first && !core_.reachability.pending() && number_of(header.operation) >= core_.slots.next();
    const std::uint64_t version = first ? 0 : std::uint64_t{core_.reachability.version()} + 1;
    if (header.sender != core_.parent || header.total >> 1 != version || !(first || next) ||
        !decode(payload, index_of(header.fragment), core_.config.members, map))
        return drop(core_.counters.unexpected_kind);
    if (first) return take_first(std::move(map));
    take_next(std::move(map), number_of(header.operation));
}

void Elections::take_first(ReachabilityMap map) {
    core_.reachability.take_first(std::move(map));
    core_.phase = Phase::active;
    stage_ = Stage::closed;  // the vote is obsolete; a due probe still goes out for the peers
    probe_at_ = vote_at_ = kNever;
    drop_requests(0);
    core_.notices.joined = true;
    // Pings start only now: members that are busy with probes answer late, which would measure long
    // deadlines.
    core_.round_trip.want_ping();
    core_.unsettled = true;
}

void Elections::take_next(ReachabilityMap map, std::uint64_t from) {
    const bool received = !core_.graph().deaf(core_.self()), spoke = core_.graph().multicasts(core_.self());
    core_.reachability.take_next(std::move(map), from);
    drop_requests(0);
    const bool receives = !core_.graph().deaf(core_.self()), speaks = core_.graph().multicasts(core_.self());
    ++core_.counters.reachability_maps;
    core_.counters.multicast_demotions += (received && !receives) || (spoke && !speaks);
    core_.counters.multicast_promotions += (!received && receives) || (!spoke && speaks);
    core_.unsettled = true;
}

// Any fragment shows that the multicast works. A fragment that the map rules out shows that the map is too
// pessimistic.
void Elections::on_fragment(const wire::Header& header) {
    const std::uint64_t id = number_of(header.operation);
    const bool posted = id >= core_.slots.first_open() && id < core_.slots.next();
    core_.suspicion.received(posted && header.kind == wire::Kind::relay ? core_.slots.at(id).operation.root
                                                                        : header.sender);
    if (core_.phase != Phase::active || !core_.slots.has(id)) return;
    suspect_if_unexpected(core_.reachability.of(id), header.sender);
}

void Elections::want_beacon() {
    if (!core_.config.multicast || core_.config.members == 1 || core_.reachability.pending() ||
        core_.now < beacons_.allowed_at())
        return;
    beacons_.use(core_.now);
    beacon_due_ = true;
}

// Forwards one request per election and subtree. During an election rank 0 waits for the end. Requests
// against a map that is about to be replaced are dropped; a member with a remaining reason sends a new
// request.
void Elections::request(Rank suspected) {
    if (core_.reachability.pending()) return;
    // The last election has tested its suspected member: prefer a different member.
    if (!requested_ || suspected_ == kNoRank || suspected_ == ballots_.speakers().suspected())
        suspected_ = suspected;
    if (std::exchange(requested_, true)) return;
    request_due_ = core_.parent != kNoRank;
    if (!request_due_ && stage_ == Stage::closed) elect_again();
}

void Elections::elect_again() {
    if (core_.config.multicast) elect_at_ = std::max(core_.now, elections_.allowed_at());
}

void Elections::drop_requests(std::uint32_t rest) {
    requested_ = request_due_ = false;
    core_.suspicion.rest(rest);
}

void Elections::on_request(const wire::Header& header) {
    if (core_.child_index(header.sender) == kMaxArity || core_.phase != Phase::active)
        return drop(core_.counters.unexpected_kind);
    if (number_of(header.operation) == number_) request(rank_of(index_of(header.fragment)));
}

bool Elections::make_multicast(Effect& effect) {
    const bool beacon = beacon_due_;
    ++core_.counters.probes_sent;
    core_.packet(effect, wire::Kind::probe, operation_of(number_), beacon ? 0 : probes_sent_ + 1);
    if (!core_.take_target(beacon ? beacon_target_ : probe_target_, effect)) return true;
    if (!std::exchange(beacon_due_, false)) {
        --probes_due_;
        ++probes_sent_;
        vote_when_all_received();
    }
    return true;
}

bool Elections::make_message(Effect& effect) {
    if (std::exchange(vote_due_, false))
        return core_.message(effect, wire::Kind::vote, core_.parent, operation_of(number_), 0,
                             ballots_.too_many() ? 1 : 0, ballots_.bytes());
    if (const Rank child = core_.reachability.next_to_inform(); child != kNoRank) {
        const ReachabilityMap& map = core_.graph().map();
        return core_.message(
            effect, wire::Kind::reachability_map, child,
            operation_of(core_.reachability.pending() ? core_.reachability.first_operation() : 0),
            static_cast<std::uint32_t>(map.deaf.size()),
            std::uint64_t{core_.reachability.version()} << 1 | (map.works ? 1 : 0),
            core_.reachability.bytes());
    }
    // After the map: a child that has not received the last `go` cannot take part in the next election.
    if (const Rank child = uninformed_.next(); child != kNoRank)
        return core_.message(effect, wire::Kind::go, child, operation_of(number_),
                             index_of(ballots_.speakers().suspected()));
    if (!std::exchange(request_due_, false)) return false;
    ++core_.counters.election_requests_sent;
    return core_.message(effect, wire::Kind::election_request, core_.parent, operation_of(number_),
                         index_of(suspected_));
}

}  // namespace mcastcoll::engine
