#include "ofi/group.h"

#include <sys/mman.h>

#include <new>

#include "ofi/station.h"

namespace mcastcoll::ofi {
namespace {

std::byte* map_pages(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* const pages =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(pages);
}

void unmap_pages(std::byte* pages, std::size_t bytes) {
    if (pages != nullptr) ::munmap(pages, bytes);
}

group::Plan core_plan(const JoinPlan& plan, const Settings& settings) {
    const Nanoseconds stall = settings.stall_timeout_s == 0
                                  ? kNever
                                  : Nanoseconds::from_ms(std::int64_t{1000} * settings.stall_timeout_s);
    return {.id = plan.id,
            .self = plan.self,
            .members = plan.members.size(),
            .deadline = plan.deadline,
            .settings = plan.settings,
            .policy = settings.topology.policy(),
            .selection = settings.selection,
            .means = {.message_bytes = kMessageBytes,
                      .most_open = OpenOperations::kMost,
                      .memory = {map_pages, unmap_pages},
                      .stall_timeout = stall}};
}

}  // namespace

Group::Group(Station& station, JoinPlan plan)
    : station_(station),
      plan_(std::move(plan)),
      multicast_(station.multicast_, station.settings_.plan, plan_.name(), plan_.members,
                 [this](const std::vector<wire::ByteString>& listeners) {
                     return station_.groups_.find_loan(plan_.parent, listeners);
                 }),
      core_(core_plan(plan_, station.settings_), *this) {
    open_fid();
}

std::unique_lock<std::mutex> Group::lock() const {
    return station_.endpoint().lock();
}

Group::Keys Group::keys() const {
    if (!core_.formed()) return {};
    const group::LevelSet& levels = core_.levels();
    const engine::Engine* const engine = levels.engine();
    if (engine == nullptr || engine->config().key == levels.key()) return {{levels.key()}, 1};
    return {{levels.key(), engine->config().key}, 2};
}

// Members know from the application's list where each other's service addresses may be: who sends from
// elsewhere is nobody.
bool Group::comes_from(Rank rank, const group::Source& source) {
    if (index_of(rank) >= size() || rank == plan_.self) return false;
    if (!station_.greetings_.may_be(plan_.members[index_of(rank)], source)) return false;
    sources_.insert_or_assign(rank, source);
    return true;
}

void Group::within(Nanoseconds now, FunctionRef<void()> body) noexcept {
    const int thrown = guard([&] { return body(), 0; });
    if (thrown != 0) core_.break_down(-thrown, now);
}

void Group::on_datagram(Bytes bytes, const SocketAddress& source, Nanoseconds now) {
    const group::LevelSet& levels = core_.levels();
    const std::size_t sender = index_of(wire::peek_sender(bytes));
    const auto& segment = levels.placement().segment();
    const bool known =
        levels.engine() != nullptr && sender < segment.size() && sender != levels.placement().segment_self();
    if (known && !multicast_.may_come_from(segment[sender], source)) return;
    if (core_.on_datagram(bytes, now) && known) multicast_.came_from(segment[sender], source);
}

ssize_t Group::why_not_open() const {
    switch (core_.state()) {
        case group::Group::State::greeting:
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
    if (shortcut_.in_use() || operations_.full()) return -FI_EAGAIN;
    if (over == nullptr && !station_.endpoint().tx->reserve()) return -FI_EAGAIN;
    const std::uint32_t cookie = operations_.open({request.context, request.flags, over, request.copies});
    // What is sent is where it belongs.
    if (request.copies && request.kind == Kind::broadcast && request.root == plan_.self)
        request.copies->targets.clear();
    int refused = FI_EOTHER;
    const int thrown = guard([&] { return core_.submit({request, cookie}, refused, now), 0; });
    // From there on it is open, and what goes wrong is told by its completion.
    const bool open = refused == 0;
    if (thrown != 0) {
        // It may have begun or not: the group ends, and with it whatever has begun. If it is not open, the
        // caller hears that it was refused, and nothing else.
        int unheard = 0;
        if (!open) operations_.at(cookie).over = &unheard;
        core_.break_down(-thrown, now);
        refused = -thrown;
    }
    if (open) return 0;
    if (operations_.is_open(cookie)) operations_.close(cookie);
    if (over == nullptr) station_.endpoint().tx->release();
    return -refused;
}

int Group::close(Nanoseconds now) {
    if (!operations_.empty() || shortcut_.in_use()) return -FI_EBUSY;
    shortcut_.set(false);
    core_.close(now);
    return 0;
}

bool Group::can_lend() const {
    if (!core_.joined()) return false;
    const group::LevelSet& levels = core_.levels();
    const engine::Engine* const engine = levels.engine();
    return engine != nullptr && levels.placement().segments().size() == 1 && multicast_.own_address() &&
           engine->phase() == engine::Phase::active && engine->graph().hearing_count() > 0;
}

void Group::add_counters(engine::Counters& sum, group::LevelCounters& levels) const {
    if (core_.formed()) core_.levels().add_counters(sum, levels);
    sum.bad_sender += multicast_.wrong_sources();
}

// Greetings and words of the join.
wire::Hello Group::own_hello() const {
    return station_.own_hello(plan_.id, plan_.self, plan_.members.size());
}

void Group::greet(std::uint32_t attempt, Bytes hello) {
    station_.greetings_.greet(plan_.members.front(), attempt, hello);
}

void Group::send(Rank to, std::uint32_t attempt, Bytes datagram) {
    const auto known = sources_.find(to);
    if (known != sources_.end())
        station_.greetings_.reply(known->second, datagram);
    else
        station_.greetings_.greet(plan_.members[index_of(to)], attempt, datagram);
}

const wire::Hello* Group::miscounted_hello(Rank rank) {
    return station_.joins_.miscounted_hello(*this, rank);
}

group::RoundTrips& Group::round_trips() {
    return station_.round_trips_;
}

Result<fi_addr_t> Group::peer(const wire::ByteString& private_address) {
    return station_.messenger_->peer(private_address);
}

int Group::tell(std::vector<fi_addr_t> to, wire::ByteString word) {
    if (word.size() > kMessageBytes) return FI_EMSGSIZE;
    station_.messenger_->tell(std::move(to), std::move(word), plan_.token);
    return 0;
}

void Group::tell_for_good(std::vector<fi_addr_t> to, wire::ByteString word) {
    station_.messenger_->tell(std::move(to), std::move(word));
}

void Group::withdraw() {
    station_.messenger_->withdraw(plan_.token);
}

bool Group::can_send() const {
    return station_.messenger_->can_send();
}

void Group::send_message(fi_addr_t to, const wire::HeaderBytes& header, Bytes payload) {
    station_.messenger_->send(to, header, payload);
}

void Group::watch(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) {
    station_.watch_.watch(peer, watch_point, now);
}

void Group::look_at(fi_addr_t peer, const wire::ByteString& watch_point, Nanoseconds now) {
    station_.watch_.look_at(peer, watch_point, now);
}

Result<std::unique_ptr<group::HostLevel>> Group::open_host(const group::HostMembers& members) {
    return open_team_level(members, OpenOperations::kMost);
}

void Group::keyed() {
    station_.groups_.keyed(*this);
}

void Group::changed() {
    shortcut_.set(core_.state() == group::Group::State::joined && core_.levels().host() != nullptr &&
                  core_.levels().placement().hosts() == 1 && station_.settings_.stall_timeout_s == 0);
    station_.report_due_ = true;
}

void Group::write_error(std::uint32_t event, int error, std::uint64_t data) {
    fi_eq_err_entry entry{};
    entry.fid = &handle_.fid.fid;
    entry.context = handle_.fid.fid.context;
    entry.data = data;
    entry.err = error;
    // libfabric's own queues take errors under this flag, which has no public name.
    constexpr std::uint64_t kErrorEvent = std::uint64_t{1} << 60;
    if (fi_eq_write(station_.endpoint().eq, event, &entry, sizeof entry, kErrorEvent) < 0)
        log_line(Level::warn, "the event queue did not take the error of a group");
}

void Group::join_ended(int error) {
    if (error != 0) return write_error(FI_JOIN_COMPLETE, error, 0);
    fi_eq_entry good{&handle_.fid.fid, handle_.fid.fid.context, 0};
    if (fi_eq_write(station_.endpoint().eq, FI_JOIN_COMPLETE, &good, sizeof good, 0) < 0)
        log_line(Level::warn, "the event queue did not take FI_JOIN_COMPLETE");
}

void Group::remember_ended(int error) {
    station_.joins_.remember_ended(*this, error);
}

// There is no event of libfabric's for it but an error entry, as for a connection that breaks.
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
    const Endpoint& endpoint = station_.endpoint();
    const fi_tx_attr* const usual = endpoint.info->tx_attr;
    const std::uint64_t flags = operation.flags | (usual != nullptr ? usual->op_flags : 0);
    if (error != 0 || !endpoint.selective || (flags & FI_COMPLETION) != 0)
        endpoint.tx->complete(operation.context, error);
    else
        endpoint.tx->release();
}

void Group::explain(std::string_view sentence) {
    log_line(Level::info, "{}: {}", plan_.name(), sentence);
}

void Group::warn(std::string_view sentence) {
    log_line(Level::warn, "{}: {}", plan_.name(), sentence);
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
