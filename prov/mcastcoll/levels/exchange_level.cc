#include "levels/exchange_level.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace mcastcoll::levels {
namespace {

constexpr std::uint32_t kMostMembers = 256;

std::uint32_t window_of(const ExchangeConfig& config) {
    return std::clamp(config.memory_bytes / std::max(1U, config.members), config.least_window_bytes,
                      config.most_window_bytes);
}

std::uint32_t piece_of(const ExchangeConfig& config) {
    const auto by_message = config.message_bytes - static_cast<std::uint32_t>(wire::kHeaderBytes);
    const auto by_window = window_of(config) / 2 - static_cast<std::uint32_t>(kPieceCost);
    return std::min(by_message, by_window) / kElementMultiple * kElementMultiple;
}

}  // namespace

ExchangeLevel::ExchangeLevel(const ExchangeConfig& config)
    : config_(config),
      window_bytes_(window_of(config)),
      piece_bytes_(piece_of(config)),
      policy_(config.policy),
      courier_({.key = config.key,
                .epoch = config.epoch,
                .self = config.self,
                .members = config.members,
                .window_bytes = window_bytes_,
                .piece = wire::Kind::block,
                .grant = wire::Kind::block_grant}),
      peers_(config.members) {
    assert(config.members <= kMostMembers && config.self < config.members);
    assert(piece_bytes_ > 0 && window_bytes_ >= 2 * cost_of(piece_bytes_));
}

ExchangeLevel::Peer& ExchangeLevel::peer(std::uint32_t rank) {
    if (!peers_[rank]) {
        peers_[rank] = std::make_unique<Peer>();
        peers_[rank]->rank = rank;
        peers_[rank]->credit = courier_.new_credit();
    }
    return *peers_[rank];
}

ExchangeLevel::Course& ExchangeLevel::new_course() {
    if (spare_courses_.empty()) {
        courses_.push_back(std::make_unique<Course>());
    } else {
        courses_.push_back(std::move(spare_courses_.back()));
        spare_courses_.pop_back();
    }
    return *courses_.back();
}

void ExchangeLevel::enqueue(Peer& one) {
    if (one.queued) return;
    one.queued = true;
    ready_.push_back(&one);
}

int ExchangeLevel::post(Leg& leg, Nanoseconds now) {
    if (error_ != 0) return error_;
    if (!serves(leg.kind)) return ENOSYS;
    Course& course = new_course();
    course.leg = &leg;
    course.word = leg.number << (kWordBits - kMessageBits) | static_cast<std::uint64_t>(leg.kind);
    course.complete = course.due = 0;
    course.dirty = course.moved = true;
    course.watched = false;
    course.still_since = now;
    Schedule& schedule = course.schedule;
    schedule.begin(leg, choose(policy_, leg.kind, leg.bytes, config_.members), config_.self, config_.members);
    course.open_sends = schedule.sends.size();
    course.open_receives = schedule.receives.size();
    for (std::uint32_t i = 0; i < schedule.receives.size(); ++i)
        if (const Inbound& in = schedule.receives[i]; in.own == nullptr) {
            Peer& from = peer(in.from);
            from.receives.push_back({&course, i});
            enqueue(from);
        }
    for (std::uint32_t i = 0; i < schedule.sends.size(); ++i) {
        Peer& to = peer(schedule.sends[i].to);
        to.sends.push_back({&course, i});
        enqueue(to);
    }
    posted_below_ = leg.number + 1;
    moved_ = true;
    check_kept();
    return 0;
}

bool ExchangeLevel::progress(Nanoseconds now) {
    bool moved = moved_;
    moved_ = false;
    for (std::size_t i = 0; i < courses_.size();) {
        Course& course = *courses_[i];
        if (course.dirty) moved |= advance_receives(course);
        if (course.moved) {
            course.moved = course.watched = false;
            course.still_since = now;
        } else if (!course.watched && now - course.still_since >= config_.watch_delay) {
            watch_still(course);
        }
        if (course.open_sends > 0 || course.open_receives > 0) {
            ++i;
            continue;
        }
        settle(i);
        moved = true;
    }
    if (failure_ != 0) fail(failure_, now);
    return moved;
}

// Nothing of it is expected and nothing to be sent.
void ExchangeLevel::settle(std::size_t index) {
    Course& course = *courses_[index];
    course.schedule.finish(*course.leg, config_.self, config_.members);
    course.leg->done = true;
    spare_courses_.push_back(std::move(courses_[index]));
    courses_.erase(courses_.begin() + static_cast<std::ptrdiff_t>(index));
}

