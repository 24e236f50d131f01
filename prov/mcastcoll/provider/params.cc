// The table of the FI_MCASTCOLL_* variables.
#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>

#include "provider/key_file.h"
#include "provider/provider.h"
#include "provider/selection_file.h"
#include "provider/settings.h"
#include "sites/sites.h"
#include "topology/discover.h"

namespace mcastcoll::provider {
namespace {

// The permitted values, for error messages: a text, or a range of numbers.
struct Allowed {
    constexpr Allowed(const char* text) : words(text) {}
    constexpr Allowed(long from, long to) : min(from), max(to) {}
    const char* words = nullptr;
    long min = 0, max = 0;
};

struct Param {
    const char* variable;  // without the prefix FI_MCASTCOLL_, in lower case
    fi_param_type type;
    const char* fallback;  // if empty, there is no value by default
    Allowed allowed;
    const char* help;  // if null, `variable` is a key of FI_MCASTCOLL_EXPERIMENT

    bool is_experiment() const { return help == nullptr; }
};

constexpr long kMaxBuffer = 1L << 30;
constexpr long kMaxMs = 3'600'000;

// docs/EXPERIMENTS.md explains the keys of FI_MCASTCOLL_EXPERIMENT.
constexpr const char* kExperiment = nullptr;

// These help texts are the text of the manual page, too: fabtests/functional/manual.sh --write copies them.
constexpr Param kParams[] = {
    {"inner", FI_PARAM_STRING, "auto",
     "auto, tcp, tcp;ofi_rxm, net, shm, verbs;ofi_rxm or another provider's name",
     "Inner provider, which carries all point-to-point messages: tcp;ofi_rxm, net, shm, verbs;ofi_rxm or "
     "another provider. tcp: reliable datagrams over TCP by whatever name this libfabric has (before 1.18: "
     "tcp;ofi_rxm, and net for applications that request untagged messages only, because net blocks when "
     "tagged messages are not received in the order in which they were sent). auto: verbs;ofi_rxm if there "
     "is a device, else tcp"},
    {"multicast", FI_PARAM_STRING, "auto", "auto, udp, verbs or off",
     "Transport of the multicasts of collectives, used where the join finds multicast working. verbs: UD "
     "queue pairs of RDMA devices; a group with a host that cannot use them goes over UDP. udp: UDP only. "
     "auto: verbs if the inner provider is verbs, too, else udp. off: collectives use point-to-point "
     "messages only"},
    {"iface", FI_PARAM_STRING, "", "the name or an address of an interface",
     "Interface of endpoints and multicasts, by name, by address or by the name of its RDMA device "
     "(mlx5_0:1). Endpoints on other interfaces are offered only if the inner provider has none on this "
     "interface. Without a value, endpoints on interfaces that lead to other hosts are offered first "
     "(docker0 and link-local addresses last), and multicasts use the endpoint's interface"},
    {"ttl", FI_PARAM_INT, "1", Allowed(0, 255),
     "Maximum number of routers that a multicast may cross. Subnets remain separate segments, connected by "
     "messages, unless FI_MCASTCOLL_TOPOLOGY=site=one,segment=all is set, too"},
    {"rcvbuf", FI_PARAM_SIZE_T, "4194304", Allowed(0, kMaxBuffer),
     "Receive buffer to request from the kernel for each multicast socket, in bytes; 0: the system's "
     "default. Unprivileged processes get at most net.core.rmem_max"},
    {"join_timeout", FI_PARAM_INT, "120000", Allowed(1, kMaxMs),
     "Milliseconds after which an incomplete join of collectives fails"},
    {"host_timeout", FI_PARAM_INT, "120000", Allowed(1, kMaxMs),
     "Milliseconds without a response after which a host counts as dead and operations with its processes "
     "fail with FI_EHOSTDOWN. This timeout is for hosts without power or network: the end of a process is "
     "detected at once"},
    {"stall_timeout", FI_PARAM_INT, "0", Allowed(0, 2147483647),
     "Seconds without progress after which an operation and its group fail with FI_ETIMEDOUT; 0: never, "
     "because a process may compute for hours while others wait for it in a collective. The end of a process "
     "is detected independently of this setting"},
    {"topology", FI_PARAM_STRING, "auto",
     "auto, flat, or a comma-separated list of -LEVEL, LEVEL=NAME, site=NAME:SUBNET,.. and ALGORITHM@LEVEL, "
     "or a file's path that contains a slash",
     "Where processes are, and which levels of groups count: auto, flat, a comma-separated list of -LEVEL, "
     "LEVEL=NAME, site=NAME:SUBNET and ALGORITHM@LEVEL, or a file with a slash in its path. Levels are site, "
     "segment, host, and inside a host package, numa, l3, l2, core. flat: one level, every process counts as "
     "a host of its own; -host: no shared memory; site=A:10.1.0.0/16,B:10.2.0.0/16: sites by the process's "
     "own address. mcastcoll-topo shows the result"},
    {"selection", FI_PARAM_STRING, "auto",
     "auto, or the path of a file with rows of operation, members, hosts, bytes, algorithm",
     "Algorithm of each operation: a file of rules that are applied before the built-in ones, in rows of "
     "operation, members, hosts, bytes, algorithm. The file of rank 0 applies to the whole group. "
     "mcastcoll-topo --selection prints the table"},
    {"security", FI_PARAM_STRING, "auto", "auto, off, authenticate or encrypt",
     "off: a checksum, which does not authenticate. authenticate: members accept only packets from members. "
     "encrypt: packets are encrypted, too. auto: authenticate if a group has a secret, else off. The secret "
     "comes from FI_MCASTCOLL_KEY_FILE, or from a comm_key of 16 bytes or more in fi_av_set_attr; the Open "
     "MPI component and the MPICH interposer draw a secret for each group. Rank 0's value applies; a member "
     "with a higher value fails to join with FI_EKEYREJECTED. authenticate or encrypt without a secret fails "
     "with FI_ENOKEY. Reliable multicast messages are authenticated if there is a key file; with encrypt "
     "fi_enable fails with FI_EOPNOTSUPP"},
    {"key_file", FI_PARAM_STRING, "",
     "the path of a file of 16 to 4096 bytes that only its owner can access (chmod 600), or munge:, or "
     "munge:SOCKET",
     "File with the secret of all groups: 16 to 4096 bytes, the same on all hosts, owned by this user or "
     "root and without access for others (chmod 600). Or munge:, or munge:SOCKET where munged listens "
     "elsewhere: rank 0 of each group draws a secret, and MUNGE carries this secret to the members, which "
     "must run as the same user. All hosts need munged and the same MUNGE key. A member without munged fails "
     "to join with FI_ENOKEY, the other members with FI_ETIMEDOUT. Groups with a secret from MPI or a "
     "comm_key do not use MUNGE; endpoints for reliable multicast messages refuse munge with FI_EOPNOTSUPP"},
    {"stats", FI_PARAM_STRING, "", "a path",
     "Write counters to PATH.HOST.PID.json when an endpoint that took part in collectives is closed"},
    {"experiment", FI_PARAM_STRING, "", "a comma-separated list of KEY=VALUE",
     "Settings for experiments: a comma-separated list of KEY=VALUE, of which the last one of a key counts. "
     "docs/EXPERIMENTS.md explains the keys"},
#ifndef MCC_NO_FAULT_INJECTION
    {"fault", FI_PARAM_STRING, "",
     "a comma-separated list of loss=PERCENT, burst=PERCENT, burst_length=MEAN, nth=N, duplicate=PERCENT, "
     "corrupt=PERCENT, delay=DATAGRAMS, seed=N",
     "For tests only: damage received multicasts, for example loss=5,duplicate=1,corrupt=1,delay=3,seed=7"},
#endif
    {"repair", FI_PARAM_STRING, "pull", "push, pull, sync or auto", kExperiment},
    {"redundancy", FI_PARAM_STRING, "auto", "auto, off or on", kExperiment},
    {"channels", FI_PARAM_INT, "16", Allowed(1, 64), kExperiment},
    {"root_sync", FI_PARAM_STRING, "none", "none, delay:USEC with USEC from 0 to 100000, random or adaptive",
     kExperiment},
    {"window", FI_PARAM_INT, "0", Allowed(0, 65535), kExperiment},
    {"address_scheme", FI_PARAM_STRING, "auto", "auto, parent, chained, tree or own", kExperiment},
    {"memberships", FI_PARAM_INT, "256", Allowed(1, 65535), kExperiment},
    {"ip", FI_PARAM_STRING, "auto", "auto, 4 or 6", kExperiment},
    {"port", FI_PARAM_INT, "0", Allowed(0, 65535), kExperiment},
    {"receives", FI_PARAM_INT, "1024", Allowed(64, 16384), kExperiment},
    {"sndbuf", FI_PARAM_SIZE_T, "0", Allowed(0, kMaxBuffer), kExperiment},
    {"mac", FI_PARAM_STRING, "auto", "auto, umac64 or gmac", kExperiment},
    {"linger", FI_PARAM_INT, "2000", Allowed(0, kMaxMs), kExperiment},
    {"peer_timeout", FI_PARAM_INT, "5000", Allowed(1, kMaxMs), kExperiment},
};

// A row of the table, looked up at compile time.
struct Known {
    consteval Known(const char* variable) {
        while (std::string_view(param->variable) != variable) ++param;
    }
    const Param* param = kParams;
};

std::string full_name(const Param& param) {
    std::string name = "FI_MCASTCOLL_";
    for (const char* at = param.variable; *at != '\0'; ++at)
        name += *at == '_' ? '_' : static_cast<char>(*at - 'a' + 'A');
    return name;
}

std::string allowed_by(const Param& param) {
    const auto& [words, min, max] = param.allowed;
    return words != nullptr ? words : fmt::format("{} to {}", min, max);
}

Error refuse(Known name, std::string_view value, std::string_view why = {}) {
    return {FI_EINVAL, fmt::format("{}={} is not valid{}{}; allowed: {}",
                                   name.param->is_experiment()
                                       ? fmt::format("FI_MCASTCOLL_EXPERIMENT: {}", name.param->variable)
                                       : full_name(*name.param),
                                   value, why.empty() ? "" : ", ", why, allowed_by(*name.param))};
}

// Lists the keys of FI_MCASTCOLL_EXPERIMENT, each written by `print`.
template <typename Print>
std::string experiments(Print print) {
    std::string all;
    for (const Param& param : kParams)
        if (param.is_experiment()) all += (all.empty() ? "" : ", ") + print(param);
    return all;
}

// Returns the user's value as text, or the default. Numbers are read as text as well, because libfabric's own
// parser ignores trailing characters.
std::string text_of(const Param& wanted) {
    if (const char* text = std::getenv(full_name(wanted).c_str()); text != nullptr && *text != '\0')
        return text;
    // libfabric 2.0 and later also have a configuration file.
    if (FI_VERSION_LT(fi_version(), FI_VERSION(2, 0))) return wanted.fallback;
    char* text = nullptr;
    if (wanted.type == FI_PARAM_STRING && fi_param_get_str(&provider(), wanted.variable, &text) == 0 &&
        text != nullptr)
        return text;
    int number = 0;
    if (wanted.type == FI_PARAM_INT && fi_param_get_int(&provider(), wanted.variable, &number) == 0)
        return fmt::format("{}", number);
    std::size_t size = 0;
    if (wanted.type == FI_PARAM_SIZE_T && fi_param_get_size_t(&provider(), wanted.variable, &size) == 0)
        return fmt::format("{}", size);
    return wanted.fallback;
}

// Reads variables one after the other and keeps the first error.
class Reader {
  public:
    Reader() {
        read_experiment(text_of("experiment"));
        refuse_former_names();
    }
    std::string text_of(Known name) const {
        const Param& wanted = *name.param;
        if (!wanted.is_experiment()) return provider::text_of(wanted);
        const auto found = experiment_.find(wanted.variable);
        return found == experiment_.end() ? wanted.fallback : found->second;
    }
    template <typename Number>
    void number(Known name, Number& out) {
        const std::string text = text_of(name);
        long value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const Allowed& allowed = name.param->allowed;
        if (error != std::errc() || end != text.data() + text.size() || value < allowed.min ||
            value > allowed.max)
            return complain(refuse(name, text));
        out = static_cast<Number>(value);
    }
    template <typename Value>
    void choice(Known name, Value& out,
                std::initializer_list<std::pair<const char*, std::type_identity_t<Value>>> choices) {
        const std::string text = text_of(name);
        for (const auto& [word, value] : choices)
            if (strcasecmp(text.c_str(), word) == 0) {
                out = value;
                return;
            }
        complain(refuse(name, text));
    }
    void root_sync(Settings& settings) {
        using engine::RootSync;
        const std::string text = text_of("root_sync");
        constexpr std::string_view kDelay = "delay:";
        if (strncasecmp(text.c_str(), kDelay.data(), kDelay.size()) != 0)
            return choice(
                "root_sync", settings.group.root_sync,
                {{"none", RootSync::none}, {"random", RootSync::random}, {"adaptive", RootSync::adaptive}});
        const char* from = text.data() + kDelay.size();
        const char* to = text.data() + text.size();
        const auto [end, error] = std::from_chars(from, to, settings.group.root_delay_us);
        if (error != std::errc() || end != to || settings.group.root_delay_us > kMaxRootDelayUs)
            return complain(refuse("root_sync", text));
        settings.group.root_sync = RootSync::delay;
    }
    // Reads a value with a parser of another folder.
    template <typename Value, typename Parse>
    void parsed(Known name, Value& out, Parse parse) {
        const std::string text = text_of(name);
        auto given = parse(text);
        if (!given) return complain(refuse(name, text, given.error().message));
        out = std::move(given).value();
    }
    void complain(Error error) {
        if (!complaint_) complaint_ = std::move(error);
    }
    const std::optional<Error>& complaint() const { return complaint_; }

