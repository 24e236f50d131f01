#include "ofi/params.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <strings.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "ofi/provider.h"
#include "ofi/settings.h"

namespace mcastcoll::ofi {
namespace {

enum class Name : std::size_t {
    inner,
    multicast,
    iface,
    ip,
    ttl,
    port,
    rcvbuf,
    sndbuf,
    repair,
    window,
    join_timeout,
    peer_timeout,
    linger,
    fault,
    stats,
    count
};

struct Param {
    Name name;
    const char* variable;  // without the prefix FI_MCASTCOLL_, in lower case
    fi_param_type type;
    const char* fallback;
    const char* allowed;  // for the complaint about any other value
    const char* help;
    long least, most;  // of numbers
};

constexpr long kMostBuffer = 1L << 30;
constexpr long kMostMs = 3'600'000;

constexpr std::array<Param, static_cast<std::size_t>(Name::count)> kParams{{
    {Name::inner, "inner", FI_PARAM_STRING, "",
     "auto, tcp, tcp;ofi_rxm, net, shm, verbs;ofi_rxm or another provider's name",
     "Provider underneath, which carries everything point-to-point. tcp means reliable datagrams over TCP "
     "under whatever "
     "name this libfabric has them. (default: auto: verbs;ofi_rxm where there is a device, else tcp)",
     0, 0},
    {Name::multicast, "multicast", FI_PARAM_STRING, "auto", "auto or off",
     "auto: use multicast where the join finds it working; off: collectives are point-to-point (default: "
     "auto)",
     0, 0},
    {Name::iface, "iface", FI_PARAM_STRING, "", "the name or an address of an interface",
     "Interface for multicast, by name or address (default: the one with the inner endpoint's address)", 0,
     0},
    {Name::ip, "ip", FI_PARAM_STRING, "auto", "auto, 4 or 6",
     "IP version of the multicasts; auto is that of the inner endpoint (default: auto)", 0, 0},
    {Name::ttl, "ttl", FI_PARAM_INT, "1", "0 to 255", "How many routers a multicast may cross (default: 1)",
     0, 255},
    {Name::port, "port", FI_PARAM_INT, "0", "0 to 65535",
     "UDP port of the multicasts; 0 is a random one per group (default: 0)", 0, 65535},
    {Name::rcvbuf, "rcvbuf", FI_PARAM_SIZE_T, "4194304", "0 to 1073741824",
     "Bytes of receive buffer to ask the kernel for, per multicast socket; 0 leaves the system's default "
     "(default: 4194304)",
     0, kMostBuffer},
    {Name::sndbuf, "sndbuf", FI_PARAM_SIZE_T, "0", "0 to 1073741824",
     "Bytes of send buffer to ask the kernel for, per multicast socket; 0 leaves the system's default "
     "(default: 0)",
     0, kMostBuffer},
    {Name::repair, "repair", FI_PARAM_STRING, "pull", "push or pull",
     "push: every member hands what it has on to its ring successor; pull: only who misses something asks "
     "for it (default: pull)",
     0, 0},
    {Name::window, "window", FI_PARAM_INT, "0", "0 to 65535",
     "Fragments that a root may be ahead of the slowest receiver; 0: as many as the receive buffers hold "
     "(default: 0)",
     0, 65535},
    {Name::join_timeout, "join_timeout", FI_PARAM_INT, "30000", "1 to 3600000",
     "Milliseconds after which a join that is not complete fails (default: 30000)", 1, kMostMs},
    {Name::peer_timeout, "peer_timeout", FI_PARAM_INT, "5000", "1 to 3600000",
     "Milliseconds of silence after which another host counts as dead; operations with it then fail "
     "(default: 5000)",
     1, kMostMs},
    {Name::linger, "linger", FI_PARAM_INT, "2000", "0 to 3600000",
     "Milliseconds that closing an endpoint waits at most for members that may still need a repair (default: "
     "2000)",
     0, kMostMs},
    {Name::fault, "fault", FI_PARAM_STRING, "",
     "a comma list of loss=PERCENT, burst=PERCENT, nth=N, duplicate=PERCENT, corrupt=PERCENT, "
     "delay=DATAGRAMS, seed=N",
     "For tests only: spoils received multicasts, for example loss=5,duplicate=1,corrupt=1,delay=3,seed=7 "
     "(default: none)",
     0, 0},
    {Name::stats, "stats", FI_PARAM_STRING, "", "a path",
     "Write counters to PATH.HOST.PID.json when an endpoint that took part in collectives is closed "
     "(default: none)",
     0, 0},
}};

const Param& param(Name name) {
    return kParams[static_cast<std::size_t>(name)];
}

std::string full_name(const Param& param) {
    std::string name = "FI_MCASTCOLL_";
    for (const char* at = param.variable; *at != '\0'; ++at)
        name += *at == '_' ? '_' : static_cast<char>(*at - 'a' + 'A');
    return name;
}

Error refuse(const Param& param, std::string_view value, std::string_view why = {}) {
    return {FI_EINVAL, fmt::format("{}={} is not understood{}{}: it may be {}", full_name(param), value,
                                   why.empty() ? "" : ", ", why, param.allowed)};
}

// The text the user gave. Numbers too are taken as text here, because libfabric's own reading ignores what
// follows them.
std::string text_of(Name name) {
    const Param& wanted = param(name);
    if (const char* text = std::getenv(full_name(wanted).c_str()); text != nullptr && *text != '\0')
        return text;
    // Since 2.0 there is a configuration file besides.
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

// Takes variables one after the other and keeps the first complaint.
class Reader {
  public:
    template <typename Number>
    void number(Name name, Number& out) {
        const std::string text = text_of(name);
        long value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < param(name).least ||
            value > param(name).most)
            return complain(refuse(param(name), text));
        out = static_cast<Number>(value);
    }
    template <typename Value, std::size_t N>
    void choice(Name name, Value& out, const std::array<std::pair<const char*, Value>, N>& choices) {
        const std::string text = text_of(name);
        for (const auto& [word, value] : choices)
            if (strcasecmp(text.c_str(), word) == 0) {
                out = value;
                return;
            }
        complain(refuse(param(name), text));
    }
    void complain(Error error) {
        if (ok_) error_ = std::move(error);
        ok_ = false;
    }
    bool ok() const { return ok_; }
    const Error& error() const { return error_; }

  private:
    bool ok_ = true;
    Error error_;
};

}  // namespace

void define_params() {
    for (const Param& param : kParams)
        fi_param_define(&provider(), param.variable, param.type, "%s", param.help);
}

Result<Settings> read_settings() {
    Settings settings;
    Reader read;
    settings.inner = text_of(Name::inner);
    if (strcasecmp(settings.inner.c_str(), "auto") == 0) settings.inner.clear();
    if (settings.inner.find("mcastcoll") != std::string::npos)
        read.complain(refuse(param(Name::inner), settings.inner, "it cannot be its own inner provider"));
    read.choice(Name::multicast, settings.multicast,
                std::array{std::pair{"auto", true}, std::pair{"off", false}});
    settings.iface = text_of(Name::iface);
    read.choice(Name::ip, settings.ip,
                std::array{std::pair{"auto", 0}, std::pair{"4", 4}, std::pair{"6", 6}});
    read.number(Name::ttl, settings.ttl);
    read.number(Name::port, settings.port);
    read.number(Name::rcvbuf, settings.rcvbuf);
    read.number(Name::sndbuf, settings.sndbuf);
    read.choice(Name::repair, settings.repair,
                std::array{std::pair{"push", engine::Repair::push}, std::pair{"pull", engine::Repair::pull}});
    read.number(Name::window, settings.window);
    read.number(Name::join_timeout, settings.join_timeout_ms);
    read.number(Name::peer_timeout, settings.peer_timeout_ms);
    read.number(Name::linger, settings.linger_ms);
    const std::string fault = text_of(Name::fault);
    if (auto spec = parse_interceptor_spec(fault); spec)
        settings.fault = spec.value();
    else
        read.complain(refuse(param(Name::fault), fault, spec.error().message));
    settings.stats = text_of(Name::stats);
    if (!read.ok()) return read.error();
    return settings;
}

Settings provider_settings() {
    auto settings = read_settings();
    if (settings) return std::move(settings).value();
    Settings fallback;
    fallback.rcvbuf = 4194304;
    fallback.join_timeout_ms = 30000;
    fallback.peer_timeout_ms = 5000;
    fallback.linger_ms = 2000;
    return fallback;
}

}  // namespace mcastcoll::ofi
