#include "ofi/group_port.h"

#include <fmt/core.h>
#include <rdma/fi_errno.h>

#include "ofi/group.h"
#include "ofi/group_events.h"
#include "ofi/live_station.h"
#include "ports/team_level.h"

namespace mcastcoll::ofi {

GroupPort::GroupPort(LiveStation& station, const JoinPlan& plan, Group& group)
    : station_(station),
      plan_(plan),
      group_(group),
      multicast_(station.multicast(), station.settings().plan, name_of(plan), plan.members,
                 [this](const std::vector<wire::ByteString>& listeners) {
                     return station_.groups().find_loan(plan_.parent, listeners);
                 }) {}

wire::Hello GroupPort::own_hello() const {
    return station_.own_hello(plan_.id, plan_.self, plan_.members.size());
}

void GroupPort::greet(std::uint32_t attempt, Bytes hello) {
    station_.greetings().greet(plan_.members.front(), attempt, hello);
}

void GroupPort::send(Rank to, std::uint32_t attempt, Bytes datagram) {
    const auto known = sources_.find(to);
    if (known != sources_.end())
        station_.greetings().reply(known->second, datagram);
    else
        station_.greetings().greet(plan_.members[index_of(to)], attempt, datagram);
}

const wire::Hello* GroupPort::miscounted_hello(Rank rank) {
    return station_.joins().miscounted_hello(group_, rank);
}

std::optional<Nanoseconds> GroupPort::round_trip(std::uint64_t one, std::uint64_t other) const {
    return station_.round_trips().find(one, other);
}

void GroupPort::keep_round_trip(std::uint64_t one, std::uint64_t other, Nanoseconds round_trip) {
    station_.round_trips().keep(one, other, round_trip);
}

Result<fi_addr_t> GroupPort::peer(const wire::ByteString& private_address) {
    return station_.messenger().peer(private_address);
}

int GroupPort::tell(std::vector<fi_addr_t> to, wire::ByteString word) {
    if (word.size() > kMessageBytes) return FI_EMSGSIZE;
    station_.messenger().tell(std::move(to), std::move(word), plan_.token);
    return 0;
}

void GroupPort::tell_for_good(std::vector<fi_addr_t> to, wire::ByteString word) {
    station_.messenger().tell(std::move(to), std::move(word));
}

void GroupPort::withdraw() {
    station_.messenger().withdraw(plan_.token);
}

bool GroupPort::can_send() const {
    return station_.messenger().can_send();
}

void GroupPort::send_message(fi_addr_t to, const wire::HeaderBytes& header, Bytes payload) {
    station_.messenger().send(to, header, payload);
}

void GroupPort::watch(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) {
    station_.watch().watch(peer, watch_point, now);
}

void GroupPort::look_at(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) {
    station_.watch().look_at(peer, watch_point, now);
}

Result<std::unique_ptr<group::HostLevel>> GroupPort::open_host(const group::HostMembers& members) {
    return open_team_level(members, OpenOperations::kMost);
}

void GroupPort::keyed() {
    station_.groups().keyed(group_);
}

void GroupPort::changed() {
    group_.set_shortcut();
    station_.groups_changed();
}

void GroupPort::join_ended(int error) {
    report_join(station_.endpoint().eq, *group_.mc(), error);
}

void GroupPort::remember_ended(int error) {
    station_.joins().remember_ended(group_, error);
}

void GroupPort::failed(int error, Rank lost) {
    report_failure(station_.endpoint().eq, *group_.mc(), error, lost);
}

void GroupPort::completed(std::uint64_t cookie, int error) {
    group_.completed(static_cast<std::uint32_t>(cookie), error);
}

void GroupPort::explain(std::string_view sentence) {
    log_line(Level::info, "{}: {}", name_of(plan_), sentence);
}

void GroupPort::warn(std::string_view sentence) {
    log_line(Level::warn, "{}: {}", name_of(plan_), sentence);
}

std::string GroupPort::address_of(Rank rank) const {
    const wire::ByteString& bytes = plan_.members[index_of(rank)];
    const auto address = SocketAddress::from_bytes(bytes);
    return address ? fmt::format("{}", address.value())
                   : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string GroupPort::text_of(int error) const {
    return fi_strerror(error);
}

}  // namespace mcastcoll::ofi