  private:
    void read_experiment(std::string_view list) {
        while (!list.empty()) {
            const std::string_view item = list.substr(0, list.find(','));
            list.remove_prefix(std::min(item.size() + 1, list.size()));
            if (item.empty()) continue;
            const std::string_view key = item.substr(0, item.find('='));
            const bool known = std::any_of(std::begin(kParams), std::end(kParams), [&](const Param& param) {
                return param.is_experiment() && param.variable == key;
            });
            if (known && key.size() < item.size())
                experiment_.insert_or_assign(std::string(key), std::string(item.substr(key.size() + 1)));
            else
                complain({FI_EINVAL, fmt::format("FI_MCASTCOLL_EXPERIMENT: {} is not valid; allowed: "
                                                 "KEY=VALUE, with a key of {}",
                                                 item, experiments([](const Param& param) {
                                                     return std::string(param.variable);
                                                 }))});
        }
    }
    // Names from before 0.9.0. Without an error, a job would run without its setting.
    void refuse_former_names() {
        const auto refuse_former = [&](const std::string& former, std::string_view now) {
            const char* const value = std::getenv(former.c_str());
            if (value == nullptr || *value == '\0') return;
            complain(
                {FI_EINVAL, fmt::format("{0}={1} has another name now: set {2}={1}", former, value, now)});
        };
        refuse_former("FI_MCASTCOLL_TRANSPORT", "FI_MCASTCOLL_MULTICAST");
        refuse_former("FI_MCASTCOLL_PLAN", "FI_MCASTCOLL_EXPERIMENT=address_scheme");
        for (const Param& param : kParams)
            if (param.is_experiment())
                refuse_former(full_name(param), fmt::format("FI_MCASTCOLL_EXPERIMENT={}", param.variable));
#ifdef MCC_NO_FAULT_INJECTION
        if (std::getenv("FI_MCASTCOLL_FAULT") != nullptr)
            complain({FI_EINVAL,
                      "FI_MCASTCOLL_FAULT is set, but this build has no fault injection (configure "
                      "--enable-fault-injection)"});
#endif
    }

