#include "group/surveyor.h"

namespace mcastcoll::group {
namespace {

// Delay before an unanswered echo is repeated; doubled each time.
constexpr std::int64_t kFirstWaitMs = 20;
constexpr std::uint32_t kMaxDoublings = 5;

}  // namespace

Surveyor::Surveyor(const wire::JoinId& id, Rank self, const wire::Survey& survey, JoinPort& port,
                   Nanoseconds now)
    : id_(id), self_(self), survey_(survey.head), port_(port), deadline_(now + kTimeout) {
    for (const wire::Survey::Target& whom : survey.targets)
        send_echo(targets_.emplace_back(Target{.whom = whom}), now);
    pump(now);
}

void Surveyor::send_echo(Target& target, Nanoseconds now) {
    target.stamp = next_stamp_++;
    target.sent_at = now;
    // Repeats an echo no earlier than twice the shortest round trip seen.
    const Nanoseconds known{
        target.best_ns == wire::kNotMeasured ? 0 : static_cast<std::int64_t>(2 * target.best_ns)};
    const auto wait = Nanoseconds::from_ms(kFirstWaitMs << std::min(target.attempt, kMaxDoublings));
    target.again_at = now + std::max(wait, known);
    const wire::SurveyHead head{{id_.list_hash, target.whom.sequence}, id_.sequence, self_};
    port_.send(target.whom.rank, target.attempt++, wire::encode(wire::Echo{head, target.stamp, false}));
}

void Surveyor::on_echo(const wire::Echo& echo, Nanoseconds now) {
    for (Target& target : targets_) {
        if (over_ || target.stamp != echo.stamp || target.whom.rank != echo.head.from) continue;
        target.stamp = 0;
        target.attempt = 0;
        target.best_ns = std::min(target.best_ns, static_cast<std::uint64_t>((now - target.sent_at).value));
        if (++target.echoes < kEchoes)
            send_echo(target, now);
        else
            target.again_at = kNever;
        return pump(now);
    }
}

void Surveyor::pump(Nanoseconds now) {
    if (over_) return;
    over_ = deadline_ <= now || std::all_of(targets_.begin(), targets_.end(),
                                            [](const Target& target) { return target.echoes >= kEchoes; });
    for (Target& target : targets_)
        if (!over_ && target.again_at <= now) send_echo(target, now);
}

wire::Surveyed Surveyor::result() const {
    wire::Surveyed result{{{survey_.id.list_hash, survey_.sequence}, id_.sequence, self_}, {}};
    for (const Target& target : targets_) result.round_trips_ns.push_back(target.best_ns);
    return result;
}

Nanoseconds Surveyor::next_deadline() const {
    if (over_) return kNever;
    Nanoseconds next = deadline_;
    for (const Target& target : targets_) next = std::min(next, target.again_at);
    return next;
}

}  // namespace mcastcoll::group
