#include "ofi/group.h"

#include "base/clock.h"
#include "ofi/group_table.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {
namespace {

constexpr Nanoseconds kSendRetryInterval = Nanoseconds::from_us(200);

}  // namespace

void warn_of_no_shared_memory(std::string_view why) noexcept {
    static std::atomic_flag said;
    provider::log_line(said.test_and_set() ? provider::Level::info : provider::Level::warn,
                       "no shared memory between the processes of a host: {}; they use the network instead",
                       why);
}

Group::Group(Facilities& shared, GroupTable& groups, fi_ops& calls, JoinRequest join_request)
    : fid_mc{{FI_CLASS_MC, join_request.context, &calls}, join_request.token},
      shared_(shared),
      groups_(groups),
      join_request_(std::move(join_request)),
      multicast_(shared.multicast, shared.settings.address_scheme, join_request_.name(),
                 *join_request_.members,
                 [this](const std::vector<wire::ByteString>& listeners) {
                     return groups_.find_address_to_borrow(join_request_.parent, listeners);
                 }),
      account_(*shared.messenger),
      secret_(join_request_.munge
                  ? std::make_unique<ports::MungeSecret>(*join_request_.munge, join_request_.members,
                                                         shared.secrets, shared.service_socket)
                  : nullptr),
      core_(new group::Group(join_request_.core, *this)) {}

void Group::start(Nanoseconds now) {
    if (secret_ && !secret_->secret()) return await_secret(now);
    enter(now);
    if (secret_) await_secret(now);
}

void Group::enter(Nanoseconds now) {
    shared_.joins.add(*this);
    entered_ = true;
    core_->start(now);
    shared_.joins.deliver_pending_hellos(*this, now);
    shared_.joins.forget_pending_hellos(join_id());
}

// Until the secret is known, a placeholder group exists that sends no hellos but has a deadline and can be
// closed.
void Group::await_secret(Nanoseconds now) {
    if (core_->state() != group::Group::State::hello) return secret_.reset();
    secret_->progress(now);
    if (const std::string why = secret_->why_not(); !why.empty()) {
        warn(
            "FI_MCASTCOLL_KEY_FILE=munge: no secret from MUNGE (munged must run on all hosts, all processes "
            "must run as the same user): " +
            why);
        core_->on_abort(FI_ENOKEY, kNoRank, now);
    }
    if (entered_ || !secret_->secret()) return;
    explain("received the secret of rank 0 by MUNGE");
    join_request_.settle(*secret_->secret());
    core_.reset(new group::Group(join_request_.core, *this));
    enter(now);
}

void Group::pump(Nanoseconds now) {
    if (secret_) await_secret(now);
    core_->pump(now);
}

std::array<GroupKey, 2> Group::keys() const {
    const group::LevelSet& levels = core_->levels();
    return {levels.key(), levels.engine() != nullptr ? levels.engine()->config().key : levels.key()};
}

// The application's list shows where each member's service address may be. Datagrams from other addresses are
// rejected.
bool Group::comes_from(Rank rank, const group::Source& source) {
    if (index_of(rank) >= size() || rank == self()) return false;
    if (!shared_.service_socket.may_be((*join_request_.members)[index_of(rank)], source)) return false;
    sources_.insert_or_assign(rank, source);
    return true;
}

Nanoseconds Group::next_deadline() const {
    const Nanoseconds next = std::min(core_->next_deadline(), secret_ ? secret_->next_deadline() : kNever);
    // No event reports that the kernel has room for multicasts again.
    return multicast_.can_send() ? next : std::min(next, monotonic_now() + kSendRetryInterval);
}

void Group::within(Nanoseconds now, FunctionRef<void()> body) noexcept {
    wake();
    const int thrown = provider::guard([&] { return body(), 0; });
    if (thrown != 0) core_->break_down(-thrown, now);
}

