#include "ofi/group.h"

#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include <new>

#include "ofi/endpoint.h"
#include "ofi/station.h"
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
      port_(station, plan_, *this),
      core_(core_plan(plan_, station.settings()), port_) {
    open_fid();
}

Group::~Group() = default;

std::unique_lock<std::mutex> Group::lock() const {
    return station_.lock();
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
    if (!station_.greetings().may_be(plan_.members[index_of(rank)], source)) return false;
    port_.came_from(rank, source);
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
    if (known && !port_.multicast().may_come_from(segment[sender], source)) return;
    if (core_.on_datagram(bytes, now) && known) port_.multicast().came_from(segment[sender], source);
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
    if (over == nullptr && !station_.endpoint().reserve_completion()) return -FI_EAGAIN;
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
        if (over == nullptr) station_.endpoint().release_completion();
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

void Group::completed(std::uint32_t cookie, int error) {
    const OpenOperation operation = operations_.close(cookie);
    if (operation.copies && error == 0) operation.copies->deliver();
    if (operation.over != nullptr)
        *operation.over = error;
    else
        station_.endpoint().complete(operation.context, operation.flags, error);
}

void Group::set_shortcut() {
    shortcut_.set(core_.state() == group::Group::State::joined && core_.levels().host() != nullptr &&
                  core_.levels().placement().hosts() == 1 && station_.settings().stall_timeout_s == 0);
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
    return engine != nullptr && levels.placement().segments().size() == 1 &&
           port_.multicast().own_address() && engine->phase() == engine::Phase::active &&
           engine->graph().hearing_count() > 0;
}

void Group::add_counters(engine::Counters& sum, group::LevelCounters& levels) const {
    if (core_.formed()) core_.levels().add_counters(sum, levels);
    sum.bad_sender += port_.multicast().wrong_sources();
}

}  // namespace mcastcoll::ofi