// Nobody has moved for a while: whoever this member waits for may be gone.
void ExchangeLevel::watch_still(Course& course) {
    course.watched = true;
    for (const Inbound& in : course.schedule.receives)
        if (!in.finished && in.own == nullptr) courier_.watch(in.from);
    for (const Outbound& out : course.schedule.sends)
        if (!out.finished) courier_.watch(out.to);
}

// Only who cannot send all that is expected of it with what it was granted.
bool ExchangeLevel::grant_due(const Peer& one) const {
    const Credit& credit = one.credit;
    if (credit.used - credit.told < window_bytes_ / 4) return false;
    const std::uint64_t granted = credit.told + window_bytes_ - credit.used;
    std::uint64_t expected = 0;
    for (const Turn& turn : one.receives) {
        const Inbound& in = turn.course->schedule.receives[turn.index];
        const std::uint64_t rest = in.bytes - in.taken;
        expected += rest + (rest + piece_bytes_ - 1) / piece_bytes_ * kPieceCost;
        if (expected > granted) return true;
    }
    return false;
}

bool ExchangeLevel::next_piece(Peer& to, Outgoing& message) {
    if (to.sends.empty()) return false;
    const Turn turn = to.sends.front();
    Course& course = *turn.course;
    Outbound& out = course.schedule.sends[turn.index];
    const std::size_t bytes = std::min<std::size_t>(out.bytes - out.sent, piece_bytes_);
    if (course.complete < out.after || !to.credit.may_send(bytes)) return false;
    BlockMap::Place place = out.map.place(out.sent);
    if (place.run >= bytes) {
        message.payload = Bytes(out.data + place.offset, bytes);
    } else {
        staging_.resize(piece_bytes_);
        for (std::size_t at = 0; at < bytes;) {
            place = out.map.place(out.sent + at);
            const std::size_t run = std::min(place.run, bytes - at);
            std::memcpy(staging_.data() + at, out.data + place.offset, run);
            at += run;
        }
        message.payload = Bytes(staging_).first(bytes);
    }
    courier_.make_piece(to.rank, to.credit, course.word << kMessageBits | out.message, course.leg->bytes,
                        out.sent, message);
    out.sent += bytes;
    course.moved = moved_ = true;
    if (out.sent == out.bytes) {
        out.finished = true;
        --course.open_sends;
        to.sends.pop_front();
    }
    const Schedule::Order order = course.schedule.order;
    if (order == Schedule::Order::in_place || order == Schedule::Order::in_turn) course.dirty = true;
    return true;
}

// Everybody in turn, a piece each. Who has nothing to be sent now is enqueued again by what changes that.
bool ExchangeLevel::poll_outgoing(Outgoing& message) {
    while (!ready_.empty()) {
        Peer& to = *ready_.front();
        ready_.pop_front();
        to.queued = false;
        if (grant_due(to)) {
            courier_.make_grant(to.rank, to.credit, message);
            enqueue(to);
            return true;
        }
        if (next_piece(to, message)) {
            enqueue(to);
            return true;
        }
    }
    return false;
}

bool ExchangeLevel::needs(std::uint32_t rank) const {
    const Peer* one = peers_[rank].get();
    return one != nullptr && (!one->sends.empty() || !one->receives.empty() || one->credit.missed());
}

std::uint32_t ExchangeLevel::awaited() const {
    for (const auto& course : courses_)
        for (const Inbound& in : course->schedule.receives)
            if (!in.finished && in.own == nullptr) return in.from;
    return kNotThere;
}

Nanoseconds ExchangeLevel::next_deadline() const {
    Nanoseconds next = kNever;
    for (const auto& course : courses_)
        if (!course->watched) next = std::min(next, course->still_since + config_.watch_delay);
    return next;
}

void ExchangeLevel::fail(int error, Nanoseconds) {
    if (error_ != 0) return;
    error_ = error;
    for (const auto& one : peers_) {
        if (!one) continue;
        one->sends.clear();
        one->receives.clear();
        one->pieces.clear();
    }
    ready_.clear();
    for (const auto& course : courses_) {
        course->leg->done = true;
        course->leg->error = error;
    }
    courses_.clear();
    spare_bytes_.clear();
    moved_ = true;
}

}  // namespace mcastcoll::levels
