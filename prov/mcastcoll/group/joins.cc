#include "group/joins.h"

#include <algorithm>
#include <cerrno>

#include "base/result.h"

namespace mcastcoll::group {
namespace {

// Maximum number of answers per interval to hellos of other protocol versions. A member repeats its hello
// until an answer arrives.
constexpr std::uint32_t kForeignAnswers = 64;
constexpr Nanoseconds kForeignInterval = Nanoseconds::from_ms(1000);

bool awaits_welcome(const Group& group) {
    return group.state() == Group::State::hello;
}

bool was_given_up(const Group& group) {
    return !group.formed() && !awaits_welcome(group);
}

// Passes a join event to this group.
void bring(Joins::Member& member, Nanoseconds now, FunctionRef<void(Join&)> it) {
    member.within(now, [&] { member.core().on_join(it, now); });
}

}  // namespace

const std::vector<Joins::Member*>& Joins::members_of(std::uint64_t list) const {
    static const std::vector<Member*> none;
    const auto found = members_.find(list);
    return found == members_.end() ? none : found->second;
}

Joins::Member* Joins::find(const wire::JoinId& id) const {
    for (Member* member : members_of(id.list_hash))
        if (member->join_id() == id) return member;
    return nullptr;
}

Joins::Member* Joins::find_called(const wire::JoinId& id) const {
    for (Member* member : members_of(id.list_hash))
        if (member->core().id() == id) return member;
    return nullptr;
}

const wire::JoinKey* Joins::key_of(std::uint64_t list) {
    const std::vector<Member*>& members = members_of(list);
    return members.empty() ? memory_.key_of(list) : &members.front()->key();
}

// Verifies a stored hello, which any host may have sent: its list was unknown at arrival.
bool Joins::is_of(Member& member, const PendingHello& pending) {
    return wire::proven(pending.datagram, member.key()) &&
           member.comes_from(pending.hello.rank, pending.source);
}

void Joins::deliver_pending_hellos(Member& member, Nanoseconds now) {
    memory_.pending_hellos().visit([&](const PendingHello& pending) {
        if (pending.hello.id == member.join_id() && is_of(member, pending))
            member.core().on_join([&](Join& join) { join.on_hello(pending.hello, now); }, now);
    });
}

void Joins::remove(Member& member) noexcept {
    const std::uint64_t list = member.join_id().list_hash;
    if (const auto found = members_.find(list); found != members_.end()) {
        std::erase(found->second, &member);
        if (found->second.empty()) members_.erase(found);
    }
    attempt([&] { memory_.keep_key(list, member.key()); });
    attempt([&] { memory_.keep_hellos(list, member.core().join().received()); });
    if (member.core().error() == 0) return;
    attempt([&] {
        const Group& group = member.core();
        memory_.keep_failed_group(
            {group.ended_message(), member.members(), group.roster(), group.of_group(group.ended_message())});
    });
}

void Joins::remember_ended(Member& member, int error) {
    memory_.keep_failed(member.join_id(), error);
    if (!member.core().join().leads()) memory_.keep_given_up(member.join_id(), member.members()->front());
}

void Joins::on_datagram(Bytes datagram, const Source& source, Nanoseconds now) {
    const auto list = wire::peek_list(datagram);
    if (!list) {
        if (const auto foreign = wire::decode_foreign_hello(datagram)) on_foreign(*foreign, source, now);
        return;
    }
    const wire::JoinKey* const key = key_of(*list);
    if (key == nullptr) return on_unknown(datagram, source);
    const auto proven = wire::proven(datagram, *key);
    if (!proven) {
        ++foreign_datagrams_;
        return;
    }
    const Bytes bytes = *proven;
    const auto kind = wire::join_kind(bytes);
    if (kind == wire::JoinKind::hello) {
        if (auto hello = wire::decode_hello(bytes)) on_hello(*hello, datagram, source, now);
    } else if (kind == wire::JoinKind::ack || kind == wire::JoinKind::abort) {
        if (auto answer = wire::decode_answer(bytes)) on_answer(*answer, source, now);
    } else if (kind == wire::JoinKind::survey) {
        on_survey(wire::decode_survey(bytes), &Join::on_survey, source, now);
    } else if (kind == wire::JoinKind::echo) {
        on_survey(wire::decode_echo(bytes), &Join::on_echo, source, now);
    } else if (kind == wire::JoinKind::surveyed) {
        on_survey(wire::decode_surveyed(bytes), &Join::on_surveyed, source, now);
    } else if (const auto waiting = wire::decode_waiting(bytes)) {
        on_waiting(*waiting, source, now);
    }
}

// Stores a hello, or the key request that precedes a hello, for a future join. The tag is verified when the
// join is called.
void Joins::on_unknown(Bytes datagram, const Source& source) {
    auto hello = wire::decode_hello(datagram);
    if (const auto request = wire::decode_key_request(datagram)) {
        hello.emplace();
        hello->id = request->id, hello->rank = request->rank, hello->members = request->members;
    } else if (!hello && datagram.size() > wire::kTagBytes)
        hello = wire::decode_hello(datagram.first(datagram.size() - wire::kTagBytes));
    if (!hello) {
        ++foreign_datagrams_;
        return;
    }
    ++early_datagrams_;
    memory_.pending_hellos().keep({*hello, {datagram.begin(), datagram.end()}, source});
}

void Joins::reply(const Source& source, const wire::Answer& answer) {
    port_.reply(source, prove(answer.id, wire::encode(answer)));
}

// Appends the tag under the list's key. The list must be known here.
wire::ByteString Joins::prove(const wire::JoinId& id, Bytes datagram) {
    return wire::prove(datagram, *key_of(id.list_hash));
}

void Joins::on_hello(const wire::Hello& hello, Bytes datagram, const Source& source, Nanoseconds now) {
    if (Member* member = find(hello.id); member != nullptr && !was_given_up(member->core())) {
        const Join& known = member->core().join();
        if (!known.gathers(hello.rank) || member->members()->size() != hello.members) return;
        if (!member->comes_from(hello.rank, source)) {
            ++foreign_datagrams_;
            return;
        }
        if (!member->core().formed() || !known.hello_is_of_another(hello)) {
            reply(source, {wire::JoinKind::ack, hello.id, 0});
            return bring(*member, now, [&](Join& join) { join.on_hello(hello, now); });
        }
        member->within(now, [&] { member->core().suspect(hello.rank, now); });
    }
    if (const wire::Answer* failed = memory_.failed(hello.id)) return reply(source, *failed);
    // This process has not called the join yet. The hello is stored but not acknowledged, so the sender
    // repeats the hello in case this process drops it.
    memory_.pending_hellos().keep({hello, {datagram.begin(), datagram.end()}, source});
}

void Joins::on_foreign(const wire::ForeignHello& foreign, const Source& source, Nanoseconds now) {
    if (now - foreign_since_ >= kForeignInterval) {
        foreign_since_ = now;
        foreign_answers_ = 0;
    }
    if (foreign_answers_++ >= kForeignAnswers) return;
    port_.reply(source,
                wire::encode(wire::Answer{wire::JoinKind::abort, foreign.id, ENOPROTOOPT}, foreign.version));
    if (!foreign_seen_) port_.foreign_version(source, foreign.version);
    foreign_seen_ = true;
}

void Joins::on_answer(const wire::Answer& answer, const Source& source, Nanoseconds now) {
    Member* member = find(answer.id);
    if (member == nullptr || !awaits_welcome(member->core()) || member->core().join().leads()) return;
    if (!member->comes_from(member->core().join().parent(), source))
        ++foreign_datagrams_;
    else if (answer.kind == wire::JoinKind::ack)
        bring(*member, now, [](Join& join) { join.on_ack(); });
    else
        member->within(now, [&] { member->core().on_abort(answer.error, kNoRank, now); });
}

template <typename Message>
void Joins::on_survey(const std::optional<Message>& message, void (Join::*take)(const Message&, Nanoseconds),
                      const Source& source, Nanoseconds now) {
    Member* member = message ? find(message->head.id) : nullptr;
    if (member != nullptr && awaits_welcome(member->core()) && member->comes_from(message->head.from, source))
        bring(*member, now, [&](Join& join) { (join.*take)(*message, now); });
    else
        ++foreign_datagrams_;
}

// Answers for a failed group, closed or not, because the sender may still wait for this member. A group that
// has not formed may have the number of an earlier failed group, because a restarted process numbers its
// joins anew.
void Joins::on_waiting(const wire::Waiting& waiting, const Source& source, Nanoseconds now) {
    if (Member* member = find_called(waiting.id); member != nullptr && member->core().formed()) {
        if (member->comes_from(waiting.from, source))
            member->within(now, [&] { member->core().on_waiting(waiting.from); });
        return;
    }
    JoinMemory::FailedGroup* failed = memory_.failed_group(waiting.id);
    const std::size_t rank = index_of(waiting.from);
    if (failed == nullptr || rank >= failed->members->size()) return;
    if (!port_.may_be((*failed->members)[rank], source) || !failed->roster.answer(waiting.from)) return;
#ifndef MCC_BREAK_DEATH_PASSED_ON  // mutation for the simulator: failures are not announced
    if (const auto peer = port_.peer(failed->roster.address(index_of(waiting.from))))
        port_.queue_message({peer.value()}, prove(waiting.id, failed->sealed));
#endif
}

bool Joins::on_join_message(Bytes sealed, Nanoseconds now) {
    const auto list = wire::peek_list(sealed);
    const wire::JoinKey* const key = list ? key_of(*list) : nullptr;
    const auto proven = key != nullptr ? wire::proven(sealed, *key) : std::nullopt;
    if (!proven) return false;
    const Bytes message = *proven;
    if (const auto part = wire::decode_part(message)) {
        welcome(
            part->head, [&](Group& group) { group.on_part(*part, now); }, now);
    } else if (const auto here = wire::decode_host_welcome(message)) {
        welcome(
            here->head, [&](Group& group) { group.on_host_welcome(*here, now); }, now);
    } else if (const auto head = wire::decode_collect(message)) {
        on_gathering(
            head->to, [&](Join& join) { join.on_collect(*head); }, now);
    } else if (const auto gathered = wire::decode_gathered_hellos(message)) {
        on_gathering(
            gathered->id, [&](Join& join) { join.on_gathered_hellos(*gathered, now); }, now);
    } else if (const auto ended = wire::decode_ended(message)) {
        Member* const member = find_called(ended->id);
        // While this member still joins, the message may be a late message of a failed group with the same
        // number.
        const bool is_late =
            member != nullptr && !member->core().formed() && memory_.failed_group(ended->id) != nullptr;
        if (member != nullptr && !is_late && member->core().takes_join_messages())
            member->within(now, [&] { member->core().on_abort(ended->error, ended->lost, now); });
    } else if (const auto answer = wire::decode_answer(message);
               answer && answer->kind == wire::JoinKind::abort) {
        Member* const member = find(answer->id);
        if (member != nullptr && member->core().takes_join_messages())
            member->within(now, [&] { member->core().on_abort(answer->error, kNoRank, now); });
    } else {
        return *key && on_group_message(message, now);
    }
    return true;
}

// Handles a message that a member of a formed group has tagged with the group's key.
bool Joins::on_group_message(Bytes message, Nanoseconds now) {
    if (message.size() < wire::kTagBytes) return false;
    const auto ended = wire::decode_ended(message.first(message.size() - wire::kTagBytes));
    if (!ended) return false;
    Member* const member = find_called(ended->id);
    if (member != nullptr && member->core().is_of_group(message))
        member->within(now, [&] { member->core().on_abort(ended->error, ended->lost, now); });
    return true;
}

void Joins::on_gathering(const wire::JoinId& id, FunctionRef<void(Join&)> it, Nanoseconds now) {
    Member* member = find(id);
    if (member != nullptr && awaits_welcome(member->core())) bring(*member, now, it);
}

void Joins::welcome(const wire::MessageHead& head, FunctionRef<void(Group&)> it, Nanoseconds now) {
    Member* member = find(head.to);
    if (member != nullptr && !was_given_up(member->core())) member->within(now, [&] { it(member->core()); });
    if (member != nullptr && !was_given_up(member->core())) return;
    // This join is over, but the leader still counts on this member and would wait until its own deadline.
    // The leader is informed once, and only at an address where it can be, because any process may send a
    // welcome.
    const auto leader = memory_.take_given_up(head.to);
    if (!leader || !port_.same_host(*leader, head.answer_to)) return;
    if (auto peer = port_.peer(head.answer_to))
        port_.queue_message({peer.value()},
                            prove(head.to, wire::encode(wire::Ended{head.answer_id(), ECANCELED})));
}

bool Joins::comes_late(const wire::Hello& hello) const {
    return memory_.comes_late(hello) ||
           std::ranges::any_of(members_of(hello.id.list_hash),
                               [&](Member* member) { return member->core().join().has_sent(hello); });
}

const wire::Hello* Joins::miscounted_hello(Member& member, Rank rank) {
    const PendingHello* found = memory_.pending_hellos().latest([&](const PendingHello& pending) {
        return pending.hello.id.list_hash == member.join_id().list_hash && pending.hello.rank == rank &&
               is_of(member, pending) && !comes_late(pending.hello);
    });
    return found == nullptr ? nullptr : &found->hello;
}

const PendingHello* Joins::stray_hello(Member& member) {
    return memory_.pending_hellos().latest([&](const PendingHello& pending) {
        const wire::Hello& hello = pending.hello;
        return key_of(hello.id.list_hash) == nullptr && hello.members == member.members()->size() &&
               member.core().join().misses(hello.rank) &&
               port_.may_be((*member.members())[index_of(hello.rank)], pending.source);
    });
}

}  // namespace mcastcoll::group