    std::map<std::string, std::string, std::less<>> experiment_;
    std::optional<Error> complaint_;
};

// With gateways between the sites, a file lists the sites, so that no measurement is needed.
Result<void> place_by_sites_file(Settings& settings) {
    static_assert(sites::kMaxSiteName <= topology::Name::kMax);
    topology::Override& topology = settings.topology;
    const char* const path = ::secure_getenv("MCASTCOLL_SITES");
    settings.has_gateways = path != nullptr && *path != '\0';
    if (!settings.has_gateways || topology.places_sites()) return {};
    const auto sites = sites::read_sites(path);
    if (!sites) return Error{sites.error().code, "MCASTCOLL_SITES: " + sites.error().message};
    for (const sites::Site& site : sites.value().sites)
        for (const topology::Subnet& network : site.networks)
            topology.add_site(topology::Name(site.name), network);
    return {};
}

}  // namespace

void define_params() {
    for (const Param& param : kParams) {
        if (param.is_experiment()) continue;
        std::string help = param.help;
        if (param.allowed.words == nullptr) help += ". Range: " + allowed_by(param);
        if (param.variable == std::string_view("experiment"))
            help += ": " + experiments([](const Param& one) {
                        return fmt::format("{}={} ({})", one.variable, one.fallback, allowed_by(one));
                    });
        fi_param_define(&provider(), param.variable, param.type, "%s (default: %s)", help.c_str(),
                        *param.fallback == '\0' ? "none" : param.fallback);
    }
}

Result<Settings> read_settings() {
    using engine::AddressScheme, engine::Redundancy, engine::Repair;
    Settings settings;
    Reader read;
    settings.inner = read.text_of("inner");
    if (strcasecmp(settings.inner.c_str(), "auto") == 0) settings.inner.clear();
    if (settings.inner.find("mcastcoll") != std::string::npos)
        read.complain(refuse("inner", settings.inner, "mcastcoll cannot be its own inner provider"));
    std::optional<Carrier> carrier;
    read.choice("multicast", carrier,
                {{"auto", Carrier::automatic},
                 {"udp", Carrier::udp},
                 {"verbs", Carrier::verbs},
                 {"off", std::nullopt}});
    settings.multicast = carrier.has_value();
    settings.transport = carrier.value_or(Carrier::automatic);
    read.number("receives", settings.receives);
    settings.iface = read.text_of("iface");
    read.choice("ip", settings.ip, {{"auto", 0}, {"4", 4}, {"6", 6}});
    read.number("ttl", settings.ttl);
    read.number("port", settings.port);
    read.number("memberships", settings.memberships);
    read.choice("address_scheme", settings.address_scheme,
                {{"auto", std::nullopt},
                 {"parent", AddressScheme::parent},
                 {"chained", AddressScheme::chained},
                 {"tree", AddressScheme::tree},
                 {"own", AddressScheme::own}});
    read.number("rcvbuf", settings.rcvbuf);
    read.number("sndbuf", settings.sndbuf);
    read.choice("repair", settings.group.repair,
                {{"push", Repair::push},
                 {"pull", Repair::pull},
                 {"sync", Repair::sync},
                 {"auto", Repair::automatic}});
    read.choice("redundancy", settings.group.redundancy,
                {{"auto", Redundancy::automatic}, {"off", Redundancy::off}, {"on", Redundancy::on}});
    read.number("channels", settings.group.channels);
    read.root_sync(settings);
    read.number("window", settings.window);
    read.number("join_timeout", settings.join_timeout_ms);
    read.number("host_timeout", settings.host_timeout_ms);
    read.number("peer_timeout", settings.peer_timeout_ms);
    read.number("linger", settings.linger_ms);
    read.number("stall_timeout", settings.stall_timeout_s);
    read.parsed("topology", settings.topology, topology::read_override);
    if (auto placed = place_by_sites_file(settings); !placed) read.complain(placed.error());
    read.parsed("selection", settings.selection, read_selection);
    read.choice("security", settings.security,
                {{"auto", std::nullopt},
                 {"off", wire::Security::off},
                 {"authenticate", wire::Security::authenticate},
                 {"encrypt", wire::Security::encrypt}});
    read.choice("mac", settings.group.gmac,
                {{"auto", wire::gmac_is_fast()}, {"umac64", false}, {"gmac", true}});
    settings.munge = munge_socket(read.text_of("key_file"));
    if (!settings.munge) read.parsed("key_file", settings.key, read_key_file);
#ifndef MCC_NO_FAULT_INJECTION
    read.parsed("fault", settings.fault, transport::parse_interceptor_spec);
#endif
    settings.stats = read.text_of("stats");
    if (read.complaint()) return *read.complaint();
    return settings;
}

Settings provider_settings() {
    auto settings = read_settings();
    return settings ? std::move(settings).value() : Settings();
}

}  // namespace mcastcoll::provider
