#include "join_fixture.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace mcastcoll::bench {
namespace {

constexpr std::uint64_t kListHash = 0x1157;

wire::ByteString private_address(Rank rank, std::uint64_t incarnation) {
    const std::uint64_t word = incarnation << 32 | index_of(rank);
    wire::ByteString bytes(sizeof word);
    std::memcpy(bytes.data(), &word, sizeof word);
    return bytes;
}

}  // namespace

JoinProcess::JoinProcess(JoinBench& bench, Rank self, wire::JoinId id, std::uint64_t number)
    : incarnation(number),
      bench_(bench),
      self_(self),
      id_(id),
      most_under_way_(bench.network_.words_at_once) {
    hello.id = id;
    hello.rank = self;
    hello.members = static_cast<std::uint32_t>(bench.size());
    hello.address_family = 4;
    hello.datagram_bytes = 1472;
    hello.window = 64;
    hello.room = 1;
    hello.peer.private_address = private_address(self, number);
}

void JoinProcess::call(Nanoseconds deadline) {
    join.emplace(id_, self_, bench_.size(), deadline, static_cast<group::JoinPort&>(*this));
    join->start(bench_.now());
    for (const wire::Hello& early : early_)
        if (early.id == id_) join->on_hello(early, bench_.now());
    follow();
}

void JoinProcess::on_datagram(Rank from, Bytes bytes) {
    const auto kind = wire::join_kind(bytes);
    cr_assert(kind);
    if (const auto greeting = wire::decode_hello(bytes)) return on_hello(*greeting);
    if (!join || over()) return;
    const auto own = [&](const wire::SurveyHead& head) { return head.id == id_ && head.from == from; };
    if (const auto answer = wire::decode_answer(bytes)) {
        if (answer->id == id_ && *kind == wire::JoinKind::ack) join->on_ack();
    } else if (const auto survey = wire::decode_survey(bytes)) {
        if (own(survey->head) && !silent) join->on_survey(*survey, bench_.now());
    } else if (const auto echo = wire::decode_echo(bytes)) {
        if (own(echo->head) && !silent) join->on_echo(*echo, bench_.now());
    } else if (const auto surveyed = wire::decode_surveyed(bytes)) {
        if (own(surveyed->head)) join->on_surveyed(*surveyed, bench_.now());
    }
    follow();
}

void JoinProcess::on_hello(const wire::Hello& greeting) {
    if (join && greeting.id == id_) {
        if (error != 0) return;
        send(greeting.rank, 0, wire::encode(wire::Answer{wire::JoinKind::ack, greeting.id, 0}));
        join->on_hello(greeting, bench_.now());
        return follow();
    }
    early_.push_back(greeting);
}

void JoinProcess::on_word(Bytes word) {
    if (!join) return;
    if (const auto said = wire::decode_welcome(word)) {
        if (said->id == id_ && !over() && join->accept(*said)) {
            welcome = *said;
            over_at = bench_.now();
        }
    } else if (const auto answer = wire::decode_answer(word)) {
        if (answer->id == id_ && error == 0) fail(static_cast<int>(answer->error));
    }
}

void JoinProcess::on_time() {
    join->on_timeout(bench_.now());
    follow();
}

void JoinProcess::fail(int code) {
    error = code;
    over_at = bench_.now();
    join->fail(code);
    outbox_.flush(*this);
}

// As the provider's group does: makes the welcome, or ends.
void JoinProcess::follow() {
    if (!over() && join->state() == group::Join::State::complete) {
        const group::GroupSettings settings;
        const topology::Policy policy;
        wire::Welcome made = group::make_welcome(id_, join->guests(), join->places(), {settings, policy, {}});
        made.key = static_cast<GroupKey>(bench_.random_.next());
        made.epoch = static_cast<Epoch>(bench_.random_.next());
        made.range_of.assign(bench_.size(), 0);
        group::fit_datagrams(made, join->guests(), group::placement_of(made), false);
        const int refused = join->welcome(made);
        cr_assert_eq(refused, 0);
        made.id = id_;
        welcome = made;
        over_at = bench_.now();
    }
    if (!over() && join->error() != 0) fail(join->error());
    outbox_.flush(*this);
}

void JoinProcess::greet(std::uint32_t, Bytes bytes) {
    if (failing_greetings > 0) {
        --failing_greetings;
        throw std::bad_alloc();
    }
    ++greetings;
    bench_.datagram(self_, rank_of(0), bytes);
}

void JoinProcess::send(Rank to, std::uint32_t, Bytes datagram) {
    echoes_sent += wire::join_kind(datagram) == wire::JoinKind::echo;
    bench_.datagram(self_, to, datagram);
}

