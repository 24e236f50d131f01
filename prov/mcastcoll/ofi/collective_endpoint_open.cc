// Opening and closing the collective endpoint, the parameters of a join, and the statistics written at the
// close.
#include <fcntl.h>
#include <rdma/fi_cm.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/clock.h"
#include "base/new_file.h"
#include "base/system.h"
#include "host/segment.h"
#include "ofi/av_set.h"
#include "ofi/collective_endpoint.h"
#include "ofi/inner.h"
#include "ofi/member_list.h"
#include "topology/discover.h"
#include "wire/bytes.h"

namespace mcastcoll::ofi {
namespace {

// Minimum shared memory of a group of sixteen on one host.
constexpr std::size_t kRoomWanted = std::size_t{1} << 20;

// Finds the place of this process. The address is the inner endpoint's, normalised; it may be an address
// without a subnet. A process without room for shared memory counts as a separate host.
topology::Discovery find_own_place(const topology::Override& given, const wire::ByteString& inner_address) {
    const auto address = transport::SocketAddress::from_bytes(inner_address);
    topology::Discovery found =
        topology::discover(given, address ? address.value().address_bytes() : Bytes());
    if (const auto room = host::Segment::probe(kRoomWanted); !room && found.place.at(topology::Level::host)) {
        found.place.at(topology::Level::host).reset();
        found.no_memory = room.error().message;
    }
    return found;
}

// Removes the parts of an inner address in which members' views differ: padding, scope, trailing zeros of a
// name.
wire::ByteString normalise_address(Bytes inner_address) {
    if (const auto socket = transport::SocketAddress::from_bytes(inner_address)) {
        const transport::SocketAddress plain(socket.value().address_bytes(), socket.value().port());
        const auto* at = reinterpret_cast<const std::byte*>(plain.data());
        return wire::ByteString(at, at + plain.size());
    }
    // A name such as shm's: up to its NUL, without the "fi_shm://" that only some forms have.
    std::string_view name(reinterpret_cast<const char*>(inner_address.data()), inner_address.size());
    name = name.substr(0, name.find('\0'));
    if (const auto scheme = name.find("://"); scheme != std::string_view::npos)
        name.remove_prefix(scheme + 3);
    const auto* at = reinterpret_cast<const std::byte*>(name.data());
    return wire::ByteString(at, at + std::min(name.size(), wire::kMaxAddressBytes));
}

// The interface index of a link-local inner address, which is valid on one link only; otherwise 0.
std::uint32_t scope_of(Bytes inner_address) {
    const auto own = transport::SocketAddress::from_bytes(inner_address);
    if (!own || own.value().family() != AF_INET6 || !own.value().is_link_local()) return 0;
    if (own.value().scope() != 0) return own.value().scope();
    const auto found = transport::find_interface_by_address(own.value());
    return found ? found.value().index : 0;
}

// The inner addresses of a set's members, by rank.
Result<std::vector<wire::ByteString>> addresses_of(const AvSet& set, fid_av* av) {
    if (set.av() != av)
        return Error{FI_EINVAL, "the set belongs to another address vector than the endpoint"};
    const std::vector<fi_addr_t> members = set.members();
    if (members.empty()) return Error{FI_EINVAL, "the set is empty"};
    if (members.size() > FI_MCASTCOLL_MAX_MEMBERS)
        return Error{FI_E2BIG, fmt::format("the set has {} members, the maximum is {}", members.size(),
                                           FI_MCASTCOLL_MAX_MEMBERS)};
    std::vector<wire::ByteString> addresses;
    for (fi_addr_t member : members) {
        std::byte raw[wire::kMaxAddressBytes] = {};
        std::size_t length = sizeof raw;
        if (const int rc = fi_av_lookup(av, member, raw, &length); rc != 0 || length > sizeof raw)
            return Error{FI_EADDRNOTAVAIL, fmt::format("member {} is not in the address vector", member)};
        addresses.push_back(normalise_address(Bytes(raw, length)));
    }
    return addresses;
}

bool is_over_tcp(const fi_info& inner) {
    const fi_fabric_attr* const attr = inner.fabric_attr;
    const std::string_view name = attr != nullptr && attr->prov_name != nullptr ? attr->prov_name : "";
    return name == "net" || name.find("tcp") != std::string_view::npos;
}

// Shortest comm_key that counts as a secret, in bytes.
constexpr std::size_t kMinSecret = 16;

// The key for authenticating members: derived from the secret in the key file, from the set's comm_key if it
// is long enough, or from both. Empty without a secret, or if MUNGE will carry the secret.
Result<wire::JoinKey> join_key(const provider::Settings& settings, const wire::ByteString& set_key) {
    const bool secret = settings.key || set_key.size() >= kMinSecret;
    if (settings.security == wire::Security::off) return wire::JoinKey();
    if (!secret && !settings.munge && settings.security)
        return Error{FI_ENOKEY,
                     "FI_MCASTCOLL_SECURITY needs a secret: set FI_MCASTCOLL_KEY_FILE, or pass a comm_key of "
                     "at least 16 bytes"};
    if (!secret) return wire::JoinKey();
    return wire::JoinKey(wire::derive(settings.key ? *settings.key : wire::Key{}, "join", set_key));
}

// Identifies this list of members together with its key. With a secret, only members can compute the value.
std::uint64_t hash_of(std::vector<wire::ByteString> members, const wire::ByteString& set_key,
                      const wire::JoinKey& key) {
    // With different comm_keys, joins of the same members may be called in any order, as threads do.
    if (!set_key.empty() && !key) members.push_back(set_key);
    return key ? wire::hash_members(members, *key) : wire::hash_addresses(members);
}

Result<wire::Key> draw_key() {
    wire::Key key;
    if (auto drawn = kernel_random(key); !drawn) return drawn.error();
    return key;
}

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

}  // namespace

Result<void> CollectiveEndpoint::open() {
    std::byte name[wire::kMaxAddressBytes];
    std::size_t length = sizeof name;
    if (const int rc = fi_getname(&endpoint.inner->fid, name, &length); rc != 0 || length > sizeof name)
        return Error{FI_EADDRNOTAVAIL, "the endpoint has no address yet: enable it first"};
    own_address_ = normalise_address(Bytes(name, length));
    const topology::Discovery found = find_own_place(settings.topology, own_address_);
    place = topology::encode(found.place);
    const std::string text = found.place.to_string();
    provider::log_line(provider::Level::info, "this process is at {}",
                       text.empty() ? "an unknown place" : text);
    for (const std::string& note : found.notes)
        provider::log_line(provider::Level::info, "topology: {}", note);
    if (!found.no_memory.empty()) warn_of_no_shared_memory(found.no_memory);

    const std::uint32_t scope = scope_of(Bytes(name, length));
    if (auto opened = service_socket.open(own_address_, scope); !opened) return opened.error();
    if (settings.munge) {
        const auto secret = draw_key();
        if (!secret) return secret.error();
        own_secret = std::make_shared<ports::SealedSecret>(*settings.munge, secret.value());
    }

    // If the user did not choose ofi_rxm, the private endpoint may use another provider than the
    // application's.
    const bool chosen = settings.inner.empty() || settings.inner == "tcp";
    const provider::InfoOwner inner = for_own_messages(*endpoint.info, chosen);
    if (!inner) return Error{FI_ENOMEM, "no memory for the private endpoint"};
    if (const int rc = fi_fabric(inner->fabric_attr, fabric.out(), nullptr); rc != 0)
        return Error{-rc,
                     fmt::format("cannot open the fabric of the private endpoint: {}", fi_strerror(-rc))};
    provider::log_line(provider::Level::debug, "the private endpoint uses provider {}",
                       inner->fabric_attr->prov_name);
    auto opened_messenger = ports::Messenger::open(fabric.get(), inner.get(), *this);
    if (!opened_messenger) return opened_messenger.error();
    messenger = std::move(opened_messenger).value();
    service_socket.use(*messenger);
    // Members of other sites connect from the addresses of their gateways, so sources do not identify
    // members.
    if (auto own = transport::SocketAddress::from_bytes(messenger->address()); own && !settings.has_gateways)
        listens_at_ = own.value();
    transport::PeerWatchOptions watching;
    watching.host_timeout_ms = settings.host_timeout_ms;
    watching.has_gateways = settings.has_gateways;
    if (auto own = transport::SocketAddress::from_bytes(own_address_))
        watching.local = own.value().seen_from(scope);
    if (auto opened = watch.open(watching); !opened) return opened.error();
    if (auto opened = wait_set.open(); !opened) return opened.error();
    open_multicast();
    for (int descriptor : {messenger->descriptor(), service_socket.descriptor(), watch.descriptor()})
        if (auto added = wait_set.add(descriptor); !added) return added.error();
    return {};
}

void CollectiveEndpoint::open_multicast() {
    const fi_fabric_attr* attr = endpoint.info->fabric_attr;
    const std::string_view inner = attr != nullptr && attr->prov_name != nullptr ? attr->prov_name : "";
    multicast.open(own_address_, inner.find("verbs") != std::string_view::npos);
    if (!multicast) return;
    if (auto added = wait_set.add(multicast.transport().descriptor()); !added) {
        provider::log_line(
            provider::Level::warn,
            "cannot wait for multicasts: {}; the groups of this endpoint send all data point-to-point",
            added.error().message);
        multicast.give_up(added.error().message);
    }
}

int CollectiveEndpoint::join(const fi_collective_addr& address, std::uint64_t flags, fid_mc** mc,
                             void* context) {
    if (mc == nullptr || (flags & ~std::uint64_t{FI_COLLECTIVE}) != 0) return -FI_EINVAL;
    if (endpoint.eq == nullptr) {
        provider::log_line(provider::Level::warn,
                           "fi_join: the endpoint has no event queue, so the join could never be reported");
        return -FI_ENOEQ;
    }
    auto join_request = make_join_request(address, context);
    if (!join_request) {
        provider::log_line(provider::Level::warn, "fi_join: {}", join_request.error().message);
        return -join_request.error().code;
    }
    const std::uint64_t counted_as = join_request.value().counted_as;
    auto made = std::make_unique<Group>(*this, groups_, group_calls(), std::move(join_request).value());
    Group& group = *made;
    try {
        groups_.add(std::move(made));
        const Nanoseconds time = monotonic_now();
        ++sequences_[counted_as];
        group.start(time);
    } catch (...) {
        // The caller gets no group to close. A leader reports the failure to each member whose hello arrives;
        // otherwise the members give up at the join timeout.
        if (group.core().join().leads()) provider::succeeds([&] { joins.remember_ended(group, FI_ENOMEM); });
        group.leave_joins();
        groups_.remove(group);
        throw;
    }
    *mc = &group;
    busy_groups_ += group.core().busy();
    keep_alarm();
    return 0;
}

Result<JoinRequest> CollectiveEndpoint::make_join_request(const fi_collective_addr& address, void* context) {
    const AvSet& set = AvSet::from(*address.set);
    const bool is_group = groups_.find(address.coll_addr) != nullptr;
    if (address.coll_addr != FI_ADDR_NOTAVAIL && address.coll_addr != set.address() && !is_group)
        return Error{FI_EINVAL, "the address is neither FI_ADDR_NOTAVAIL, nor the set's, nor a group's"};
    auto listed = addresses_of(set, endpoint.av);
    if (!listed) return listed.error();
    std::vector<wire::ByteString>& members = listed.value();
    const auto own = std::find(members.begin(), members.end(), own_address_);
    if (own == members.end()) return Error{FI_EINVAL, "this endpoint is not a member of the set"};
    if (auto checked = check_members(members, own_address_, is_over_tcp(*endpoint.info)); !checked)
        return checked.error();
    auto key = join_key(settings, set.key());
    if (!key) return key.error();
    const wire::JoinKey secret = key.value();
    const std::uint64_t hash = hash_of(members, set.key(), secret);
    group::GroupSettings wanted = set.settings(settings.group);
    const bool by_munge = settings.munge && !secret && settings.security != wire::Security::off;
    if (secret || by_munge) wanted.security = settings.security.value_or(wire::Security::authenticate);
    const Nanoseconds stall = Nanoseconds::from_ms(std::int64_t{1000} * settings.stall_timeout_s);
    group::JoinParameters core{.id = {hash, sequences_[hash]},
                               .self = rank_of(static_cast<std::size_t>(own - members.begin())),
                               .members = members.size(),
                               .deadline = monotonic_now() + Nanoseconds::from_ms(settings.join_timeout_ms),
                               .settings = wanted,
                               .policy = settings.topology.policy(),
                               .selection = settings.selection,
                               .means = {.message_bytes = group::kMessageBytes,
                                         .max_open = OpenOperations::kMax,
                                         .memory = {map_pages, unmap_pages},
                                         .stall_timeout = settings.stall_timeout_s == 0 ? kNever : stall}};
    core.means.key = secret;  // set separately: in the initializer gcc 12 reports an uninitialized value
    JoinRequest join_request{
        .core = std::move(core),
        .members = std::make_shared<const std::vector<wire::ByteString>>(std::move(members)),
        .token = next_token_++,
        .parent = is_group ? address.coll_addr : FI_ADDR_NOTAVAIL,
        .context = context,
        .counted_as = hash};
    join_request.make_message_key();
    if (!by_munge) return join_request;
    if (auto added = add_munge_request(join_request, set.key()); !added) return added.error();
    return join_request;
}

// Before the secret is known, the list is identified by a hash without the secret, which every process can
// compute. Joins of the list are counted under this hash, because the order in which secrets arrive may
// differ from the order of the join calls.
Result<void> CollectiveEndpoint::add_munge_request(JoinRequest& join_request,
                                                   const wire::ByteString& set_key) {
    const auto temporary = draw_key(), nonce = draw_key();
    if (!temporary || !nonce) return (temporary ? nonce : temporary).error();
    const std::uint64_t list =
        wire::hash_members(*join_request.members, wire::derive({}, "secret by MUNGE", set_key));
    const bool leads = join_request.core.self == rank_of(0);
    join_request.counted_as = list;
    join_request.set_key = set_key;
    join_request.core.id = {list, sequences_[list]};
    join_request.core.means.key = temporary.value();
    join_request.make_message_key();
    join_request.munge = {
        .socket = *settings.munge,
        // At most 7.5 s: MUNGE's failure is reported before the join's deadline, and before Open
        // MPI's component continues without a group (after 10 s), so the warning names the reason.
        .timeout = std::min(Nanoseconds::from_us(std::int64_t{750} * settings.join_timeout_ms),
                            Nanoseconds::from_ms(7500)),
        .request = {.id = join_request.core.id,
                    .rank = join_request.core.self,
                    .members = static_cast<std::uint32_t>(join_request.members->size()),
                    .nonce = wire::get<std::uint64_t>(nonce.value().data())},
        .own = leads ? own_secret : nullptr};
    if (leads) join_request.settle(own_secret->secret());
    return {};
}

CollectiveEndpoint::~CollectiveEndpoint() {
    drain();
    provider::succeeds([&] { write_statistics(); });
    groups_.clear();
}

// Serves closed groups for a while before the endpoint closes, because other members may still need
// retransmissions. Time in which the network is silent does not count, up to the host timeout, because
// members cannot send requests then.
void CollectiveEndpoint::drain() {
    if (!messenger || !watch.is_open()) return;  // opening failed half way
    const Nanoseconds begin = monotonic_now();
    const Nanoseconds last = begin + Nanoseconds::from_ms(settings.host_timeout_ms);
    Nanoseconds end = begin + Nanoseconds::from_ms(settings.linger_ms);
    watch.look_at_all(begin);
    for (Nanoseconds time = begin; time < end; time = monotonic_now()) {
        progress();
        if (groups_.empty() && messenger->under_way() == 0) return;
        if (prepare_wait()) wait_set.sleep(10);
        if (!groups_.empty() && time < last && watch.any_silent(time))
            end = time + Nanoseconds::from_ms(settings.linger_ms);
    }
    if (!groups_.empty())
        provider::log_line(provider::Level::info,
                           "the endpoint closes while other members have not closed {} of its groups after "
                           "{} ms; this process sends them no more retransmissions",
                           groups_.size(), settings.linger_ms);
}

// FI_MCASTCOLL_STATS=PREFIX: writes the counters of an endpoint's groups to PREFIX.HOST.PID.json when the
// endpoint closes.
void CollectiveEndpoint::write_statistics() const {
    engine::Counters total;
    group::LevelCounters levels;
    groups_.sum_counters(total, levels);
    if (total.operations_submitted == 0 && total.probes_sent == 0 && levels.host_operations == 0) return;
    provider::log_line(
        provider::Level::info,
        "the endpoint closes: sent {} multicast datagrams, {} messages and {} NAKs; received {} fragments by "
        "multicast, {} fragments by repair and {} duplicates",
        total.datagrams_sent, total.messages_sent, total.naks_sent, total.fragments_by_multicast,
        total.fragments_repaired, total.duplicates);
    if (settings.stats.empty()) return;
    const transport::MulticastCounters wire = multicast.counters();
    const transport::VerbsTransport* const verbs = multicast.verbs();
    std::string text;
    const auto add = [&](std::string_view name, std::uint64_t value) {
        text += fmt::format("{}\n  \"{}\": {}", text.empty() ? "{" : ",", name, value);
    };
    for (const engine::NamedCounter& counter : engine::kCounters) add(counter.name, total.*counter.member);
    for (const group::NamedLevelCounter& counter : group::kLevelCounters)
        add(counter.name, levels.*counter.member);
    add("socket_drops", wire.socket_drops);
    add("truncated", wire.truncated);
    add("send_errors", wire.send_errors);
    add("multicast_bytes_sent", wire.bytes_sent);
    add("verbs_datagrams_sent", verbs != nullptr ? verbs->counters().datagrams_sent : 0);
    add("verbs_revivals", verbs != nullptr ? verbs->counters().revivals : 0);
    add("foreign_messages", foreign_messages_);
    add("turns", turns_);
    add("group_visits", visits_);
    add("foreign_datagrams", foreign_datagrams());
    add("foreign_connections_ended", foreign_connections_ended_);
    add("suspicions", watch.suspicions());
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    text += "\n}\n";
    const std::string name = fmt::format("{}.{}.{}.json", settings.stats, host, getpid());
    if (const auto written = write_new_file(AT_FDCWD, name, text, 0644); !written)
        provider::log_line(provider::Level::warn,
                           "FI_MCASTCOLL_STATS: the counters of an endpoint are lost: {}",
                           written.error().message);
}

}  // namespace mcastcoll::ofi
