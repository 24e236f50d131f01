// Whole groups, from the hello (a join's first message) to the end of their first operations, with a
// malicious member, whose messages are changed, lost, duplicated, or invented. This member may be rank 0,
// which creates the welcome, may gather hellos of other members, lead a host, or be any other. Every request
// of the honest members must complete or fail.
#include <unistd.h>

#include "group_process.h"

namespace mcastcoll::fuzz {

// The places of the members: the names of site, segment and host by rank.
struct Shape {
    std::array<const char*, 4> sites, segments, hosts;
};
constexpr Shape kShapes[] = {{{"a", "a", "a", "a"}, {"a", "a", "a", "a"}, {"0", "1", "2", "3"}},
                             {{"a", "a", "a", "a"}, {"a", "a", "a", "a"}, {"0", "0", "1", "1"}},
                             {{"a", "b", "a", "b"}, {"a", "b", "a", "b"}, {"0", "1", "2", "3"}},
                             {{"a", "a", "a", "b"}, {"a", "b", "a", "b"}, {"0", "1", "0", "3"}},
                             {{"a", "a", "a", "a"}, {"a", "a", "a", "a"}, {"0", "0", "0", "0"}}};
constexpr const char* kSelections[] = {"", "allgather * * * chains:2\nallreduce * * * split\n",
                                       "allgather * * * reduction\n"};

class World final {
  public:
    explicit World(fuzz::Input& input)
        : in(input),
          members(in.between(2U, 4U)),
          liar(in.between(0U, members - 1)),
          shape(in.one_of(kShapes)),
          repair(in.between(0U, 3U)),
          root_sync(in.between(0U, 3U)),
          redundancy(in.between(0U, 2U)),
          selection(in.between(0U, 2U)) {
        std::vector<ByteString> list;
        for (std::uint32_t rank = 0; rank < members; ++rank) list.push_back(address_of(rank));
        addresses = std::make_shared<const std::vector<ByteString>>(std::move(list));
        for (std::size_t i = 0; i < kOperations; ++i)
            script.push_back({in.between(0U, 8U), in.between(0U, members - 1), in.between(0U, 5U)});
        for (std::uint32_t rank = 0; rank < members; ++rank)
            processes.push_back(std::make_unique<Process>(*this, rank));
    }

    void run() {
        for (const auto& process : processes) process->call();
        const Nanoseconds end = now + Nanoseconds::from_ms(3000);
        for (unsigned turns = 0; turns < 1500 && now < end; ++turns) {
            if (in.remaining_bytes() > 0 && in.any<std::uint8_t>() % 4 == 0) lie();
            const std::size_t max = mail.size();
            for (std::size_t i = 0; i < max; ++i) {
                const Letter letter = std::move(mail.front());
                mail.pop_front();
                processes[letter.to]->deliver(letter);
            }
            Nanoseconds next = kNever;
            bool over = true;
            for (const auto& process : processes) {
                process->turn();
                next = std::min(next, process->next_deadline());
                over = over && process->over();
            }
            if (!mail.empty()) continue;
            if (next == kNever || (over && in.remaining_bytes() == 0)) break;
            now = std::max(now + Nanoseconds{1000}, next);
        }
    }

    // The input determines what the malicious member sends.
    void send(Letter letter) {
        fuzz::check(letter.to < members, "members send to members only");
        if (letter.from == liar && in.remaining_bytes() > 0) {
            if (sent.size() < 64) sent.push_back(letter);
            const auto what = in.between(0U, 15U);
            if (what == 8) return;
            if (what == 9) mail.push_back(letter);
            if (what >= 10) change(letter);
        }
        mail.push_back(std::move(letter));
    }

    fuzz::Input& in;
    const std::uint32_t members, liar;
    const Shape shape;
    const unsigned repair, root_sync, redundancy, selection;
    struct ScriptStep {
        unsigned kind, root, length;
    };
    std::vector<ScriptStep> script;
    group::MemberList addresses;
    Nanoseconds now = Nanoseconds::from_ms(1);
    GroupKey key{7};
    Epoch epoch{1};
    std::map<ByteString, HostMemory> memories;  // by the leader's watch point
    std::vector<std::unique_ptr<Process>> processes;
    std::deque<Letter> mail;

