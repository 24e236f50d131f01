#include "group/join.h"

#include <cerrno>
#include <new>

#include "group/welcome.h"

namespace mcastcoll::group {
namespace {

// Grace period before a hello for another join of the same list is taken for this join.
constexpr Nanoseconds kMiscountGrace = Nanoseconds::from_ms(300);
// Interval between hellos once the parent has acknowledged one.
constexpr std::int64_t kSlowMs = 500;
// Longest interval between hellos before the parent has acknowledged one.
constexpr std::int64_t kFastMs = 20;

}  // namespace

Join::Join(const wire::JoinId& id, Rank self, std::size_t members, Nanoseconds deadline, JoinPort& port)
    : id_(id),
      self_(self),
      members_(members),
      deadline_(deadline),
      port_(port),
      gathering_(self, static_cast<std::uint32_t>(members)),
      survey_(id, self, members, port) {}

void Join::start(Nanoseconds now) {
    gathering_.add(port_.own_hello());
    if (gathering_.span() > 1) adopt_at_ = now + kMiscountGrace;
    if (!leads()) return send_hello(now);
    forward_if_complete(now);
}

void Join::send_hello(Nanoseconds now) {
    // Hellos are frequent at first, then slow. A parent stores hellos before its join is called, but not
    // before its process runs.
    const std::int64_t wait_ms =
        acknowledged_ ? kSlowMs : std::min<std::int64_t>(std::int64_t{1} << std::min(attempt_, 5U), kFastMs);
    hello_at_ = now + Nanoseconds::from_ms(wait_ms);
    try {
        wire::Hello hello = port_.own_hello();
        hello.gathered = gathering_.complete() ? 1 : 0;
        port_.send_hello(parent(), attempt_++, wire::encode(hello));
    } catch (const std::bad_alloc&) {
        // An unsent hello equals a lost one: the next hello follows.
    }
}

void Join::on_hello(const wire::Hello& hello, Nanoseconds now) {
    if (state_ == State::hello && hello.members == members_ && gathers(hello.rank) && take(hello))
        forward_if_complete(now);
}

// Returns false if the hello does not count now. A child with a subtree receives a request for
// the gathered hellos.
bool Join::take(const wire::Hello& hello) {
    if (hello.gathered == 0 || gathering_.of(hello.rank) != nullptr) return false;
    if (hello_span(hello.rank, hello.members) > 1) {
        const auto peer = port_.peer(hello.peer.private_address);
        if (!peer) return false;
        port_.queue_message(
            {peer.value()},
            wire::encode_collect({hello.id, id_.sequence, gathering_.of(self_)->peer.private_address}));
    }
    gathering_.add(hello);
    return true;
}

void Join::on_gathered_hellos(const wire::GatheredHellos& gathered, Nanoseconds now) {
    if (state_ != State::hello || gathering_.complete()) return;
    gathering_.add_from(gathered.from, gathered.hellos);
    forward_if_complete(now);
}

// Rank 0 starts the survey. Any other member with children announces its complete subtree to its parent.
void Join::forward_if_complete(Nanoseconds now) {
    if (!gathering_.complete()) return;
    adopt_at_ = kNever;
    if (!leads()) {
        acknowledged_ = false;
        attempt_ = 0;
        return send_hello(now);
    }
    survey_.lead(gathering_.hellos(), deadline_ - Nanoseconds::from_ms(1), now);
    state_ = State::surveying;
}

void Join::on_collect(const wire::MessageHead& head) {
    const auto peer = port_.peer(head.answer_to);
    if (!peer || state_ != State::hello || !gathering_.complete()) return;
    acknowledged_ = true;
    std::vector<wire::Hello> hellos = gathering_.hellos();
    hellos.erase(hellos.begin());  // the parent has this member's own hello
    send_gathered(peer.value(), {head.answer_id(), self_, std::move(hellos)});
}

// Sends the hellos in messages of limited length, splitting lists that are too long in half.
void Join::send_gathered(Outbox::Peer to, wire::GatheredHellos gathered) {
    if (gathered.hellos.size() <= wire::kMaxGatheredHellos) {
        wire::ByteString message = wire::encode(gathered);
        if (message.size() <= wire::kPartBytes || gathered.hellos.size() == 1)
            return port_.queue_message({to}, std::move(message));
    }
    const auto middle = gathered.hellos.begin() + static_cast<std::ptrdiff_t>(gathered.hellos.size() / 2);
    wire::GatheredHellos half{gathered.id, gathered.from, {middle, gathered.hellos.end()}};
    gathered.hellos.erase(middle, gathered.hellos.end());
    send_gathered(to, std::move(gathered));
    send_gathered(to, std::move(half));
}

bool Join::hello_is_of_another(const wire::Hello& hello) const {
    const wire::Hello* known = gathering_.of(hello.rank);
    return known != nullptr && known->peer != hello.peer;
}

bool Join::has_sent(const wire::Hello& hello) const {
    const wire::Hello* known = gathering_.of(hello.rank);
    return known != nullptr && known->peer == hello.peer && known->id.sequence >= hello.id.sequence;
}

// Accepts for this join hellos with another sequence. A restarted process numbers its joins from zero: if
// every missing child has sent a hello for the same list, but for another unfinished join, these joins must
// be the same.
void Join::adopt_miscounted(Nanoseconds now) {
    adopt_at_ = now + kMiscountGrace;
    const std::vector<Rank> missing = gathering_.missing();
    for (const Rank rank : missing)
        if (port_.miscounted_hello(rank) == nullptr) return;
    bool adopted = false;
    for (const Rank rank : missing)
        if (take(*port_.miscounted_hello(rank))) adopted = true;
    if (adopted)
        port_.explain(
            "took hellos of other joins of the same members for this join: a restarted member numbers its "
            "joins from 0");
    forward_if_complete(now);
}

void Join::on_timeout(Nanoseconds now) {
    if (!under_way()) return;
    if (deadline_ <= now) {
        error_ = ETIMEDOUT;
        state_ = State::failed;
        return;
    }
    survey_.on_timeout(now);
    if (state_ == State::hello && adopt_at_ <= now) adopt_miscounted(now);
    if (state_ == State::hello && hello_at_ <= now) send_hello(now);
}

Nanoseconds Join::next_deadline() const {
    if (!under_way()) return kNever;
    const Nanoseconds next = std::min(survey_.next_deadline(), deadline_);
    return state_ == State::hello ? std::min({next, hello_at_, adopt_at_}) : next;
}

bool Join::accept(const wire::Agreement& agreement) {
    if (leads() || !acceptable(agreement)) return false;
#ifndef MCC_BREAK_WELCOME_ONCE  // mutation for the simulator: a second welcome is accepted
    if (state_ != State::hello) return false;
#endif
    welcome();
    return true;
}

void Join::fail(int error) {
    state_ = State::failed;
    if (leads()) port_.withdraw();
    inform_children(error);
}

// Informs the children, each by the id under which it knows the join. An unreachable child has its own
// deadline.
void Join::inform_children(int error) {
    std::map<wire::JoinId, std::vector<Outbox::Peer>> peers;
    for (const wire::Hello* hello : gathering_.received())
        if (auto peer = port_.peer(hello->peer.private_address)) peers[hello->id].push_back(peer.value());
    for (auto& [id, to] : peers)
        port_.queue_message(std::move(to), wire::encode(wire::Answer{wire::JoinKind::abort, id,
                                                                     static_cast<std::uint32_t>(error)}));
}

}  // namespace mcastcoll::group
