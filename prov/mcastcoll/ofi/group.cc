#include "ofi/group.h"

#include <fmt/core.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "ofi/live_station.h"
#include "provider/guard.h"

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

group::Plan core_plan(const JoinPlan& plan, const Settings& settings, std::size_t most_open) {
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
                      .most_open = most_open,
                      .memory = {map_pages, unmap_pages},
                      .stall_timeout = stall}};
}

}  // namespace

std::string name_of(const JoinPlan& plan) {
    return fmt::format("group {:x} of {}", plan.id.list_hash & 0xffffff, plan.members.size());
}

Group::Group(LiveStation& station, JoinPlan plan)
    : station_(station),
      plan_(std::move(plan)),
      multicast_(station.multicast(), station.settings().plan, name_of(plan_), plan_.members,
                 [this](const std::vector<wire::ByteString>& listeners) {
                     return station_.find_loan(plan_.parent, listeners);
                 }),
      core_(core_plan(plan_, station.settings(), kMostOpen), *this) {
    static fi_ops operations = {sizeof(fi_ops), &Group::close_mc, nullptr, nullptr,
                                nullptr,        nullptr,          nullptr};
    // libfabric calls through every pointer it finds.
    operations.bind = [](fid*, fid*, std::uint64_t) { return -FI_ENOSYS; };
    operations.control = [](fid*, int, void*) { return -FI_ENOSYS; };
    operations.ops_open = &Group::open_operations;
    mc_.fid.fid.fclass = FI_CLASS_MC;
    mc_.fid.fid.context = plan_.context;
    mc_.fid.fid.ops = &operations;
    mc_.fid.fi_addr = plan_.token;
    mc_.group = this;
}

Group::~Group() = default;

int Group::close_mc(fid* object) noexcept {
    Group* group = reinterpret_cast<McFid*>(object)->group;
    return guard([&] { return group->station_.close_group(*group); });
}

// The public extension, mcastcoll/mcastcoll.h.
int Group::open_operations(fid*, const char* name, std::uint64_t flags, void** operations, void*) noexcept {
    static fi_mcastcoll_group_ops group_operations = {sizeof(fi_mcastcoll_group_ops),
                                                      &Group::get_settings,
                                                      &Group::run,
                                                      &Group::advice,
                                                      &Group::get_shape,
                                                      &Group::get_asked};
    if (name == nullptr || operations == nullptr || flags != 0) return -FI_EINVAL;
    if (std::strcmp(name, FI_MCASTCOLL_GROUP_OPS) != 0) return -FI_ENOSYS;
    *operations = &group_operations;
    return 0;
}

int Group::get_settings(fid_mc* mc, fi_mcastcoll_group_settings* settings) noexcept {
    if (mc == nullptr || settings == nullptr) return -FI_EINVAL;
    const Group& group = of(mc);
    const auto lock = group.station_.lock();
    if (!group.core_.joined()) return -FI_EOPBADSTATE;
    const GroupSettings& agreed = group.core_.agreed();
    settings->repair = static_cast<int>(agreed.repair);
    settings->root_sync = static_cast<int>(agreed.root_sync);
    settings->root_delay_us = agreed.root_delay_us;
    settings->channels = agreed.channels;
    return 0;
}

int Group::get_shape(fid_mc* mc, fi_mcastcoll_group_shape* shape) noexcept {
    if (mc == nullptr || shape == nullptr) return -FI_EINVAL;
    const Group& group = of(mc);
    const auto lock = group.station_.lock();
    if (!group.core_.joined()) return -FI_EOPBADSTATE;
    const levels::Placement& placement = group.core_.levels().placement();
    shape->members = placement.members();
    shape->hosts = static_cast<unsigned>(placement.hosts());
    shape->sites = static_cast<unsigned>(placement.segments().size());
    return 0;
}

int Group::get_asked(fid_mc* mc, std::uint64_t* times) noexcept {
    if (mc == nullptr || times == nullptr) return -FI_EINVAL;
    const Group& group = of(mc);
    const auto lock = group.station_.lock();
    if (!group.core_.joined()) return -FI_EOPBADSTATE;
    const engine::Engine* const engine = group.core_.levels().engine();
    const engine::Counters counters = engine != nullptr ? engine->counters() : engine::Counters{};
    *times = counters.asks_received + counters.nacks_received;
    return 0;
}

// Nothing that this looks at changes any more when a join is over, so there is no lock.
const char* Group::advice(fid_mc* mc, const fi_mcastcoll_request* request) noexcept {
    if (mc == nullptr || request == nullptr) return nullptr;
    const Group& group = of(mc);
    if (!group.core_.joined()) return nullptr;
    try {
        fi_mcastcoll_request question = *request;  // without buffers, which may not be there yet
        question.input = question.buffer = &question;
        const auto made = make_request(question, group.token());
        if (!made) return nullptr;
        const auto decision = group.core_.levels().planner().decide({made.value()});
        return decision.aside ? nullptr : levels::name_of(decision.choice.algorithm).data();
    } catch (...) {
        return nullptr;
    }
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
    if (!station_.may_be(plan_.members[index_of(rank)], source)) return false;
    sources_.insert_or_assign(rank, source);
    return true;
}

void Group::within(Nanoseconds now, FunctionRef<void()> body) noexcept {
    station_.within(*this, now, body);
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
    if (!core_.joined()) return core_.ended() ? -FI_EOTHER : -FI_EOPBADSTATE;
    return core_.closed() ? -FI_ESHUTDOWN : 0;
}

ssize_t Group::submit(const Request& request, int* over, Nanoseconds now) {
    if (const ssize_t refused = why_not_open(); refused != 0) return refused;
    if (in_team_ || operations_.full()) return -FI_EAGAIN;
    if (over == nullptr && !station_.reserve_completion()) return -FI_EAGAIN;
    const std::uint32_t cookie = operations_.open({request.context, request.flags, over, request.copies});
    int refused = 0;
    const int thrown = guard([&] {
        refused = core_.submit({request, cookie}, now);
        return 0;
    });
    if (thrown != 0) {
        // It may have begun or not: the group ends, and with it whatever has begun. The caller hears that it
        // was refused, and nothing else.
        int unheard = 0;
        operations_.at(cookie).over = &unheard;
        core_.break_down(-thrown, now);
        refused = -thrown;
    }
    if (refused != 0) {
        if (operations_.is_open(cookie)) operations_.close(cookie);
        if (over == nullptr) station_.release_completion();
        return -refused;
    }
    // What is sent is where it belongs.
    if (request.copies && request.kind == Kind::broadcast && request.root == plan_.self)
        request.copies->targets.clear();
    // From here on it is open, and what goes wrong is told by its completion.
    if (const int later = guard([&] { return core_.move(now), 0; }); later != 0)
        core_.break_down(-later, now);
    return 0;
}

int Group::close(Nanoseconds now) {
    if (!operations_.empty() || in_team_) return -FI_EBUSY;
    shortcut_ = false;
    core_.close(now);
    return 0;
}

bool Group::can_lend() const {
    if (!core_.joined() || core_.ended()) return false;
    const group::LevelSet& levels = core_.levels();
    const engine::Engine* const engine = levels.engine();
    return engine != nullptr && levels.placement().segments().size() == 1 && multicast_.own_address() &&
           engine->phase() == engine::Phase::active && engine->graph().hearing_count() > 0;
}

void Group::add_counters(engine::Counters& sum, group::LevelCounters& levels) const {
    if (core_.formed()) core_.levels().add_counters(sum, levels);
    sum.bad_sender += multicast_.wrong_sources();
}

}  // namespace mcastcoll::ofi