    bool lies(std::uint32_t rank) { return rank == liar && in.remaining_bytes() > 0 && in.flag(); }

    template <typename Text>
    void scribble(Text&& bytes) {
        for (auto count = in.between(1U, 4U); count > 0 && !bytes.empty(); --count)
            bytes[in.between<std::size_t>(0, bytes.size() - 1)] =
                static_cast<std::byte>(in.any<std::uint8_t>());
    }

    // The whole memory except the process numbers and the table of members, which is read when the memory is
    // found.
    void scribble(const HostMemory& memory) {
        scribble(std::span(memory.segment->data(), memory.segment->bytes() - memory.table.size()));
        auto& header = *reinterpret_cast<host::Header*>(memory.segment->data());
        const host::Rings rings(header, memory.shape, 0);
        for (std::uint32_t member = 0; member < memory.shape.members; ++member)
            rings.record(member).pid = static_cast<std::uint32_t>(::getpid());
    }

  private:
    void change(Letter& letter) {
        ByteString& bytes = letter.bytes;
        if (letter.way == Way::message || letter.way == Way::multicast) {
            scribble(bytes);
            return seal_packet(bytes);
        }
        if (const auto part = wire::decode_part(bytes)) return change_part(*part, bytes);
        if (auto gathered = wire::decode_gathered_hellos(bytes); gathered && !gathered->hellos.empty()) {
            wire::Hello& hello = gathered->hellos[in.between<std::size_t>(0, gathered->hellos.size() - 1)];
            change(hello);
            bytes = wire::encode(*gathered);
            return;
        }
        if (auto hello = wire::decode_hello(bytes); hello && in.flag()) {
            change(*hello);
            bytes = wire::encode(*hello);
            return;
        }
        scribble(bytes);
        if (in.between(0U, 7U) == 0) bytes.resize(in.between(0U, 255U));
        seal_message(bytes);
    }

    void change(wire::Hello& hello) {
        switch (in.between(0U, 6U)) {
            case 0:
                hello.rank = rank_of(in.between(0U, members));
                break;
            case 1:
                hello.datagram_bytes = static_cast<std::uint32_t>(fuzz::take_number(in));
                break;
            case 2:
                hello.window = static_cast<std::uint32_t>(fuzz::take_number(in));
                break;
            case 3:
                hello.gathered = in.flag();
                break;
            case 4:
                scribble(hello.peer.place);
                break;
            case 5:
                scribble(hello.peer.private_address);
                break;
            case 6:
                hello.id.sequence = in.between(0U, 3U);
                break;
        }
    }

    // A table of addresses is compressed, so random changes of bytes would hardly ever yield a valid table.
    void change_part(wire::WelcomePart part, ByteString& bytes) {
        auto welcome = part.offset == 0 ? wire::decode_welcome(part.bytes, members) : std::nullopt;
        if (!welcome) {
            scribble(bytes);
            return seal_message(bytes);
        }
        for (auto count = in.between(1U, 3U); count > 0; --count) change(*welcome);
        const auto parts = group::parts_of(wire::encode(*welcome), part.head);
        if (!parts.empty()) bytes = parts.front();
    }

    void change(wire::Welcome& welcome) {
        const auto some = in.between<std::size_t>(0, members - 1);
        switch (in.between(0U, 15U)) {
            case 0:
                welcome.fragment_bytes = static_cast<std::uint32_t>(fuzz::take_number(in));
                break;
            case 1:
                welcome.window = static_cast<std::uint32_t>(fuzz::take_number(in));
                break;
            case 2:
                welcome.repair = in.between<std::uint8_t>(0, 5);
                welcome.redundancy = in.between<std::uint8_t>(0, 3);
                break;
            case 3:
                welcome.channels = static_cast<std::uint32_t>(fuzz::take_number(in));
                break;
            case 4:
                welcome.root_sync = in.between<std::uint8_t>(0, 5);
                break;
            case 5:
                welcome.root_delay_us = static_cast<std::uint32_t>(fuzz::take_number(in));
                break;
            case 6:
                scribble(welcome.policy);
                break;
            case 7:
                scribble(welcome.selection);
                break;
            case 8:
                welcome.range_of[some] = in.between<std::uint8_t>(0, 17);
                break;
            case 9:
                welcome.group_addresses.resize(in.between<std::size_t>(0, wire::kMaxGroupAddresses));
                break;
            case 10:
                welcome.peers[some] = welcome.peers[in.between(0U, members - 1)];
                break;
            case 11:
                scribble(welcome.peers[some].place);
                break;
            case 12:
                welcome.peers[some].private_address.resize(in.between(0U, 20U));
                break;
            case 13:
                welcome.sequences[some] = in.between(0U, 3U);
                break;
            case 14:
                welcome.address_scheme = in.between<std::uint8_t>(0, 5);
                break;
            case 15:
                welcome.security = in.between<std::uint8_t>(0, 3);
                break;
        }
    }

