#include "ofi/surveyor.h"

#include <algorithm>

namespace mcastcoll::ofi {
namespace {

// The first waits for a connection, and busy hosts answer late.
constexpr unsigned kEchoes = 8;
// Surveys at the same time; more are as good as not answered.
constexpr std::size_t kMostTasks = 64;

}  // namespace

Surveyor::Surveyor(wire::ByteString own_address, Send send)
    : own_address_(std::move(own_address)), send_(std::move(send)) {}

bool Surveyor::Task::over() const {
    return std::all_of(targets.begin(), targets.end(),
                       [](const Target& target) { return target.echoes >= kEchoes; });
}

void Surveyor::on_survey(const wire::Survey& survey, Nanoseconds now) {
    if (tasks_.size() == kMostTasks) return;
    Task& task = tasks_.emplace_back();
    task.id = survey.id;
    task.from = survey.from;
    task.deadline = now + kPatience;
    for (const wire::ByteString& address : survey.targets) task.targets.push_back({.address = address});
    for (Target& target : task.targets) send_echo(target, now);
}

void Surveyor::send_echo(Target& target, Nanoseconds now) {
    target.stamp = next_stamp_++;
    target.sent_at = now;
    send_(target.address, wire::encode(wire::Echo{own_address_, target.stamp, false}));
}

void Surveyor::on_echo(const wire::Echo& echo, Nanoseconds now) {
    if (!echo.back) {
        send_(echo.from, wire::encode(wire::Echo{own_address_, echo.stamp, true}));
        return;
    }
    for (Task& task : tasks_)
        for (Target& target : task.targets) {
            if (target.stamp != echo.stamp || target.address != echo.from) continue;
            target.stamp = 0;
            target.best_ns =
                std::min(target.best_ns, static_cast<std::uint64_t>((now - target.sent_at).value));
            if (++target.echoes < kEchoes) send_echo(target, now);
            return;
        }
}

bool Surveyor::take_result(Nanoseconds now, wire::ByteString& to, wire::Surveyed& result) {
    const auto found = std::find_if(tasks_.begin(), tasks_.end(),
                                    [&](const Task& task) { return task.over() || task.deadline <= now; });
    if (found == tasks_.end()) return false;
    to = found->from;
    result = {found->id, own_address_, {}};
    for (const Target& target : found->targets) result.round_trips_ns.push_back(target.best_ns);
    tasks_.erase(found);
    return true;
}

Nanoseconds Surveyor::next_deadline() const {
    Nanoseconds next = kNever;
    for (const Task& task : tasks_) next = std::min(next, task.over() ? Nanoseconds{} : task.deadline);
    return next;
}

}  // namespace mcastcoll::ofi