void Group::on_datagram(MutableBytes bytes, const transport::SocketAddress& source, Nanoseconds now) {
    const group::LevelSet& levels = core_->levels();
    const std::size_t sender = index_of(wire::peek_sender(bytes));
    const auto& segment = levels.placement().segment();
    const bool known =
        levels.engine() != nullptr && sender < segment.size() && sender != levels.placement().segment_self();
    if (known && !multicast_.may_come_from(segment[sender], source)) return;
    if (core_->on_datagram(bytes, now) && known) multicast_.came_from(segment[sender], source);
}

ssize_t Group::why_not_open() const {
    switch (core_->state()) {
        case group::Group::State::hello:
        case group::Group::State::forming:
            return -FI_EOPBADSTATE;
        case group::Group::State::joined:
        case group::Group::State::failed:
            return 0;
        case group::Group::State::over:
            return -FI_EOTHER;
        case group::Group::State::closed:
            break;
    }
    return -FI_ESHUTDOWN;
}

ssize_t Group::submit(const Request& request, int* over, Nanoseconds now) {
    if (const ssize_t refused = why_not_open(); refused != 0) return refused;
    if (over != nullptr && core_->error() != 0) return -core_->error();
    if (in_team_ || operations_.full()) return -FI_EAGAIN;
    if (over == nullptr && !shared_.endpoint.tx->reserve()) return -FI_EAGAIN;
    const std::uint32_t cookie = operations_.open({request.context, request.flags, over, request.copies});
    // Another thread may have entered the team since the first test (enter_team()).
    if (in_team_) {
        operations_.close(cookie);
        if (over == nullptr) shared_.endpoint.tx->release();
        return -FI_EAGAIN;
    }
    // A broadcast's root sends the original buffer and needs no copy back. In a reduce or a gather only the
    // root has a result.
    const bool roots = request.root == self();
    const bool rooted = request.kind == Kind::reduce || request.kind == Kind::gather;
    if (request.copies && (rooted ? !roots : request.kind == Kind::broadcast && roots))
        request.copies->targets.clear();
    int refused = FI_EOTHER;
    wake();
    const int thrown = provider::guard([&] { return core_->submit({request, cookie}, refused, now), 0; });
    // A refusal code of 0 means that the operation is open: later errors are reported by its completion.
    const bool open = refused == 0;
    if (thrown != 0) {
        // The operation may have started or not. The group ends, and with it every operation that has
        // started. If this one is not open, the caller receives only the refusal.
        int unreported = 0;
        if (!open) operations_.at(cookie).over = &unreported;
        core_->break_down(-thrown, now);
        refused = -thrown;
    }
    if (open) return 0;
    if (operations_.at(cookie).is_open) operations_.close(cookie);
    if (over == nullptr) shared_.endpoint.tx->release();
    return -refused;
}

int Group::close(Nanoseconds now) {
    if (!operations_.empty() || in_team_) return -FI_EBUSY;
    team_alone_ = false;
    core_->close(now);
    return 0;
}

std::optional<ports::BorrowedAddress> Group::share_address(const std::vector<wire::ByteString>& members) {
    if (!core_->joined()) return {};
    const group::LevelSet& levels = core_->levels();
    const engine::Engine* const engine = levels.engine();
    if (engine == nullptr || levels.placement().segments().size() > 1 || !multicast_.own_address() ||
        engine->phase() != engine::Phase::active || engine->graph().receiver_count() == 0)
        return {};
    return multicast_.share_address(members, levels.placement(), levels.key());
}

void Group::add_counters(engine::Counters& sum, group::LevelCounters& levels) const {
    if (core_->formed()) core_->levels().add_counters(sum, levels);
    sum.bad_sender += multicast_.wrong_sources();
}

wire::Hello Group::own_hello() const {
    wire::Hello hello;
    hello.id = join_id();
    hello.rank = self();
    hello.members = static_cast<std::uint32_t>(size());
    hello.gmac = shared_.settings.group.gmac ? 1 : 0;
    hello.peer.private_address = shared_.messenger->address();
    hello.peer.watch_point = shared_.watch.own_point();
    hello.peer.place = shared_.place;
    shared_.multicast.offer(hello);
    return hello;
}