const wire::Hello* JoinProcess::miscounted_hello(Rank rank) {
    const auto found = std::find_if(early_.rbegin(), early_.rend(),
                                    [&](const wire::Hello& early) { return early.rank == rank; });
    return found == early_.rend() ? nullptr : &*found;
}

std::optional<Nanoseconds> JoinProcess::round_trip(std::uint64_t one, std::uint64_t other) const {
    const auto found = round_trips.find({one, other});
    return found == round_trips.end() ? std::nullopt : std::optional(found->second);
}

void JoinProcess::keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds time) {
    round_trips.insert_or_assign({one, other}, time);
}

Result<group::Outbox::Peer> JoinProcess::peer(const wire::ByteString& address) {
    std::uint64_t word = 0;
    if (address.size() != sizeof word) return Error{EADDRNOTAVAIL, "no address of these tests"};
    std::memcpy(&word, address.data(), sizeof word);
    return word;
}

int JoinProcess::tell(std::vector<group::Outbox::Peer> to, wire::ByteString word) {
    outbox_.post(std::move(to), std::move(word), kOwner);
    outbox_.flush(*this);
    return 0;
}

void JoinProcess::send_word(group::Outbox::Peer to, Bytes word) {
    ++under_way_;
    bench_.word(rank_of(to & UINT32_MAX), to >> 32, word, bench_.last_word_[{index_of(self_), to}],
                [this, number = incarnation] {
                    if (!bench_.lives(self_, number)) return;
                    --under_way_;
                    outbox_.flush(*this);
                });
}

JoinBench::JoinBench(std::size_t members, const JoinNetwork& network)
    : network_(network), random_(network.seed) {
    processes_.resize(members);
    for (std::uint32_t rank = 0; rank < members; ++rank) start_again(rank, 0);
}

JoinProcess& JoinBench::start_again(std::uint32_t rank, std::uint32_t sequence) {
    processes_[rank] = std::make_unique<JoinProcess>(*this, rank_of(rank), wire::JoinId{kListHash, sequence},
                                                     ++incarnations_);
    return *processes_[rank];
}

void JoinBench::call_all(Nanoseconds within, Nanoseconds timeout) {
    for (std::uint32_t rank = 0; rank < size(); ++rank)
        at(now_ + random_.up_to(within), [this, rank, timeout] {
            if (processes_[rank] && !processes_[rank]->join) processes_[rank]->call(now_ + timeout);
        });
}

bool JoinBench::lives(Rank rank, std::uint64_t incarnation) const {
    const auto& process = processes_[index_of(rank)];
    return process && process->incarnation == incarnation;
}

void JoinBench::datagram(Rank from, Rank to, Bytes bytes) {
    cr_assert_leq(bytes.size(), 1400U, "no datagram may be longer");
    const Nanoseconds far = distance ? distance(from, to) : Nanoseconds{};
    for (int copies = random_.chance(network_.doubled) ? 2 : 1; copies > 0; --copies) {
        if (random_.chance(network_.loss)) continue;
        at(now_ + delay() + far, [this, from, to, copy = wire::ByteString(bytes.begin(), bytes.end())] {
            if (processes_[index_of(to)]) processes_[index_of(to)]->on_datagram(from, copy);
        });
    }
}

void JoinBench::word(Rank to, std::uint64_t incarnation, Bytes bytes, Nanoseconds& last,
                     std::function<void()> sent) {
    last = std::max(now_ + delay(), last + Nanoseconds{1});
    at(last, [this, to, incarnation, sent, copy = wire::ByteString(bytes.begin(), bytes.end())] {
        if (lives(to, incarnation)) processes_[index_of(to)]->on_word(copy);
        sent();
    });
}

void JoinBench::run(Nanoseconds longest) {
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
            cr_assert(due->next_deadline() > now_, "a timer that is due again at once");
            continue;
        }
        const auto what = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        what();
    }
}

void JoinBench::expect_all_welcomed() {
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
        JoinProcess& one = process(rank);
        cr_assert(one.welcome.has_value(), "seed %llu: rank %u of %zu has no welcome, error %d",
                  static_cast<unsigned long long>(network_.seed), rank, size(), one.error);
        cr_assert_eq(one.error, 0);
        cr_assert(one.welcome->key == process(0).welcome->key &&
                  one.welcome->epoch == process(0).welcome->epoch);
        cr_assert(one.welcome->peers == process(0).welcome->peers);
        cr_assert(one.welcome->id == one.hello.id, "it knows the join by another number");
    }
}

}  // namespace mcastcoll::bench
