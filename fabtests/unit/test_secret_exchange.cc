// Distribution of a secret to the members of a group, with credentials that this test creates and decodes
// itself.
#include <criterion/criterion.h>

#include <deque>

#include "group/joins.h"
#include "group/secret_exchange.h"
#include "group/secret_exchanges.h"

using namespace mcastcoll;
using namespace mcastcoll::group;

namespace {

constexpr Nanoseconds kStart = Nanoseconds::from_ms(1'000);
const wire::Key kSecret = wire::derive({}, "the secret"), kOther = wire::derive({}, "another");

Source source_of(Rank rank) {
    return Source(6, static_cast<std::byte>(index_of(rank)));
}

// Returns a credential with this secret: in this test a credential is its payload behind a letter.
wire::ByteString sealed(const wire::Key& secret) {
    wire::ByteString credential = payload_of(secret);
    credential.insert(credential.begin(), std::byte{'c'});
    return credential;
}

wire::KeyRequest request_of(std::size_t rank, std::uint32_t members, std::uint64_t nonce = 0) {
    return {{77, 3}, rank_of(rank), members, nonce != 0 ? nonce : 1000 + rank};
}

struct Sent {
    Rank from, to;
    wire::ByteString bytes;
};

class Requester final : public SecretExchange::Port {
  public:
    Requester(std::deque<Sent>& network, const wire::KeyRequest& own, const std::optional<wire::Key>& secret)
        : network_(network), self_(own.rank), exchange(own, secret, *this) {
        exchanges.add(exchange);
    }
    bool take(const Sent& one) { return exchanges.on_datagram(one.bytes, source_of(one.from), kStart); }
    // Decodes the last credential.
    bool open_it() { return exchange.on_opened(secret_in(Bytes(given.back()).subspan(1))); }

    std::vector<wire::ByteString> given;
    unsigned requests = 0, answered = 0;
    bool has_credential = true;

  private:
    void send_request(Rank whom, std::uint32_t, Bytes request) override {
        ++requests;
        network_.push_back({self_, whom, {request.begin(), request.end()}});
    }
    bool comes_from(Rank rank, const Source& source) override { return source == source_of(rank); }
    void answer(const Source& source, Bytes reply) override {
        ++answered;
        network_.push_back(
            {self_, rank_of(std::to_integer<std::size_t>(source[0])), {reply.begin(), reply.end()}});
    }
    const wire::ByteString* credential(Nanoseconds) override {
        credential_ = sealed(*exchange.secret());
        return has_credential ? &credential_ : nullptr;
    }
    void unseal(const wire::ByteString& credential) override { given.push_back(credential); }

    std::deque<Sent>& network_;
    const Rank self_;
    wire::ByteString credential_;

  public:
    SecretExchange exchange;
    SecretExchanges exchanges;
};

struct Requesters {
    explicit Requesters(std::uint32_t members) {
        for (std::uint32_t rank = 0; rank < members; ++rank)
            processes.push_back(std::make_unique<Requester>(
                network, request_of(rank, members), rank == 0 ? std::optional(kSecret) : std::nullopt));
    }
    void deliver() {
        while (!network.empty()) {
            const Sent one = std::move(network.front());
            network.pop_front();
            cr_assert(processes[index_of(one.to)]->take(one));
        }
    }
    Requester& at(std::size_t rank) { return *processes[rank]; }
    // The reply to rank 1, not yet delivered.
    Sent reply_to_1() {
        at(1).exchange.on_timeout(kStart);
        cr_assert(at(0).take(network.front()));
        network.pop_front();
        cr_assert_eq(network.size(), 1U);
        const Sent reply = std::move(network.front());
        network.pop_front();
        return reply;
    }
    std::deque<Sent> network;
    std::vector<std::unique_ptr<Requester>> processes;
};

// Returns a reply by a process that has the secret `by`, with the secret `in_it`.
Sent forged(const wire::KeyRequest& to, const wire::Key& in_it, const wire::Key& by, Rank from = Rank{0}) {
    const wire::ByteString message = wire::encode(wire::KeyReply{to.id, to.rank, to.nonce, sealed(in_it)});
    return {from, to.rank, wire::prove(message, wire::JoinKey(wire::derive(by, "key reply")))};
}

}  // namespace

Test(secret_exchange, all_members_get_it_and_no_member_gets_many_requests) {
    Requesters world(100);
    for (unsigned round = 0; round < 3; ++round) {
        const Nanoseconds now = kStart + Nanoseconds::from_ms(round * 50);
        for (auto& process : world.processes) process->exchange.on_timeout(now);
        world.deliver();
        for (auto& process : world.processes)
            if (!process->given.empty() && !process->exchange.secret()) cr_assert(process->open_it());
    }
    for (auto& process : world.processes) {
        cr_assert(process->exchange.secret() == kSecret);
        cr_assert(process->answered <= 34);
        cr_assert(process->exchange.next_deadline() == kNever);
    }
    cr_assert_eq(world.at(0).requests, 0U);
}

Test(secret_exchange, requests_are_repeated_but_not_fast) {
    Requesters world(2);
    Requester& member = world.at(1);
    for (Nanoseconds now = kStart; now < kStart + Nanoseconds::from_ms(1'000);
         now = now + Nanoseconds::from_ms(1))
        member.exchange.on_timeout(now);
    cr_assert(member.requests >= 50 && member.requests <= 60, "%u", member.requests);
    for (const Sent& one : world.network) cr_assert_eq(one.bytes.size(), wire::kKeyRequestBytes);
}

// After an invalid secret a member requests less often, so that munged has time for other programs.
Test(secret_exchange, an_invalid_secret_makes_requests_rarer) {
    Requesters world(2);
    Requester& member = world.at(1);
    for (std::int64_t ms = 1'000; ms < 11'000; ++ms) {
        member.exchange.on_timeout(Nanoseconds::from_ms(ms));
        if (world.network.empty()) continue;
        world.network.clear();
        cr_assert(member.take(forged(request_of(1, 2), kSecret, kOther)));
        cr_assert(!member.open_it());
    }
    cr_assert(member.requests >= 20 && member.requests <= 30, "%u", member.requests);
    cr_assert_eq(member.given.size(), member.requests);
}

Test(secret_exchange, an_answer_is_no_longer_than_its_request) {
    Requesters world(2);
    cr_assert(world.reply_to_1().bytes.size() <= wire::kKeyRequestBytes);
}

Test(secret_exchange, requests_for_another_member_get_no_answer) {
    Requesters world(40);
    const auto send_request = [&](std::size_t whom, const wire::KeyRequest& request, Rank from) {
        world.at(whom).take({from, rank_of(whom), wire::encode(request)});
        return world.at(whom).answered;
    };
    cr_assert_eq(send_request(0, request_of(1, 41), Rank{1}), 0U, "another number of members");
    cr_assert_eq(send_request(0, request_of(1, 40), Rank{2}), 0U, "from elsewhere");
    cr_assert_eq(send_request(0, request_of(33, 40), Rank{33}), 0U, "32 answers it");
    cr_assert_eq(send_request(32, request_of(33, 40), Rank{33}), 0U, "it does not know itself");
    cr_assert_eq(send_request(0, request_of(0, 40), Rank{0}), 0U, "rank 0 sends no request");
    world.at(0).has_credential = false;
    cr_assert_eq(send_request(0, request_of(1, 40), Rank{1}), 0U, "not yet");
    world.at(0).has_credential = true;
    cr_assert_eq(world.at(0).exchanges.foreign_datagrams(), 4U);
    cr_assert_eq(send_request(0, request_of(1, 40), Rank{1}), 1U);
    wire::KeyRequest of_other_list = request_of(1, 40);
    of_other_list.id.list_hash = 78;
    cr_assert(!world.at(0).take({Rank{1}, Rank{0}, wire::encode(of_other_list)}));
    wire::KeyRequest counted_anew = request_of(1, 40);
    counted_anew.id.sequence = 0;
    cr_assert_eq(send_request(0, counted_anew, Rank{1}), 2U, "a process that was started again");
}

// After its join is over, a member replies to no key request.
Test(secret_exchange, a_member_that_left_sends_no_replies) {
    Requesters world(2);
    world.at(0).exchanges.remove(world.at(0).exchange);
    cr_assert(!world.at(0).take({Rank{1}, Rank{0}, wire::encode(request_of(1, 2))}));
    cr_assert_eq(world.at(0).answered, 0U);
}

Test(secret_exchange, replies_of_an_earlier_join_are_refused) {
    Requesters earlier(2), world(2);
    const Sent recorded = earlier.reply_to_1();
    Requester member(world.network, request_of(1, 2, 4711), {});
    cr_assert(member.take(recorded));
    cr_assert(member.given.empty());
    cr_assert_eq(member.exchanges.foreign_datagrams(), 1U);
    // A replayed reply gets the correct nonce, which is visible on the wire, but keeps the old tag.
    auto reply =
        *wire::decode_key_reply(Bytes(recorded.bytes).first(recorded.bytes.size() - wire::kTagBytes));
    reply.nonce = 4711;
    wire::ByteString bytes = wire::encode(reply);
    bytes.insert(bytes.end(), recorded.bytes.end() - wire::kTagBytes, recorded.bytes.end());
    cr_assert(member.take({Rank{0}, Rank{1}, bytes}));
    cr_assert_eq(member.given.size(), 1U);
    cr_assert(!member.open_it());
    cr_assert(!member.exchange.secret());
    // The genuine reply is accepted afterwards.
    cr_assert(member.take(forged(member.exchange.own(), kSecret, kSecret)));
    cr_assert(member.open_it());
    cr_assert(member.exchange.secret() == kSecret);
}

Test(secret_exchange, a_reply_without_the_secret_is_refused) {
    Requesters world(2);
    Requester& member = world.at(1);
    cr_assert(member.take(forged(request_of(1, 2), kSecret, kOther)));
    cr_assert(!member.open_it());
    cr_assert(member.take(forged(request_of(1, 2), kSecret, kSecret, Rank{5})), "from elsewhere");
    cr_assert_eq(member.given.size(), 1U);
    cr_assert(!member.exchange.secret());
}

Test(secret_exchange, one_is_opened_at_a_time) {
    Requesters world(2);
    Requester& member = world.at(1);
    for (int i = 0; i < 100; ++i) cr_assert(member.take(forged(request_of(1, 2), kOther, kSecret)));
    cr_assert_eq(member.given.size(), 1U);
    cr_assert(!member.exchange.on_opened({}));
    cr_assert(member.take(forged(request_of(1, 2), kSecret, kSecret)));
    cr_assert(member.open_it());
    cr_assert(member.take(forged(request_of(1, 2), kOther, kOther)));
    cr_assert_eq(member.given.size(), 2U, "it knows the secret");
}

// Other programs of the user create credentials, too.
Test(secret_exchange, what_was_made_for_something_else_is_no_secret) {
    const wire::ByteString good = payload_of(kSecret);
    cr_assert(secret_in(good) == kSecret);
    for (std::size_t length = 0; length < good.size(); ++length)
        cr_assert(!secret_in(Bytes(good).first(length)));
    auto longer = good, other = good;
    longer.push_back(std::byte{});
    other[0] ^= std::byte{1};
    cr_assert(!secret_in(longer) && !secret_in(other));
}

// A request for an unknown list is recorded like a hello.
Test(secret_exchange, a_request_of_an_unknown_list_is_kept_like_a_hello) {
    Requesters world(2);
    class Deaf final : public Joins::Port {
        bool may_be(const wire::ByteString&, const Source&) const override { return true; }
        bool same_host(const wire::ByteString&, const wire::ByteString&) const override { return true; }
        void reply(const Source&, Bytes) override { cr_assert_fail("no member gets a reply"); }
        Result<Outbox::Peer> peer(const wire::ByteString&) override { return Outbox::Peer{1}; }
        void queue_message(std::vector<Outbox::Peer>, wire::ByteString) override {}
        void foreign_version(const Source&, std::uint8_t) override {}
    } port;
    Joins joins(port);
    joins.on_datagram(wire::encode(request_of(1, 2)), source_of(Rank{1}), kStart);
    cr_assert_eq(joins.foreign_datagrams(), 0U);
    joins.on_datagram(wire::encode(wire::KeyReply{{77, 3}, Rank{1}, 1, sealed(kSecret)}), source_of(Rank{1}),
                      kStart);
    cr_assert_eq(joins.foreign_datagrams(), 1U);
}
