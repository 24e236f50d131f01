// What a group needs of its endpoint: the station's sockets, messages, watch and shared memory, and the
// application's queues.
#include <fmt/core.h>
#include <rdma/fi_errno.h>

#include "ofi/group.h"
#include "ofi/live_station.h"

namespace mcastcoll::ofi {

wire::Hello Group::own_hello() const {
    return station_.own_hello(plan_.id, plan_.self, plan_.members.size());
}

void Group::greet(std::uint32_t attempt, Bytes hello) {
    station_.greet(plan_.members.front(), attempt, hello);
}

void Group::send(Rank to, std::uint32_t attempt, Bytes datagram) {
    const auto known = sources_.find(to);
    if (known != sources_.end())
        station_.reply(known->second, datagram);
    else
        station_.greet(plan_.members[index_of(to)], attempt, datagram);
}

const wire::Hello* Group::miscounted_hello(Rank rank) {
    return station_.joins().miscounted_hello(*this, rank);
}

std::optional<Nanoseconds> Group::round_trip(std::uint64_t one, std::uint64_t other) const {
    return station_.round_trips().find(one, other);
}

void Group::keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds round_trip) {
    station_.round_trips().keep(one, other, round_trip);
}

Result<fi_addr_t> Group::peer(const wire::ByteString& private_address) {
    return station_.messenger().peer(private_address);
}

int Group::tell(std::vector<fi_addr_t> to, wire::ByteString word) {
    if (word.size() > kMessageBytes) return FI_EMSGSIZE;
    station_.messenger().tell(std::move(to), std::move(word), plan_.token);
    return 0;
}

void Group::tell_for_good(std::vector<fi_addr_t> to, wire::ByteString word) {
    station_.messenger().tell(std::move(to), std::move(word));
}

void Group::withdraw() {
    station_.messenger().withdraw(plan_.token);
}

bool Group::can_send() const {
    return station_.messenger().can_send();
}

void Group::send_message(fi_addr_t to, const wire::HeaderBytes& header, Bytes payload) {
    station_.messenger().send(to, header, payload);
}

void Group::watch(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) {
    station_.watch(peer, watch_point, now);
}

void Group::look_at(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) {
    station_.look_at(peer, watch_point, now);
}

// Who knows the leader's process and the group's key knows the name; others can find what a crash leaves
// behind.
Result<std::unique_ptr<group::HostLevel>> Group::open_host(const group::HostMembers& members) {
    const auto leader = decode_watch_point(members.leader_point);
    host::TeamConfig config;
    config.key = static_cast<std::uint64_t>(members.key);
    config.name = host::Segment::name_of(
        leader ? leader.value().pid : 0, leader ? leader.value().start_time : 0,
        fmt::format("{:016x}{:08x}", config.key, static_cast<std::uint32_t>(members.epoch)));
    config.self = members.self;
    config.size = members.size;
    config.clusters = members.clusters;
    auto team = members.self == 0 ? host::Team::create(config) : host::Team::attach(config);
    if (!team) return team.error();
    return std::unique_ptr<group::HostLevel>(std::make_unique<TeamLevel>(std::move(team).value(), kMostOpen));
}

void Group::keyed() {
    station_.on_keyed(*this);
}

void Group::changed() {
    const bool works = core_.joined() && core_.error() == 0 && !core_.closed();
    shortcut_ = works && core_.levels().host() != nullptr && core_.levels().placement().hosts() == 1 &&
                station_.settings().stall_timeout_s == 0;
    station_.groups_changed();
}

void Group::join_ended(int error) {
    station_.report_join(mc_.fid, error);
}

void Group::remember_ended(int error) {
    station_.joins().remember_ended(*this, error);
}

void Group::failed(int error, Rank lost) {
    station_.report_failure(mc_.fid, error, lost);
}

void Group::completed(std::uint64_t cookie, int error) {
    const OpenOperation operation = operations_.close(static_cast<std::uint32_t>(cookie));
    if (operation.copies && error == 0) operation.copies->deliver();
    if (operation.over != nullptr)
        *operation.over = error;
    else
        station_.complete(operation.context, operation.flags, error);
}

void Group::explain(std::string_view sentence) {
    station_.log(Level::info, "{}: {}", name(), sentence);
}

void Group::warn(std::string_view sentence) {
    station_.log(Level::warn, "{}: {}", name(), sentence);
}

std::string Group::address_of(Rank rank) const {
    const wire::ByteString& bytes = plan_.members[index_of(rank)];
    const auto address = SocketAddress::from_bytes(bytes);
    return address ? fmt::format("{}", address.value())
                   : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string Group::text_of(int error) const {
    return fi_strerror(error);
}

}  // namespace mcastcoll::ofi