    // Sends messages that no member has sent.
    void lie() {
        const auto to = in.between(0U, members - 1);
        switch (in.between(0U, 7U)) {
            case 0:
                for (const auto& [point, memory] : memories) scribble(memory);
                break;
            case 1:
                processes[to]->lose(in.between(0U, members - 1));
                break;
            case 2:
                now = now + Nanoseconds{in.between<std::int64_t>(0, 200'000'000)};
                break;
            case 3:
                if (!sent.empty()) {
                    Letter again = sent[in.between<std::size_t>(0, sent.size() - 1)];
                    again.to = to;
                    change(again);
                    mail.push_back(std::move(again));
                }
                break;
            default: {
                const auto segment = in.between(0U, 1U);
                const auto packet =
                    fuzz::take_packet(in, static_cast<GroupKey>(static_cast<std::uint64_t>(key) + segment),
                                      epoch, members, 300);
                const Way way = wire::is_multicast(wire::peek_kind(packet)) ? Way::multicast : Way::message;
                mail.push_back({way, liar, to, packet});
            }
        }
    }

    std::vector<Letter> sent;  // by the malicious member
};

group::JoinParameters Process::parameters() const {
    static const topology::Policy policy;
    static const auto rows = [] {
        std::vector<std::vector<levels::Row>> all;
        for (const char* text : kSelections) all.push_back(levels::parse_selection(text).value());
        return all;
    }();
    return {.id = id_,
            .self = rank_of(rank_),
            .members = world_.members,
            .deadline = world_.now + Nanoseconds::from_ms(2000),
            .settings = {.repair = static_cast<engine::Repair>(world_.repair),
                         .redundancy = static_cast<engine::Redundancy>(world_.redundancy),
                         .root_sync = static_cast<engine::RootSync>(world_.root_sync)},
            .policy = policy,
            .selection = rows[world_.selection],
            .means = {.message_bytes = group::kMessageBytes,
                      .max_open = kMaxOpen,
                      .memory = {},
                      .stall_timeout = Nanoseconds::from_ms(500)}};
}

Process::Process(World& world, std::uint32_t rank)
    : world_(world), rank_(rank), core_(parameters(), static_cast<group::Port&>(*this)) {}

const group::MemberList& Process::members() const {
    return world_.addresses;
}

void Process::call() {
    joins_.add(*this);
    core_.start(world_.now);
    joins_.deliver_pending_hellos(*this, world_.now);
    joins_.forget_pending_hellos(id_);
}

void Process::deliver(Letter letter) {
    switch (letter.way) {
        case Way::datagram:
            return joins_.on_datagram(letter.bytes, address_of(letter.from), world_.now);
        case Way::join_message:
            if (!joins_.on_join_message(letter.bytes, world_.now)) core_.on_message(letter.bytes, world_.now);
            return;
        case Way::message:
            return core_.on_message(letter.bytes, world_.now);
        case Way::multicast:
            if (listens_) (void)core_.on_datagram(letter.bytes, world_.now);
            return;
    }
}

void Process::turn() {
    unsigned turns = 0;
    do {
        fuzz::check(++turns < 1000, "a group comes to rest");
        core_.pump(world_.now);
        while (join_over_ && !failed_ && !closed_ && core_.joined() && ended_.size() < kOperations) {
            const World::ScriptStep& step = world_.script[ended_.size()];
            constexpr std::size_t kLengths[] = {0, 8, 100, 600, 3000, 9000};
            fuzz::Call& call = calls_.emplace_back();
            call.lay_out(static_cast<CollectiveKind>(step.kind), step.root, kLengths[step.length], rank_,
                         world_.members, false);
            levels::Request request;
            static_cast<Collective&>(request) = call.request;
            request.cookie = ended_.size();
            ended_.push_back(false);
            int refused = 0;
            core_.submit(request, refused, world_.now);
            if (refused != 0) ended_.back() = true;
        }
    } while (core_.next_deadline() <= world_.now);
    const bool all_ended = std::find(ended_.begin(), ended_.end(), false) == ended_.end();
    if (closed_ || !join_over_ || !all_ended || (!failed_ && ended_.size() < kOperations)) return;
    closed_ = true;
    core_.close(world_.now);
}

wire::Hello Process::own_hello() const {
    wire::Hello hello;
    hello.id = id_;
    hello.rank = rank_of(rank_);
    hello.members = world_.members;
    hello.address_family = 4;
    hello.datagram_bytes = group::kMinDatagram;
    hello.window = group::kMinWindow;
    hello.room = 1;
    hello.peer.private_address = hello.peer.watch_point = address_of(rank_);
    topology::Place place;
    place.set_named(topology::Level::site, world_.shape.sites[rank_]);
    place.set_named(topology::Level::segment, world_.shape.segments[rank_]);
    place.set_named(topology::Level::host, world_.shape.hosts[rank_]);
    hello.peer.place = topology::encode(place);
    return hello;
}

Result<Outbox::Peer> Process::peer(const ByteString& address) {
    for (std::uint32_t rank = 0; rank < world_.members; ++rank)
        if (address == address_of(rank)) return Outbox::Peer{rank};
    return Error{EADDRNOTAVAIL, "an unused address"};
}

Result<group::SharedBytes> Process::find_table(const group::HostMemoryName& name) {
    const auto found = world_.memories.find(name.leader_point);
    if (found == world_.memories.end()) return Error{ENOENT, "none"};
    return group::SharedBytes{found->second.segment, found->second.table};
}

// Opens a real team (the members of a host), in which no member copies directly from an address published by
// the malicious member.
Result<std::unique_ptr<group::HostLevel>> Process::open_host(const group::HostMembers& members) {
    std::vector<std::byte> table(members.table.begin(), members.table.end());
    if (members.self == 0 && world_.lies(rank_)) world_.scribble(table);
    host::TeamConfig config{.name = {},
                            .key = 1,
                            .self = members.self,
                            .size = members.size,
                            .table = table,
                            .clusters = members.clusters,
                            .single_copy = false,
                            .segment = {}};
    const auto found = world_.memories.find(members.name.leader_point);
    if (members.self != 0) {
        if (found == world_.memories.end()) return Error{ENOENT, "none"};
        config.segment = found->second.segment;
    }
    auto team = host::Team::open(config);
    if (!team) return team.error();
    const auto& segment = team.value()->segment();
    const auto& header = *reinterpret_cast<const host::Header*>(segment->data());
    if (members.self == 0)
        world_.memories[members.name.leader_point] = {
            segment, {header.size, header.slots, header.slot_bytes}, team.value()->table()};
    return std::unique_ptr<group::HostLevel>(
        std::make_unique<ports::TeamLevel>(std::move(team).value(), kMaxOpen + 2));
}

int Process::offer(wire::Welcome& welcome, const group::Hellos& hellos) {
    const levels::Placement placement = group::placement_of(welcome);
    welcome.key = world_.key;
    welcome.epoch = world_.epoch;
    welcome.range_of.assign(world_.members, 0);
    group::fit_datagrams(welcome, hellos, placement, false);
    if (placement.hosts() > placement.segments().size()) welcome.group_addresses = {address_of(99)};
    return 0;
}

void Process::send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t) {
    ByteString bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    for (std::uint32_t rank = 0; rank < world_.members; ++rank)
        if (rank != rank_) post(Way::multicast, rank, bytes);
}

void Process::post(Way way, std::uint32_t to, Bytes bytes) {
    world_.send({way, rank_, to, {bytes.begin(), bytes.end()}});
}

}  // namespace mcastcoll::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    mcastcoll::fuzz::Input in(data, size);
    mcastcoll::fuzz::World world(in);
    world.run();
    return 0;
}
