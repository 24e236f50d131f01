#include "group_member.h"

#include <fmt/format.h>

#include <cerrno>

#include "group/welcome.h"
#include "memory_level.h"
#include "script.h"

namespace mcastcoll::sim {

using levels::Kind;

namespace {

const topology::Policy kPolicy;
// Completed operations whose buffers are kept, to detect late writes.
constexpr std::size_t kKept = 16;

group::JoinParameters join_parameters(const wire::JoinId& id, std::uint32_t rank, const GroupSetup& setup,
                                      const GroupOptions& options, Nanoseconds now) {
    return {.id = id,
            .self = rank_of(rank),
            .members = setup.members.size(),
            .deadline = now + options.join_timeout,
            .settings = {.repair = setup.repair, .security = options.security},
            .policy = kPolicy,
            .selection = setup.selection,
            .means = {.message_bytes = group::kMessageBytes,
                      .key = options.key,
                      .max_open = 16,
                      .memory = {},
                      .stall_timeout = options.stall_timeout}};
}

std::uint64_t number_of_list(const SharedGroup& shared, const GroupProcess& process) {
    constexpr std::uint64_t kOther = std::uint64_t{1} << 63;
    return shared.number() | (process.world().options().other_secret == process.number() ? kOther : 0);
}

}  // namespace

GroupMember::GroupMember(GroupProcess& process, SharedGroup& shared)
    : process_(process),
      shared_(shared),
      setup_(shared.setup()),
      id_{number_of_list(shared, process), process.counted()},
      rank_(shared.rank_of(process.number())),
      core_(join_parameters(id_, rank_, setup_, process.world().options(), process.world().now()), *this) {}

bool GroupMember::has_key(GroupKey key) const {
    if (!core_.formed()) return false;
    const engine::Engine* const engine = core_.levels().engine();
    return key == core_.levels().key() || (engine != nullptr && key == engine->config().key);
}

std::string GroupMember::describe_stray_hello() {
    const auto* stray = process_.joins().stray_hello(*this);
    return stray == nullptr ? std::string() : fmt::format("rank {} is a stray", index_of(stray->hello.rank));
}

void GroupMember::warn(std::string_view sentence) {
    world().warnings.push_back(fmt::format("rank {}: {}", rank_, sentence));
}

bool GroupMember::work() {
    if (closed_ || !join_over_) return false;
    bool worked = false;
    const std::size_t begun = world().may_post(group());
    while (error_ == 0 && posted_ < begun && posted_ - completed_ < setup_.in_flight) {
        post(posted_++);
        worked = true;
    }
    if (posted_ != completed_ || (error_ == 0 && !all_completed())) return worked;
    closed_ = true;
    core_.close(world().now());
    return true;
}

void GroupMember::give_up() {
    if (join_over_) return;
    join_over_ = closed_ = true;
    end(ECANCELED);
    core_.close(world().now());
}

void GroupMember::dies() {
    if (completed_ < world().begun(group()))
        world().step_completed(group(), rank_, process_.endpoint(), true);
}

void GroupMember::post(std::size_t number) {
    const Collective& what = setup_.script[number];
    fill(number);
    Posted& posted = operation(number);
    levels::Request request{what, number};
    request.buffer = posted.buffer.data();
    request.input = what.kind == Kind::broadcast ? nullptr : posted.input.data();
    request.combiner = {combine_by_xor, 1};
    int refused = 0;
    core_.submit(request, refused, world().now());
    if (refused == 0) return;
    if (core_.error() == 0) world().complain(fmt::format("{}: refused, {}", state(), refused));
    ++completed_;
    end(refused);
}

void GroupMember::fill(std::size_t number) {
    const Unmetered application;
    const Collective& what = setup_.script[number];
    Posted& posted = operations_.emplace_back();
    posted.expected = shared_.expected(number, rank_);
    posted.buffer.assign(posted.expected->size(), kUntouched);
    const bool gives =
        (what.kind != Kind::broadcast && what.kind != Kind::scatter) || rank_of(rank_) == what.root;
    if (gives) posted.input = shared_.given(number, rank_);
    if (what.kind == Kind::broadcast && gives) posted.buffer = posted.input;
}

void GroupMember::completed(std::uint64_t cookie, int code) {
    const Unmetered application;
    if (cookie < forgotten_ || operation(cookie).done)
        return world().complain(fmt::format("{}: operation {} ends twice", state(), cookie));
    Posted& posted = operation(cookie);
    posted.done = true;
    ++completed_;
    world().step_completed(group(), rank_, process_.endpoint(), false);
    if (code != 0) return end(code);
    if (posted.buffer != *posted.expected)
        world().complain(fmt::format("{}: wrong bytes in operation {}, a {} of {} bytes", state(), cookie,
                                     levels::name_of(setup_.script[cookie].kind).data(),
                                     setup_.script[cookie].bytes));
    posted.expected.reset();
    posted.scribbled = true;
    // The buffers are the application's again: overwriting them exposes late writes at the end, and late
    // reads.
    std::ranges::fill(posted.buffer, kScribble);
    std::ranges::fill(posted.input, kScribble);
    if (all_completed()) over_at_ = world().now();
    forget_old();
}

void GroupMember::forget_old() {
    while (operations_.size() > kKept && operations_.front().scribbled) {
        if (!sim::scribbled(operations_.front().buffer))
            world().complain(fmt::format("{}: wrote after the end of {}", state(), forgotten_));
        operations_.erase(operations_.begin());
        ++forgotten_;
    }
}

bool GroupMember::scribbled() const {
    return std::ranges::all_of(
        operations_, [](const Posted& posted) { return !posted.scribbled || sim::scribbled(posted.buffer); });
}

void GroupMember::end(int code) {
    if (error_ != 0) return;
    error_ = code;
    over_at_ = world().now();
}

void GroupMember::join_ended(int code) {
    const Unmetered application;
    if (join_over_) world().complain(fmt::format("{}: its join ends twice", state()));
    join_over_ = true;
    if (code != 0) return end(code);
    world().step_completed(group(), rank_, process_.endpoint(), true);
    if (all_completed()) over_at_ = world().now();
}

std::string GroupMember::state() const {
    return fmt::format("group {}, rank {}, {} of {} operations done, error {}", id_.list_hash, rank_,
                       completed_, setup_.script.size(), error_);
}

wire::Hello GroupMember::own_hello() const {
    wire::Hello hello;
    hello.id = id_;
    hello.rank = rank_of(rank_);
    hello.members = shared_.members();
    hello.address_family = 4;
    if (process_.has_multicast()) hello.datagram_bytes = 1472;
    hello.window = 64;
    hello.room = 1;
    hello.peer = process_.as_peer();
    return hello;
}

void GroupMember::send_hello(Rank to, std::uint32_t attempt, Bytes bytes) {
    send(to, attempt, bytes);
}

void GroupMember::send(Rank to, std::uint32_t, Bytes datagram) {
    world().network().send_datagram(process_.endpoint(), setup_.members[index_of(to)],
                                    wire::prove(datagram, key()));
}

void GroupMember::watch(Address peer, const wire::ByteString&, Nanoseconds) {
    world().watch(process_.endpoint(), peer);
}

Result<std::unique_ptr<group::HostLevel>> GroupMember::open_host(const group::HostMembers& members) {
    if (world().options().no_memory == process_.number()) return Error{ENOMEM, "none"};
    auto memory = members.self == 0 ? world().make_memory(members, process_)
                                    : world().find_memory(members.name.key, process_);
    if (!memory) return Error{ENOENT, "none"};
    memory->endpoints[members.self] = process_.endpoint();
    return std::unique_ptr<group::HostLevel>(std::make_unique<MemoryLevel>(std::move(memory), members.self));
}

Result<group::SharedBytes> GroupMember::find_table(const group::HostMemoryName& name) {
    const auto memory = world().find_memory(name.key, process_);
    if (!memory) return Error{ENOENT, "none"};
    return group::SharedBytes{memory, memory->table};
}

int GroupMember::offer(wire::Welcome& welcome, const group::Hellos& hellos) {
    Random& random = world().random();
    const levels::Placement placement = group::placement_of(welcome);
    welcome.key = static_cast<GroupKey>(random.next());
    welcome.epoch = static_cast<Epoch>(random.next());
    welcome.range_of.assign(setup_.members.size(), 0);
    group::fit_datagrams(welcome, hellos, placement, false);
    if (hellos.front().datagram_bytes == 0 || placement.hosts() == placement.segments().size()) return 0;
    welcome.group_addresses = {bytes_of(random.next())};
    return 0;
}

void GroupMember::join(const wire::Welcome& welcome, const levels::Placement&) {
    listens_ = !welcome.group_addresses.empty() && process_.has_multicast();
    if (listens_)
        world().network().listen(process_.endpoint(), 0);
    else
        why_not_ = "it has none";
}

void GroupMember::send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t) {
    world().network().multicast(process_.endpoint(), 0, header, payload);
}

}  // namespace mcastcoll::sim
