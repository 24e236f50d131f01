// One process of the simulated groups: hands what comes to the group that it is for, as the station does.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "group/places.h"
#include "group_world.h"

namespace mcastcoll::sim {
namespace {

// More means that something is due again at once.
constexpr int kMostTurns = 10'000;

}  // namespace

GroupProcess::GroupProcess(GroupWorld& world, Address self)
    : world_(world), self_(self), most_under_way_(world.options().network.messages_at_once) {}

std::uint32_t GroupProcess::counted() const {
    return self_ == address_of(number(), 0) ? world_.options().counted : 0;
}

bool GroupProcess::has_multicast() const {
    return !world_.options().no_multicast.contains(number());
}

wire::Peer GroupProcess::as_peer() const {
    wire::Peer peer;
    peer.private_address.resize(sizeof self_);
    std::memcpy(peer.private_address.data(), &self_, sizeof self_);
    if (has_multicast()) peer.multicast_source = peer.private_address;
    topology::Place place;
    const std::string site = "site" + std::to_string(world_.site_of(number()));
    place.set_named(topology::Level::site, site);
    place.set_named(topology::Level::segment, site);
    place.set_named(topology::Level::host, "host" + std::to_string(world_.host_of(number())));
    peer.place = group::encode_place(place);
    return peer;
}

Address GroupProcess::at(const wire::ByteString& private_address) {
    Address address = 0;
    std::memcpy(&address, private_address.data(), std::min(private_address.size(), sizeof address));
    return address;
}

GroupMember* GroupProcess::member(const wire::JoinId& id) {
    for (const auto& one : members_)
        if (one->id() == id) return one.get();
    return nullptr;
}

GroupMember* GroupProcess::called(const wire::JoinId& id) {
    for (const auto& one : members_)
        if (one->core().id() == id) return one.get();
    return nullptr;
}

void GroupProcess::call(std::uint32_t group) {
    members_.push_back(std::make_unique<GroupMember>(*this, group + 1, world_.options().groups[group]));
    GroupMember& called = *members_.back();
    called.call();
    for (const wire::Hello& early : early_)
        if (early.id == called.id()) called.core().on_hello(early, world_.now());
}

void GroupProcess::on_datagram(Bytes bytes) {
    if (const auto hello = wire::decode_hello(bytes)) return on_hello(*hello);
    const Nanoseconds now = world_.now();
    if (const auto answer = wire::decode_answer(bytes)) {
        GroupMember* const one = member(answer->id);
        if (one == nullptr || !one->core().greeting() || one->core().leads()) return;
        if (*wire::join_kind(bytes) == wire::JoinKind::ack)
            one->core().on_ack();
        else
            one->core().on_abort(answer->error, kNoRank, now);
    } else if (const auto survey = wire::decode_survey(bytes)) {
        on_survey(survey->head,
                  [&](group::Group& core) { core.on_survey(&group::Join::on_survey, *survey, now); });
    } else if (const auto echo = wire::decode_echo(bytes)) {
        on_survey(echo->head, [&](group::Group& core) { core.on_survey(&group::Join::on_echo, *echo, now); });
    } else if (const auto surveyed = wire::decode_surveyed(bytes)) {
        on_survey(surveyed->head,
                  [&](group::Group& core) { core.on_survey(&group::Join::on_surveyed, *surveyed, now); });
    } else if (const auto waiting = wire::decode_waiting(bytes)) {
        if (GroupMember* const one = called(waiting->id)) return one->core().on_waiting(waiting->from);
        const auto failed = failed_.find(waiting->id);
        if (failed != failed_.end()) failed->second->core().on_waiting(waiting->from);
    }
}

void GroupProcess::on_survey(const wire::SurveyHead& head, FunctionRef<void(group::Group&)> take) {
    GroupMember* const one = member(head.id);
    const bool heard = world_.options().silent != number();
    if (heard && one != nullptr && one->core().greeting()) take(one->core());
}

void GroupProcess::on_hello(const wire::Hello& hello) {
    const std::uint32_t from = world_.options().groups[hello.id.list_hash - 1].members[index_of(hello.rank)];
    if (GroupMember* const one = member(hello.id); one != nullptr && !one->core().given_up()) {
        if (!one->core().leads()) return;
        if (!one->core().formed_with_another(hello)) {
            world_.datagram(number(), from, wire::encode(wire::Answer{wire::JoinKind::ack, hello.id, 0}));
            return one->core().on_hello(hello, world_.now());
        }
        one->core().doubt(hello.rank, world_.now());
    }
    if (const auto ended = ended_.find(hello.id); ended != ended_.end())
        return world_.datagram(number(), from,
                               wire::encode(wire::Answer{wire::JoinKind::abort, hello.id,
                                                         static_cast<std::uint32_t>(ended->second)}));
    std::erase_if(early_,
                  [&](const wire::Hello& early) { return early.id == hello.id && early.rank == hello.rank; });
    early_.push_back(hello);
}

const wire::Hello* GroupProcess::miscounted_hello(const wire::JoinId& id, Rank rank) const {
    const auto found = std::find_if(early_.rbegin(), early_.rend(), [&](const wire::Hello& early) {
        return early.id.list_hash == id.list_hash && early.rank == rank;
    });
    return found == early_.rend() ? nullptr : &*found;
}

void GroupProcess::on_message(Bytes message) {
    if (const auto kind = wire::join_kind(message)) return on_word(*kind, message);
    for (const auto& one : members_)
        if (one->has_key(wire::peek_key(message))) return one->core().on_message(message, world_.now());
}

void GroupProcess::on_word(wire::JoinKind kind, Bytes word) {
    const Nanoseconds now = world_.now();
    if (const auto welcome = wire::decode_welcome(word)) {
        GroupMember* const one = member(welcome->id);
        if (one != nullptr && !one->core().given_up()) return one->core().on_welcome(*welcome, now);
        // The leader counts on a member whose join is over.
        if (ended_.contains(welcome->id))
            tell({at(welcome->peers.front().private_address)},
                 wire::encode(wire::Ended{{welcome->id.list_hash, welcome->sequence}, ECANCELED}),
                 group::Outbox::kNobody);
    } else if (kind == wire::JoinKind::abort) {
        const auto answer = wire::decode_answer(word);
        if (GroupMember* const one = member(answer->id)) one->core().on_abort(answer->error, kNoRank, now);
    } else if (const auto ended = wire::decode_ended(word)) {
        if (GroupMember* const one = called(ended->id)) one->core().on_abort(ended->error, ended->lost, now);
    }
}

void GroupProcess::on_multicast(const wire::ByteString& address, Bytes datagram) {
    for (const auto& one : members_)
        if (one->hears(address) && one->has_key(wire::peek_key(datagram)))
            one->core().on_datagram(datagram, world_.now());
}

void GroupProcess::on_peer_lost(Address peer, int error) {
    for (const auto& one : members_) one->core().on_peer_lost(peer, error, "it is gone");
}

void GroupProcess::turn() {
    const Nanoseconds now = world_.now();
    bool again = true;
    for (int turns = 0; again; ++turns) {
        if (turns == kMostTurns) return world_.complain(members_.front()->state() + ": moves for ever");
        again = false;
        next_deadline_ = kNever;
        for (const auto& one : members_) {
            one->core().pump(now);
            again |= one->work();
            if (one->core().next_deadline() <= now) again = true;
            next_deadline_ = std::min(next_deadline_, one->core().next_deadline());
        }
        outbox_.flush(*this);
    }
    for (auto& one : members_)
        if (one->core().done()) {
            if (one->core().error() != 0) failed_.emplace(one->core().id(), one.get());
            world_.retire(std::move(one));
        }
    std::erase(members_, nullptr);
}

void GroupProcess::send_now(group::Outbox::Peer to, Bytes message) {
    ++under_way_;
    world_.message(self_, to, message);
}

void GroupProcess::tell(std::vector<group::Outbox::Peer> to, wire::ByteString word,
                        group::Outbox::Owner owner) {
    outbox_.post(std::move(to), std::move(word), owner);
}

void GroupProcess::sent() {
    --under_way_;
    outbox_.flush(*this);
}

std::optional<Nanoseconds> GroupProcess::round_trip(std::uint64_t one, std::uint64_t other) const {
    const auto found = round_trips_.find({one, other});
    return found == round_trips_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace mcastcoll::sim
