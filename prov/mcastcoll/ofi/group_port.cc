#include "ofi/group_port.h"

#include <fmt/core.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "ofi/endpoint.h"
#include "ofi/group.h"
#include "ofi/station.h"
#include "ports/team_level.h"

namespace mcastcoll::ofi {
namespace {

void write_error(fid_eq* queue, std::uint32_t event, fid_mc& mc, int error, std::uint64_t data) {
    fi_eq_err_entry entry{};
    entry.fid = &mc.fid;
    entry.context = mc.fid.context;
    entry.data = data;
    entry.err = error;
    // libfabric's own queues take errors under this flag, which has no public name.
    constexpr std::uint64_t kErrorEvent = std::uint64_t{1} << 60;
    if (fi_eq_write(queue, event, &entry, sizeof entry, kErrorEvent) < 0)
        log_line(Level::warn, "the event queue did not take the error of a group");
}

}  // namespace

GroupPort::GroupPort(Station& station, const JoinPlan& plan, Group& group)
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
    fid_mc& mc = *group_.mc();
    fid_eq* const queue = station_.endpoint().eq;
    if (error != 0) return write_error(queue, FI_JOIN_COMPLETE, mc, error, 0);
    fi_eq_entry good{&mc.fid, mc.fid.context, 0};
    if (fi_eq_write(queue, FI_JOIN_COMPLETE, &good, sizeof good, 0) < 0)
        log_line(Level::warn, "the event queue did not take FI_JOIN_COMPLETE");
}

void GroupPort::remember_ended(int error) {
    station_.joins().remember_ended(group_, error);
}

// There is no event of libfabric's for it but an error entry, as for a connection that breaks.
void GroupPort::failed(int error, Rank lost) {
    write_error(station_.endpoint().eq, FI_SHUTDOWN, *group_.mc(), error,
                lost == kNoRank ? FI_ADDR_NOTAVAIL : index_of(lost));
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
