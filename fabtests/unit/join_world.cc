#include "join_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "group/welcome.h"

namespace mcastcoll::test {
namespace {

constexpr std::uint64_t kListHash = 0x1157;
constexpr std::size_t kMaxDatagram = 1400;  // a service socket's limit, as in transport/rendezvous.h

wire::ByteString private_address(Rank rank, std::uint64_t incarnation) {
    const std::uint64_t number = incarnation << 32 | index_of(rank);
    wire::ByteString bytes(sizeof number);
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

}  // namespace

JoinProcess::JoinProcess(JoinWorld& world, Rank self, wire::JoinId id, std::uint64_t number)
    : incarnation(number),
      world_(world),
      self_(self),
      id_(id),
      max_under_way_(world.network_.messages_at_once) {
    hello.id = id;
    hello.rank = self;
    hello.members = static_cast<std::uint32_t>(world.size());
    hello.address_family = 4;
    hello.datagram_bytes = 1472;
    hello.window = 64;
    hello.room = 1;
    hello.peer.private_address = private_address(self, number);
}

void JoinProcess::call(Nanoseconds until) {
    deadline = until;
    join.emplace(id_, self_, world_.size(), until, static_cast<group::JoinPort&>(*this));
    join->start(world_.now());
    for (const wire::Hello& early : early_)
        if (early.id == id_) join->on_hello(early, world_.now());
    follow();
}

void JoinProcess::on_datagram(Rank from, Bytes bytes) {
    const auto kind = wire::join_kind(bytes);
    if (!kind) return world_.complain("a datagram of the join that is none");
    if (const auto hello = wire::decode_hello(bytes)) return on_hello(*hello);
    if (!join || over()) return;
    const auto own = [&](const wire::SurveyHead& head) { return head.id == id_ && head.from == from; };
    if (const auto answer = wire::decode_answer(bytes)) {
        if (answer->id != id_) return;
        if (*kind == wire::JoinKind::abort) return fail(static_cast<int>(answer->error));
        join->on_ack();
    } else if (const auto survey = wire::decode_survey(bytes)) {
        if (own(survey->head) && !silent) join->on_survey(*survey, world_.now());
    } else if (const auto echo = wire::decode_echo(bytes)) {
        if (own(echo->head) && !silent) join->on_echo(*echo, world_.now());
    } else if (const auto surveyed = wire::decode_surveyed(bytes)) {
        if (own(surveyed->head)) join->on_surveyed(*surveyed, world_.now());
    }
    follow();
}

void JoinProcess::on_hello(const wire::Hello& hello) {
    ++received;
    if (join && hello.id == id_) {
        if (!join->gathers(hello.rank)) return world_.complain("a hello went to the wrong member");
        const wire::JoinKind kind = error != 0 ? wire::JoinKind::abort : wire::JoinKind::ack;
        send(hello.rank, 0, wire::encode(wire::Answer{kind, hello.id, static_cast<std::uint32_t>(error)}));
        if (error != 0) return;
        join->on_hello(hello, world_.now());
        return follow();
    }
    early_.push_back(hello);
}

void JoinProcess::on_join_message(Bytes message) {
    ++received;
    if (!join) return;
    if (const auto part = wire::decode_part(message)) {
        if (part->head.to != id_ || error != 0 || !arrival_.add(*part, SIZE_MAX)) return;
        const auto said = wire::decode_welcome(arrival_.take(), world_.size());
        if (!said) return world_.complain("a welcome that is none");
        if (!join->accept(*said)) return;
        if (welcome) world_.complain(fmt::format("rank {} takes a welcome twice", index_of(self_)));
        welcome_by(*said);
    } else if (const auto head = wire::decode_collect(message)) {
        if (head->to == id_) join->on_collect(*head);
    } else if (const auto gathered = wire::decode_gathered_hellos(message)) {
        if (gathered->id == id_) join->on_gathered_hellos(*gathered, world_.now());
        follow();
    } else if (const auto answer = wire::decode_answer(message)) {
        if (answer->id == id_ && error == 0) fail(static_cast<int>(answer->error));
    }
}

void JoinProcess::on_time() {
    join->on_timeout(world_.now());
    follow();
}

void JoinProcess::fail(int code) {
    error = code;
    end();
    join->fail(code);
    outbox_.flush(*this);
}

// Acts as the provider's group does: creates the welcome, or ends.
void JoinProcess::follow() {
    if (!over() && join->complete()) {
        const group::GroupSettings settings;
        const topology::Policy policy;
        const group::Hellos hellos = join->hellos();
        wire::Welcome made = group::make_welcome(id_, hellos, settings, policy, {});
        made.key = static_cast<GroupKey>(world_.random_.next());
        made.epoch = static_cast<Epoch>(world_.random_.next());
        made.range_of.assign(world_.size(), 0);
        group::fit_datagrams(made, hellos, group::placement_of(made), false);
        join->welcome();
        welcome_by(made);
        const wire::ByteString whole = wire::encode(made);
        for (std::uint32_t rank = 1; rank < world_.size(); ++rank)
            for (wire::ByteString& part :
                 group::parts_of(whole, {{kListHash, made.sequences[rank]}, id_.sequence, {}}))
                queue_message({peer(made.peers[rank].private_address).value()}, std::move(part));
    }
    if (!over() && join->error() != 0) fail(join->error());
    outbox_.flush(*this);
}

void JoinProcess::welcome_by(const wire::Welcome& said) {
    welcome = said;
    end();
}

void JoinProcess::end() {
    over_at = world_.now();
}

void JoinProcess::send_hello(Rank to, std::uint32_t, Bytes bytes) {
    if (failing_hellos > 0) {
        --failing_hellos;
        throw std::bad_alloc();
    }
    ++hellos_sent;
    world_.datagram(self_, to, bytes);
}

void JoinProcess::send(Rank to, std::uint32_t, Bytes datagram) {
    echoes_sent += wire::join_kind(datagram) == wire::JoinKind::echo;
    world_.datagram(self_, to, datagram);
}

const wire::Hello* JoinProcess::miscounted_hello(Rank rank) {
    const auto found = std::find_if(early_.rbegin(), early_.rend(),
                                    [&](const wire::Hello& early) { return early.rank == rank; });
    return found == early_.rend() ? nullptr : &*found;
}

Result<group::Outbox::Peer> JoinProcess::peer(const wire::ByteString& address) {
    std::uint64_t number = 0;
    if (address.size() != sizeof number) return Error{EADDRNOTAVAIL, "no address of these tests"};
    std::memcpy(&number, address.data(), sizeof number);
    return number;
}

void JoinProcess::queue_message(std::vector<group::Outbox::Peer> to, wire::ByteString message) {
    if (message.size() > group::kMessageBytes) world_.complain("a join message is too long");
    outbox_.post(std::move(to), std::move(message), kOwner);
    outbox_.flush(*this);
}

void JoinProcess::send_join_message(group::Outbox::Peer to, Bytes message) {
    ++under_way_;
    world_.join_message(rank_of(to & UINT32_MAX), to >> 32, message,
                        world_.last_message_[{index_of(self_), to}], [this, number = incarnation] {
                            if (!world_.lives(self_, number)) return;
                            --under_way_;
                            outbox_.flush(*this);
                        });
}

JoinWorld::JoinWorld(std::size_t members, const JoinNetwork& network)
    : network_(network), random_(network.seed) {
    processes_.resize(members);
    for (std::uint32_t rank = 0; rank < members; ++rank) start_again(rank, 0);
}

JoinProcess& JoinWorld::start_again(std::uint32_t rank, std::uint32_t sequence) {
    processes_[rank] = std::make_unique<JoinProcess>(*this, rank_of(rank), wire::JoinId{kListHash, sequence},
                                                     ++incarnations_);
    return *processes_[rank];
}

void JoinWorld::call_all(Nanoseconds within, Nanoseconds timeout) {
    for (std::uint32_t rank = 0; rank < size(); ++rank)
        at(now_ + random_.up_to(within), [this, rank, timeout] {
            if (processes_[rank] && !processes_[rank]->join) processes_[rank]->call(now_ + timeout);
        });
}

bool JoinWorld::lives(Rank rank, std::uint64_t incarnation) const {
    const auto& process = processes_[index_of(rank)];
    return process && process->incarnation == incarnation;
}

void JoinWorld::datagram(Rank from, Rank to, Bytes bytes) {
    if (bytes.size() > kMaxDatagram) complain("a datagram is too long for its socket");
    const Nanoseconds far = distance ? distance(from, to) : Nanoseconds{};
    for (int copies = random_.chance(network_.doubled) ? 2 : 1; copies > 0; --copies) {
        if (random_.chance(network_.loss)) continue;
        at(now_ + delay() + far, [this, from, to, copy = wire::ByteString(bytes.begin(), bytes.end())] {
            if (processes_[index_of(to)]) processes_[index_of(to)]->on_datagram(from, copy);
        });
    }
}

void JoinWorld::join_message(Rank to, std::uint64_t incarnation, Bytes bytes, Nanoseconds& last,
                             std::function<void()> sent) {
    last = std::max(now_ + delay(), last + Nanoseconds{1});
    at(last, [this, to, incarnation, sent, copy = wire::ByteString(bytes.begin(), bytes.end())] {
        if (lives(to, incarnation)) processes_[index_of(to)]->on_join_message(copy);
        sent();
    });
}

void JoinWorld::run(Nanoseconds longest) {
    const Nanoseconds end = now_ + longest;
    for (;;) {
        Nanoseconds next = events_.empty() ? kNever : events_.begin()->first;
        JoinProcess* due = nullptr;
        for (const auto& process : processes_) {
            if (!process || process->next_deadline() >= next) continue;
            next = process->next_deadline();
            due = process.get();
        }
        if (next == kNever) return;
        if (next > end) {
            now_ = end;
            return;
        }
        now_ = std::max(now_, next);
        if (due != nullptr) {
            due->on_time();
            if (due->next_deadline() <= now_) return complain("a timer is due again at once");
            continue;
        }
        const auto what = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        what();
    }
}

void JoinWorld::complain(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
}

std::string JoinWorld::why_not_all_welcomed() {
    if (!wrong_.empty()) return wrong_;
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
        const JoinProcess& one = process(rank);
        if (!one.welcome || one.error != 0)
            return fmt::format("rank {} of {} is in no group, error {}", rank, size(), one.error);
        const wire::Welcome& first = *process(0).welcome;
        if (one.welcome->key != first.key || one.welcome->epoch != first.epoch ||
            one.welcome->peers != first.peers)
            return fmt::format("rank {} was informed of another group", rank);
        if (one.welcome->id != process(0).hello.id)
            return fmt::format("rank {} was informed by an id that rank 0 does not use for the join", rank);
    }
    return {};
}

}  // namespace mcastcoll::test
