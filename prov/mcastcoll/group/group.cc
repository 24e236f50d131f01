#include "group/group.h"

#include <fmt/core.h>

#include <cerrno>

#include "base/result.h"
#include "wire/bytes.h"
#include "wire/peer_table.h"

namespace mcastcoll::group {
namespace {

// Cookie of the barrier that ends a join over several levels.
constexpr std::uint64_t kJoinCookie = UINT64_MAX;

// The time at which stalled operations become an error. For members of the engine the engine's own timeout
// holds.
Nanoseconds stalled_at(const StallTimer& timer, const LevelSet& levels) {
    return levels.waits_outside_engine() ? timer.stalled_at(levels.placement().hosts() > 1) : kNever;
}

void send_outcome([[maybe_unused]] Port& port, [[maybe_unused]] std::vector<Outbox::Peer> whom,
                  [[maybe_unused]] wire::ByteString message) {
#ifndef MCC_BREAK_DEATH_PASSED_ON  // mutation for the simulator: failures are not announced
    port.queue_final_message(std::move(whom), std::move(message));
#endif
}

// The name of a host memory is visible to every process of the machine. With a key the name is derived, which
// hides the packet headers' group key and epoch.
HostMemoryName memory_name(const wire::Agreement& agreement, const wire::JoinKey& key,
                           const wire::ByteString& leader_point) {
    if (!key) return {agreement.key, agreement.epoch, leader_point};
    const wire::Key name = key_of_group(agreement, *key, "host memory");
    return {static_cast<GroupKey>(wire::get<std::uint64_t>(name.data())),
            static_cast<Epoch>(wire::get<std::uint32_t>(name.data() + sizeof(std::uint64_t))), leader_point};
}

}  // namespace

Group::Group(const JoinParameters& parameters, Port& port)
    : parameters_(parameters),
      port_(port),
      join_(parameters.id, parameters.self, parameters.members, parameters.deadline, port),
      sequence_(parameters.id.sequence),
      stall_timer_(parameters.means.stall_timeout) {}

void Group::start(Nanoseconds now) {
    half_time_ = Nanoseconds{now.value + (parameters_.deadline - now).value / 2};
    on_join([&](Join& join) { join.start(now); }, now);
}

void Group::on_join(FunctionRef<void(Join&)> it, Nanoseconds now) {
    it(join_);
    if (state_ != State::hello) return;
    if (join_.complete()) return welcome_members(now);
    if (join_.error() != 0) end_join(join_.error());
}

void Group::welcome_members(Nanoseconds now) {
    const Hellos hellos = join_.hellos();
    wire::Welcome welcome =
        make_welcome(parameters_.id, hellos, parameters_.settings, parameters_.policy, parameters_.selection);
    if (const int error = port_.multicast().offer(welcome, hellos); error != 0) return end_join(error);
    join_.welcome();
    lead_host(welcome, wire::encode(welcome), now);
}

void Group::on_part(const wire::WelcomePart& part, Nanoseconds now) {
    constexpr std::size_t kMaxBeside = 65536;  // bytes of a welcome beside the member table
    if (!arrival_.add(part, kMaxBeside + parameters_.members * wire::kMaxUnpackedBytes)) return;
    const wire::ByteString whole = arrival_.take();
    const auto welcome = wire::decode_welcome(whole, parameters_.members);
    if (!welcome) return;
    const wire::Peer& named = welcome->peers[index_of(parameters_.self)];
    if (!names_this_process(named.private_address, named.watch_point) || !join_.accept(*welcome)) return;
    if (is_less_secure(*welcome))
        return refuse_less_secure(welcome->peers.front().private_address, welcome->id.sequence);
    lead_host(*welcome, whole, now);
}

// Makes the shared state of this host's processes.
void Group::lead_host(const wire::Welcome& welcome, Bytes whole, Nanoseconds now) {
    leader_address_ = welcome.peers.front().private_address;
    sequence_ = welcome.id.sequence;
    const topology::Map map = make_map(welcome);
    const std::vector<std::uint32_t> numbers = levels::Places::lay_out(places_in(map));
    std::vector<std::byte> bytes = MemberTable::lay_out(welcome, numbers);
    const levels::Places places = levels::Places::view(numbers).value();
    const levels::Ranks here = places.members_of(places.host_of(index_of(parameters_.self)));
    if (here.front() != index_of(parameters_.self)) return end_join(EPROTO);
    std::unique_ptr<HostLevel> host;
    if (here.size() > 1) {
        auto made =
            port_.open_host({.name = memory_name(welcome, parameters_.means.key,
                                                 welcome.peers[index_of(parameters_.self)].watch_point),
                             .size = static_cast<std::uint32_t>(here.size()),
                             .clusters = clusters_in_host(map, here),
                             .table = bytes});
        if (!made) return end_without_memory(made.error());
        host = std::move(made).value();
    }
    // Other processes of this host may have overwritten the table since.
    const auto table = host ? MemberTable::view(host->table()) : MemberTable::own(std::move(bytes));
    if (!table) return end_join(EPROTO);
    begin({welcome, *table, std::move(host), &welcome, &map}, whole, now);
}

// Attaches the member table in the host leader's memory.
void Group::on_host_welcome(const wire::HostWelcome& welcome, Nanoseconds now) {
    const wire::Agreement& agreement = welcome.agreement;
    if (!join_.accept(agreement)) return;
    if (is_less_secure(agreement)) return refuse_less_secure(welcome.head.answer_to, welcome.head.sequence);
    leader_address_ = welcome.head.answer_to;
    sequence_ = welcome.head.sequence;
    HostMembers members{.name = memory_name(agreement, parameters_.means.key, welcome.host_point)};
    const auto shared = port_.find_table(members.name);
    if (!shared) return end_without_memory(shared.error());
    const auto table = MemberTable::view(shared.value());
    if (!table || table->size() != parameters_.members ||
        !names_this_process(table->address(index_of(parameters_.self)),
                            table->watch_point(index_of(parameters_.self))))
        return end_join(EPROTO);
    const levels::Placement placement(index_of(parameters_.self), table->places());
    members.self = placement.host_self();
    members.size = static_cast<std::uint32_t>(placement.host().size());
    members.memory = shared.value().owner;
    if (members.self == 0 || members.self == levels::kNotThere) return end_join(EPROTO);
    auto found = port_.open_host(members);
    if (!found) return end_without_memory(found.error());
    begin({agreement, *table, std::move(found).value()}, {}, now);
}

// Whether a welcome names this process. Otherwise it is a replay of a welcome for an earlier process.
bool Group::names_this_process(const wire::ByteString& address, const wire::ByteString& watch_point) const {
    const wire::Peer own = port_.own_hello().peer;
    return own.private_address == address && own.watch_point == watch_point;
}

// Whether rank 0 uses less security than this member requires.
bool Group::is_less_secure(const wire::Agreement& agreement) const {
    return agreement.security < static_cast<std::uint8_t>(parameters_.settings.security);
}

void Group::refuse_less_secure(const wire::ByteString& leader, std::uint32_t sequence) {
    leader_address_ = leader;
    sequence_ = sequence;
    port_.warn("rank 0 uses less security than FI_MCASTCOLL_SECURITY requires on this member");
    end_join(EKEYREJECTED);
}

void Group::end_without_memory(const Error& error) {
    port_.warn_of_memory(error.message);
    end_join(error.code);
}

// Makes the levels, and forwards the welcome. whole: the encoded welcome, on host leaders only.
void Group::begin(Standing&& standing, Bytes whole, Nanoseconds now) {
    const wire::Agreement& agreement = standing.agreement;
    roster_.fill(standing.table, parameters_.self);
    if (parameters_.means.key) message_key_ = key_of_group(agreement, *parameters_.means.key, "words");
    // If allocation fails no level exists.
    levels::Hierarchy::Owner& owner = *this;
    auto levels = std::make_unique<LevelSet>(std::move(standing), parameters_.self, parameters_.means,
                                             roster_, port_, owner);
    forward_welcome(agreement, levels->placement(), whole);
    levels->start(now);
    levels_ = std::move(levels);
    state_ = State::forming;
    port_.keyed();
    move(now);
}

// Addresses each member by the sequence under which the member knows the join.
void Group::forward_welcome(const wire::Agreement& agreement, const levels::Placement& placement,
                            Bytes whole) {
    const auto send_each = [&](const std::vector<std::uint32_t>& ranks, auto&& messages_to) {
        std::map<std::uint32_t, std::vector<std::uint32_t>> by_sequence;
        for (const std::uint32_t rank : ranks) by_sequence[roster_.table().sequence(rank)].push_back(rank);
        for (const auto& [sequence, alike] : by_sequence) {
            const wire::MessageHead head{{parameters_.id.list_hash, sequence}, sequence_, leader_address_};
            const std::vector<Outbox::Peer> peers = roster_.peers_of(alike, port_);
            for (wire::ByteString& message : messages_to(head))
                port_.queue_message(peers, std::move(message));
        }
    };
    const Below below = whom_to_welcome(placement);
    const wire::ByteString host_point = roster_.watch_point(placement.host().front());
    send_each(below.leaders, [&](const wire::MessageHead& head) { return parts_of(whole, head); });
    send_each(below.on_host, [&](const wire::MessageHead& head) {
        return std::vector<wire::ByteString>{wire::encode(wire::HostWelcome{head, host_point, agreement})};
    });
}

// A join over several levels ends with a barrier over these levels.
void Group::check_formed(Nanoseconds now) {
    if (state_ != State::forming || !levels_->engine_joined()) return;
    if (!levels_->several()) return on_joined(now);
    if (levels_->planner().open_operations() > 0 || !levels_->connected()) return;
    levels::Request barrier;
    barrier.kind = levels::Kind::barrier;
    barrier.cookie = kJoinCookie;
    if (const int error = levels_->planner().submit(barrier, now); error != 0)
        return fail({kNoRank, error}, now);
    move(now);
}

void Group::on_joined(Nanoseconds now) {
    state_ = State::joined;
    if (engine::Engine* const engine = levels_->engine()) engine->count_stalls_from(now);
    port_.changed();
    levels_->log_joined();
    port_.join_ended(0);
}

void Group::on_message(MutableBytes message, Nanoseconds now) {
    touched_ = true;
    if (formed() && message.size() >= wire::kHeaderBytes) levels_->on_message(message, now);
}

bool Group::on_datagram(MutableBytes bytes, Nanoseconds now) {
    touched_ = true;
    return formed() && bytes.size() >= wire::kHeaderBytes && levels_->on_datagram(bytes, now);
}

void Group::submit(const levels::Request& request, int& refused, Nanoseconds now) {
    const bool first = !operations_open();
    refused = levels_->planner().submit(request, now);
    if (refused != 0) return;
    if (first) stall_timer_.begin(now);
    attempt([&] { levels_->log_selection(); });
    move(now);
}

// Progress of one level may unblock another, so this loops until no level makes progress. The number of
// rounds is limited, because other processes may keep sending and the caller has other work.
void Group::move(Nanoseconds now) {
    if (!formed()) return;
    constexpr int kMaxRounds = 16;
    unfinished_ = true;
    for (int round = 0; unfinished_ && round < kMaxRounds; ++round) {
        bool again = levels_->carry_out(now);
        fail(levels_->engine_failure(), now);
        if (levels_->planner().progress(now)) {
            again = true;
            stall_timer_.moved(now);
        }
        if (levels_->move_messages()) again = true;
        unfinished_ = again;
    }
    // A long awaited member outside the engine may have died, or may have failed without a member left to
    // report the failure: a host leader informs the host's members, but not after closing the group. So the
    // process is watched, and pump() queries the member while operations wait for it.
    for (const std::uint32_t rank : levels_->take_awaited_long()) {
        if (const auto peer = roster_.peer(rank, port_)) port_.watch(*peer, roster_.watch_point(rank), now);
        stall_timer_.add_late(rank, now);
    }
    // A level can fail on its own: the host level does when a process dies.
    if (const int error = levels_->planner().error(); error != 0) fail({levels_->lost_here(), error}, now);
    check_formed(now);
}

void Group::on_complete(std::uint64_t cookie, int error, Nanoseconds now) {
    if (cookie != kJoinCookie)
        port_.completed(cookie, error);
    else if (error == 0 && state_ == State::forming)
        on_joined(now);
}

void Group::close(Nanoseconds now) {
    const State before = std::exchange(state_, State::closed);
    // Peers still wait for this member, whose process stays alive.
    if (before == State::forming) break_off({kNoRank, ECANCELED}, before, now);
    if (before == State::hello && !join_.leads()) port_.remember_ended(ECANCELED);
    if (!formed()) return;
    if (levels_->engine() != nullptr) levels_->engine()->close(now);
    move(now);
}

bool Group::done() const {
    if (state_ != State::closed) return false;
    const engine::Engine* const engine = formed() ? levels_->engine() : nullptr;
    if (engine == nullptr) return true;
    const engine::Phase phase = engine->phase();
    return phase == engine::Phase::left || (phase == engine::Phase::failed && !is_informing());
}

bool Group::is_informing() const {
    const engine::Engine* const engine = formed() ? levels_->engine() : nullptr;
    return engine != nullptr && engine->phase() == engine::Phase::failed && !engine->failure_sent();
}

bool Group::operations_open() const {
    return state_ == State::joined && levels_->planner().open_operations() > 0;
}

bool Group::busy() const {
    if (touched_) return true;
    if (!formed()) return state_ == State::hello;
    if (unfinished_ || roster_.has_unreached()) return true;
    if (error() != 0) return false;
    const engine::Engine* const engine = levels_->engine();
    if (engine != nullptr && engine->phase() == engine::Phase::left) return false;
    return state_ == State::forming || (state_ == State::closed && engine != nullptr) || operations_open();
}

engine::PollHint Group::poll_hint() const {
    return operations_open() ? levels_->poll_hint() : engine::kPollAll;
}

Nanoseconds Group::next_deadline() const {
    if (!formed()) return state_ == State::hello ? join_.next_deadline() : kNever;
    if (unfinished_) return Nanoseconds{};
    Nanoseconds next = std::min(levels_->next_deadline(), stall_timer_.request_at());
    if (operations_open()) next = std::min(next, stalled_at(stall_timer_, *levels_));
    return state_ == State::forming ? std::min(next, parameters_.deadline) : next;
}

// Asks late members for a report about the group, by datagram, which needs no connection: a late member may
// just be computing. Also ends the group at its stall timeout.
void Group::check_stall(Nanoseconds now) {
    if (stall_timer_.request_at() <= now) {
        const std::uint32_t attempt = stall_timer_.next_round(operations_open(), now);
        const wire::ByteString request = wire::encode(wire::Waiting{id(), parameters_.self});
        for (const std::uint32_t rank : stall_timer_.late())
            if (error() == 0 && levels_->needs(rank)) port_.send(rank_of(rank), attempt, request);
    }
    if (operations_open() && stalled_at(stall_timer_, *levels_) <= now)
        fail({levels_->awaited(), ETIMEDOUT}, now);
}

void Group::pump(Nanoseconds now) {
    touched_ = false;
    if (state_ == State::hello) {
        name_stray(now);
        return on_join([&](Join& join) { join.on_timeout(now); }, now);
    }
    if (!formed()) return;
    if (state_ == State::forming && parameters_.deadline <= now) fail({kNoRank, ETIMEDOUT}, now);
    levels_->on_timeout(now);
    for (const Roster::Unreached& one : roster_.take_unreached())
        losses_.add(one.rank, one.error, "it cannot be reached: " + one.reason);
    for (const Losses::Loss& loss : losses_.take_found()) on_lost(loss, now);
    fail(losses_.needed([this](std::uint32_t rank) { return levels_->needs(rank); }), now);
    move(now);
    // Other processes of this host may have ended the group while no operation was open here.
    fail(levels_->host_failure(), now);
    check_stall(now);
    levels_->log_engine();
}

// Early end of a group: lost members, stalled operations, and the messages about the end.

void Group::on_peer_lost(Outbox::Peer peer, int error, const std::string& reason) {
    if (!formed()) return;
    for (const Rank rank : roster_.ranks_at(peer)) {
        losses_.add(rank, error, reason);
        touched_ = true;
    }
}

// The engine handles the loss of its own members, and tolerates orderly leaves. The same holds here: a member
// outside this engine may close the group and exit once its part of every open operation is done.
void Group::on_lost(const Losses::Loss& loss, Nanoseconds now) {
    if (levels_->engine_loses(loss.rank, loss.error, now) || state_ == State::closed) return;
    if (!joined() || roster_.suspected(loss.rank)) return fail(loss, now);
    levels_->lose(loss.rank);
    losses_.let_go(loss);
}

void Group::suspect(Rank rank, Nanoseconds now) {
    if (error() != 0 || rank == parameters_.self || !roster_.suspect(rank, now)) return;
    if (const auto peer = roster_.peer(index_of(rank), port_))
        port_.look_at(*peer, roster_.watch_point(index_of(rank)), now);
}

void Group::on_abort(std::uint32_t error, Rank lost, Nanoseconds now) {
    const int code = static_cast<int>(error);
    if (!formed()) return end_join(code);
    const Losses::Loss loss{index_of(lost) < roster_.size() ? lost : kNoRank, code};
    fail(loss, now);
    // An earlier message about the end may have come from a member that did not know the lost rank, or may
    // have named another lost rank.
    if (failure_text_.empty()) attempt([&] { name_lost(loss.rank); });
    if (loss.rank != kNoRank && state_ != State::over) attempt([&] { inform_others(loss.rank, true); });
    touched_ = true;
}

void Group::on_waiting(Rank from) {
    if (error() == 0 || !roster_.answer(from)) return;
    if (const auto peer = roster_.peer(index_of(from), port_))
        send_outcome(port_, {*peer}, of_group(ended_message()));
}

wire::Ended Group::ended_message() const {
    return {id(), static_cast<std::uint32_t>(failure_.error), failure_.rank};
}

wire::ByteString Group::of_group(const wire::Ended& message) const {
    return wire::prove(wire::encode(message), message_key_);
}

// Waits for half of the join's time, because a hello may belong to another group that is called here shortly.
void Group::name_stray(Nanoseconds now) {
    if (now < half_time_) return;
    half_time_ = kNever;
    attempt([&] {
        if (const std::string stray = port_.describe_stray_hello(); !stray.empty())
            port_.warn("half of the join timeout has passed: " + stray);
    });
}

// Ends the join before the welcome. A welcomed member that cannot work under the welcome informs rank 0,
// which informs the group. If rank 0 is dead, the members that wait for rank 0 detect its death, and the
// others end at the join's deadline.
void Group::end_join(int error) {
    if (state_ != State::hello) return;
    std::string stray;
    if (error == ETIMEDOUT) attempt([&] { stray = port_.describe_stray_hello(); });
    state_ = State::over;
    attempt([&] {
        port_.warn(
            fmt::format("join failed: {}{}{}", port_.text_of(error), stray.empty() ? "" : "; ", stray));
    });
    attempt([&] {
        port_.remember_ended(error);
        join_.fail(error);
        if (join_.leads() || leader_address_.empty()) return;
        if (const auto leader = port_.peer(leader_address_))
            port_.queue_final_message(
                {leader.value()},
                wire::encode(wire::Ended{id(), static_cast<std::uint32_t>(error), kNoRank}));
    });
    port_.join_ended(error);
}

void Group::fail(const Losses::Loss& loss, Nanoseconds now) {
    if (loss.error == 0 || error() != 0) return;
    const State before = state_;
    if (before == State::forming) state_ = State::over;
    if (before == State::joined) state_ = State::failed;
    break_off(loss, before, now);
}

// Each step is attempted on its own, because a step may fail for lack of memory, which may have ended the
// group.
void Group::break_off(const Losses::Loss& loss, State before, Nanoseconds now) {
    failure_ = loss;
    port_.changed();
    attempt([&] {
        name_lost(loss.rank != kNoRank ? loss.rank : levels_->lost_elsewhere());
        const bool more = !failure_text_.empty();
        port_.warn(fmt::format("failed: {}{}{}{}", port_.text_of(loss.error), more ? " (" : "", failure_text_,
                               more ? ")" : ""));
    });
    levels_->fail(loss.error, loss.rank, now);
    attempt([&] { inform_others(loss.rank, before != State::forming); });
    attempt([&] { levels_->carry_out(now); });
    if (before == State::forming) {
        attempt([&] { port_.warn("join failed: " + port_.text_of(loss.error)); });
        attempt([&] {
            if (join_.leads()) port_.remember_ended(loss.error);
            join_.fail(loss.error);
        });
    }
    if (state_ == State::over) port_.join_ended(loss.error);
    if (state_ == State::failed) port_.failed(loss.error, loss.rank);
}

void Group::name_lost(Rank lost) {
    failure_text_ = levels_->describe_loss(failure_.error, lost, losses_.reason(lost));
}

// Informs others once for each lost rank.
void Group::inform_others(Rank lost, bool had_joined) {
    if (informed_deaths_.size() == kMaxDeathsSent || !informed_deaths_.insert(lost).second) return;
    const auto whom = whom_to_inform(levels_->placement(), lost, had_joined);
    wire::Ended message = ended_message();
    message.lost = lost;
    const std::vector<Outbox::Peer> peers = roster_.peers_of(whom, port_);
    send_outcome(port_, peers, of_group(message));
    // Members without a formed group lack the group's key.
    if (!had_joined && message_key_) send_outcome(port_, peers, wire::encode(message));
}

void Group::break_down(int error, Nanoseconds now) noexcept {
    touched_ = true;
    unfinished_ = false;
    if (formed())
        fail({kNoRank, error}, now);
    else
        end_join(error);
    // The buffers of the ended operations return to the application.
    port_.multicast().forget_payloads();
}

}  // namespace mcastcoll::group
