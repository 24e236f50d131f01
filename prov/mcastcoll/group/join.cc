#include "group/join.h"

#include <cerrno>
#include <new>

#include "group/welcome.h"

namespace mcastcoll::group {
namespace {

// How long greetings for the same list but another join are not believed to mean this one.
constexpr Nanoseconds kMiscountGrace = Nanoseconds::from_ms(300);
// Between two greetings of a member that rank 0 knows of.
constexpr std::int64_t kPatientMs = 500;
// The longest wait between two of one that it may not know of.
constexpr std::int64_t kImpatientMs = 20;

}  // namespace

Join::Join(const wire::JoinId& id, Rank self, std::size_t members, Nanoseconds deadline, JoinPort& port)
    : id_(id),
      self_(self),
      members_(members),
      deadline_(deadline),
      port_(port),
      survey_(id, self, members, port) {}

void Join::start(Nanoseconds now) {
    if (!leads()) return greet(now);
    greet_at_ = now + kMiscountGrace;
    guests_.resize(members_);
    on_hello(port_.own_hello(), now);
}

void Join::greet(Nanoseconds now) {
    // Quick at first, then patient: a leader that has not called join yet keeps greetings, one that is not
    // there cannot.
    const std::int64_t wait_ms =
        acknowledged_ ? kPatientMs
                      : std::min<std::int64_t>(std::int64_t{1} << std::min(attempt_, 5U), kImpatientMs);
    greet_at_ = now + Nanoseconds::from_ms(wait_ms);
    try {
        port_.greet(attempt_++, wire::encode(port_.own_hello()));
    } catch (const std::bad_alloc&) {
        // One that is not sent is as good as lost: the next one comes.
    }
}

void Join::on_hello(const wire::Hello& hello, Nanoseconds now) {
    if (!leads() || state_ != State::greeting) return;
    if (hello.members != members_ || index_of(hello.rank) >= members_) return;
    std::optional<wire::Hello>& known = guests_[index_of(hello.rank)];
    if (known) return;
    known = hello;
    if (++guest_count_ == members_) survey(now);
}

bool Join::greeted_by_another(const wire::Hello& hello) const {
    if (index_of(hello.rank) >= guests_.size()) return false;
    const std::optional<wire::Hello>& known = guests_[index_of(hello.rank)];
    return known && known->peer != hello.peer;
}

// A process that was started again counts its joins from zero. So when everybody greets, but not for the same
// join, and goes on doing so, it is the same join all the same.
void Join::adopt_miscounted(Nanoseconds now) {
    greet_at_ = now + kMiscountGrace;
    for (std::size_t rank = 0; rank < guests_.size(); ++rank)
        if (!guests_[rank] && port_.miscounted_hello(rank_of(rank)) == nullptr) return;
    for (std::size_t rank = 0; rank < guests_.size(); ++rank)
        if (!guests_[rank]) guests_[rank] = *port_.miscounted_hello(rank_of(rank));
    port_.explain("a member was started again and counts its joins anew");
    guest_count_ = guests_.size();
    survey(now);
}

void Join::survey(Nanoseconds now) {
    survey_.lead(guests_, deadline_ - Nanoseconds::from_ms(1), now);
    state_ = State::surveying;
}

void Join::on_timeout(Nanoseconds now) {
    if (!under_way()) return;
    if (deadline_ <= now) {
        error_ = ETIMEDOUT;
        state_ = State::failed;
        return;
    }
    survey_.on_timeout(now);
    if (state_ == State::greeting && greet_at_ <= now) leads() ? adopt_miscounted(now) : greet(now);
}

Nanoseconds Join::next_deadline() const {
    if (!under_way()) return kNever;
    const Nanoseconds next = std::min(survey_.next_deadline(), deadline_);
    return state_ == State::greeting ? std::min(next, greet_at_) : next;
}

bool Join::accept(const wire::Welcome& welcome) {
    if (leads() || !acceptable(welcome, members_)) return false;
#ifndef MCC_BREAK_WELCOME_ONCE  // the simulator must notice: a welcome is taken again
    if (state_ != State::greeting) return false;
#endif
    state_ = State::welcomed;
    return true;
}

void Join::fail(int error) {
    state_ = State::failed;
    if (!leads()) return;
    port_.withdraw();
    tell_guests(error);
}

// All who have greeted, each by the id that it knows the join by. Who cannot be reached has a deadline.
void Join::tell_guests(int error) {
    std::map<wire::JoinId, std::vector<Outbox::Peer>> peers;
    for (std::size_t rank = 1; rank < guests_.size(); ++rank) {
        if (!guests_[rank]) continue;
        if (auto peer = port_.peer(guests_[rank]->peer.private_address))
            peers[guests_[rank]->id].push_back(peer.value());
    }
    for (auto& [id, to] : peers)
        port_.tell(std::move(to),
                   wire::encode(wire::Answer{wire::JoinKind::abort, id, static_cast<std::uint32_t>(error)}));
}

}  // namespace mcastcoll::group