void Group::send(Rank to, std::uint32_t attempt, Bytes datagram) {
    const auto known = sources_.find(to);
    if (known == sources_.end()) return send_hello(to, attempt, datagram);
    shared_.service_socket.reply(known->second, wire::prove(datagram, key()));
}

void Group::keyed() {
    groups_.keyed(*this);
}

void Group::changed() {
    team_alone_ = core_->state() == group::Group::State::joined && core_->levels().host() != nullptr &&
                  core_->levels().placement().hosts() == 1 && shared_.settings.stall_timeout_s == 0;
    shared_.report_due = true;
}

void Group::write_error(std::uint32_t event, int error, std::uint64_t data) {
    fi_eq_err_entry entry{};
    entry.fid = &fid;
    entry.context = fid.context;
    entry.data = data;
    entry.err = error;
    // The event queues of libfabric's own providers accept errors with this flag, which has no public name.
    constexpr std::uint64_t kErrorEvent = std::uint64_t{1} << 60;
    const ssize_t written = fi_eq_write(shared_.endpoint.eq, event, &entry, sizeof entry, kErrorEvent);
    if (written < 0)
        provider::succeeds([&] {
            warn(
                fmt::format("cannot write the error '{}' to the event queue: {}; the application does not "
                            "receive this error",
                            fi_strerror(error), fi_strerror(static_cast<int>(-written))));
        });
}

std::string Group::describe_stray_hello() {
    if (secret_ && !secret_->secret())
        return fmt::format(
            "rank {} at {} has not sent the secret: check that FI_MCASTCOLL_KEY_FILE=munge: is set there and "
            "that its list of members is the same{}{}",
            index_of(secret_->requested_from()), address_of(secret_->requested_from()),
            secret_->refused().empty() ? "" : "; an answer was refused: ", secret_->refused());
    const auto* stray = shared_.joins.stray_hello(*this);
    if (stray == nullptr) return "";
    return fmt::format(
        "rank {} at {} sends hellos for a group that is unknown here: check that all members have the same "
        "FI_MCASTCOLL_KEY_FILE, FI_MCASTCOLL_SECURITY and list of members",
        index_of(stray->hello.rank), transport::RendezvousSource::from_bytes(stray->source).to_string());
}

void Group::join_ended(int error) {
    if (error != 0) return write_error(FI_JOIN_COMPLETE, error, 0);
    fi_eq_entry good{&fid, fid.context, 0};
    const ssize_t written = fi_eq_write(shared_.endpoint.eq, FI_JOIN_COMPLETE, &good, sizeof good, 0);
    if (written < 0)
        provider::succeeds([&] {
            warn(
                fmt::format("cannot write FI_JOIN_COMPLETE to the event queue: {}; the application is not "
                            "informed that the group has joined",
                            fi_strerror(static_cast<int>(-written))));
        });
}

// libfabric has no event for the failure of a group, so an error entry is written, as for a broken
// connection.
void Group::failed(int error, Rank lost) {
    write_error(FI_SHUTDOWN, error, lost == kNoRank ? FI_ADDR_NOTAVAIL : index_of(lost));
}

void Group::completed(std::uint64_t cookie, int error) {
    const OpenOperation operation = operations_.close(static_cast<std::uint32_t>(cookie));
    if (operation.copies && error == 0) operation.copies->deliver();
    if (operation.over != nullptr) {
        *operation.over = error;
        return;
    }
    const BoundEndpoint& endpoint = shared_.endpoint;
    const fi_tx_attr* const usual = endpoint.info->tx_attr;
    const std::uint64_t flags = operation.flags | (usual != nullptr ? usual->op_flags : 0);
    if (error != 0 || !endpoint.selective || (flags & FI_COMPLETION) != 0)
        endpoint.tx->complete(operation.context, error);
    else
        endpoint.tx->release();
}

std::string Group::address_of(Rank rank) const {
    const wire::ByteString& bytes = (*join_request_.members)[index_of(rank)];
    const auto address = transport::SocketAddress::from_bytes(bytes);
    return address ? fmt::format("{}", address.value())
                   : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void Group::wake() noexcept {
    groups_.wake(*this);
}

}  // namespace mcastcoll::ofi
