// Datagrams of joins: greetings and what answers them, each only from where its sender can be.
#include <rdma/fi_errno.h>

#include "ofi/live_station.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

// Greetings of other versions that are answered in an interval: a member repeats its own until one is.
constexpr std::uint32_t kForeignAnswers = 64;
constexpr Nanoseconds kForeignInterval = Nanoseconds::from_ms(1000);

}  // namespace

void LiveStation::on_greeting(Bytes bytes, const RendezvousSource& source, Nanoseconds time) {
    const auto kind = wire::join_kind(bytes);
    if (kind == wire::JoinKind::hello) {
        if (auto hello = wire::decode_hello(bytes)) on_hello(*hello, source, time);
    } else if (kind == wire::JoinKind::ack || kind == wire::JoinKind::abort) {
        if (auto answer = wire::decode_answer(bytes)) on_answer(*answer, source, time);
    } else if (kind == wire::JoinKind::survey) {
        on_survey_datagram(wire::decode_survey(bytes), source, &group::Join::on_survey, time);
    } else if (kind == wire::JoinKind::echo) {
        on_survey_datagram(wire::decode_echo(bytes), source, &group::Join::on_echo, time);
    } else if (kind == wire::JoinKind::surveyed) {
        on_survey_datagram(wire::decode_surveyed(bytes), source, &group::Join::on_surveyed, time);
    } else if (const auto waiting = wire::decode_waiting(bytes)) {
        on_waiting(*waiting, source, time);
    } else if (const auto foreign = wire::decode_foreign_hello(bytes)) {
        if (time - foreign_since_ >= kForeignInterval) foreign_since_ = time, foreign_answers_ = 0;
        if (foreign_answers_++ >= kForeignAnswers) return;
        rendezvous_->reply(
            source,
            wire::encode(wire::Answer{wire::JoinKind::abort, foreign->id, FI_ENOPROTOOPT}, foreign->version));
        if (!foreign_seen_)
            log(Level::warn,
                "{} greets in version {} of the join, and this is {}: all members need the same release",
                source.to_string(), foreign->version, wire::kJoinVersion);
        foreign_seen_ = true;
    }
}

void LiveStation::on_answer(const wire::Answer& answer, const RendezvousSource& source, Nanoseconds time) {
    Group* group = find(answer.id);
    if (group == nullptr || !group->core().greeting() || group->core().leads()) return;
    if (!group->comes_from(rank_of(0), source))
        ++foreign_datagrams_;
    else if (answer.kind == wire::JoinKind::ack)
        group->core().on_ack();
    else
        within(*group, time, [&] { group->core().on_abort(answer.error, kNoRank, time); });
}

template <typename Message>
void LiveStation::on_survey_datagram(const std::optional<Message>& message, const RendezvousSource& source,
                                     void (group::Join::*take)(const Message&, Nanoseconds),
                                     Nanoseconds time) {
    Group* group = message ? find(message->head.id) : nullptr;
    if (group != nullptr && group->core().greeting() && group->comes_from(message->head.from, source))
        within(*group, time, [&] { group->core().on_survey(take, *message, time); });
    else
        ++foreign_datagrams_;
}

// Of a group that has failed, closed or not: it is the sender's part that may still wait.
void LiveStation::on_waiting(const wire::Waiting& waiting, const RendezvousSource& source, Nanoseconds time) {
    if (Group* group = find_called(waiting.id)) {
        if (group->core().formed() && group->comes_from(waiting.from, source))
            within(*group, time, [&] { group->core().on_waiting(waiting.from); });
        return;
    }
    JoinMemory::FailedGroup* failed = joins_.failed_group(waiting.id);
    const std::size_t rank = index_of(waiting.from);
    if (failed == nullptr || rank >= failed->members.size()) return;
    if (!Rendezvous::may_be(failed->members[rank], source) || !failed->roster.answer(waiting.from)) return;
    messenger_->tell({failed->roster.at(static_cast<std::uint32_t>(rank)).peer}, wire::encode(failed->word));
}

void LiveStation::on_hello(const wire::Hello& hello, const RendezvousSource& source, Nanoseconds time) {
    wire::Answer answer{wire::JoinKind::ack, hello.id, 0};
    if (Group* group = find(hello.id); group != nullptr && !group->core().given_up()) {
        if (!group->core().leads() || group->size() != hello.members) return;
        if (!group->comes_from(hello.rank, source)) {
            ++foreign_datagrams_;
            return;
        }
        if (!group->core().formed_with_another(hello)) {
            rendezvous_->reply(source, wire::encode(answer));
            within(*group, time, [&] { group->core().on_hello(hello, time); });
            return;
        }
        within(*group, time, [&] { group->core().doubt(hello.rank, time); });
    }
    const wire::Answer* failed = joins_.failed(hello.id);
    if (failed != nullptr) {
        rendezvous_->reply(source, wire::encode(*failed));
        return;
    }
    // Our own join is still to come: keep the greeting, without an answer, so that it is repeated should we
    // lose it.
    joins_.keep_early(hello, source);
}

const wire::Hello* LiveStation::miscounted_hello(Group& group, Rank rank) const {
    const JoinMemory::EarlyHello* found = joins_.early().latest([&](const JoinMemory::EarlyHello& early) {
        return early.hello.id.list_hash == group.join_id().list_hash && early.hello.rank == rank &&
               group.comes_from(rank, early.source);
    });
    return found == nullptr ? nullptr : &found->hello;
}

}  // namespace mcastcoll::ofi
