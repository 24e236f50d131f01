#include "sites/sites.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/file_descriptor.h"

namespace mcastcoll::sites {
namespace {

constexpr std::size_t kMaxFile = 1 << 20;

std::string_view trim(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string in_quotes(std::string_view text) {
    return '"' + std::string(text) + '"';
}

bool good_name(std::string_view name) {
    return !name.empty() && name.size() <= kMaxSiteName && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '_' || c == '.';
    });
}

template <typename Unsigned>
bool read_number(std::string_view text, Unsigned min, Unsigned max, Unsigned& value) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    return status == std::errc() && end == text.data() + text.size() && value >= min && value <= max;
}

// Parses the file line by line. An error message is the file, the line, and one sentence.
class Parser {
  public:
    explicit Parser(std::string_view file) : file_(file) {}
    Result<void> line(std::string_view text, unsigned number) {
        number_ = number;
        text = trim(text.substr(0, text.find_first_of("#;")));
        if (text.empty()) return {};
        if (text.front() == '[') return section(text);
        const std::size_t equals = text.find('=');
        if (equals == std::string_view::npos)
            return wrong(in_quotes(text) + " is neither [site NAME], [sessions] nor NAME = VALUE");
        const std::string_view key = trim(text.substr(0, equals)), value = trim(text.substr(equals + 1));
        if (value.empty()) return wrong(in_quotes(key) + " has no value");
        if (where_ == Where::nowhere) return wrong(in_quotes(key) + " must follow [site NAME] or [sessions]");
        if (std::find(seen_.begin(), seen_.end(), key) != seen_.end())
            return wrong(in_quotes(key) + " appears twice in its section");
        seen_.emplace_back(key);
        return where_ == Where::site ? site_line(key, value) : session_line(key, value);
    }
    Result<void> end() {
        if (auto done = close_section(); !done) return done;
        if (all_.sites.empty()) return wrong("no [site NAME] in this file: it must describe the sites");
        return {};
    }
    Sites take() { return std::move(all_); }

  private:
    enum class Where { nowhere, site, sessions };

    Error wrong_at(unsigned line, const std::string& what) const {
        return Error{EINVAL, file_ + ':' + std::to_string(line) + ": " + what};
    }
    Error wrong(const std::string& what) const { return wrong_at(number_, what); }
    Error wrong_section(const std::string& what) const { return wrong_at(section_line_, what); }

    Result<void> close_section() {
        if (where_ != Where::site) return {};
        Site& site = all_.sites.back();
        if (site.networks.empty()) return wrong_section("site " + in_quotes(site.name) + " has no networks");
        if (!site.gateway.valid()) return wrong_section("site " + in_quotes(site.name) + " has no gateway");
        if (!site.wan.valid()) site.wan = site.gateway;
        for (const Site& other : all_.sites)
            if (&other != &site && (other.gateway == site.gateway || other.wan == site.wan))
                return wrong_section("site " + in_quotes(site.name) + " has the same gateway as site " +
                                     in_quotes(other.name));
        return {};
    }

    Result<void> section(std::string_view text) {
        if (auto done = close_section(); !done) return done;
        section_line_ = number_;
        seen_.clear();
        if (text.back() != ']') return wrong(in_quotes(text) + " lacks the closing bracket");
        const std::string_view words = trim(text.substr(1, text.size() - 2));
        if (words == "sessions") {
            if (sessions_seen_) return wrong("[sessions] appears twice");
            sessions_seen_ = true;
            where_ = Where::sessions;
            return {};
        }
        if (!words.starts_with("site ") && !words.starts_with("site\t"))
            return wrong(in_quotes(text) + " is neither [site NAME] nor [sessions]");
        const std::string_view name = trim(words.substr(5));
        if (!good_name(name))
            return wrong(in_quotes(name) +
                         " is not the name of a site: use 1 to 23 letters, digits, '-', '_' and '.'");
        if (all_.named(name) != nullptr) return wrong("site " + in_quotes(name) + " appears twice");
        if (all_.sites.size() >= kMaxSites) return wrong("more than 256 sites");
        all_.sites.push_back({std::string(name), {}, {}, {}, {}});
        where_ = Where::site;
        return {};
    }

    Result<void> site_line(std::string_view key, std::string_view value) {
        if (key == "networks") return networks(value);
        if (key == "gateway") return endpoint(value, all_.sites.back().gateway);
        if (key == "wan") return endpoint(value, all_.sites.back().wan);
        if (key == "reach") return reach(value);
        return wrong("a site has no setting " + in_quotes(key) +
                     "; the settings are networks, gateway, wan and reach");
    }

    Result<void> reach(std::string_view value) {
        std::vector<Reach>& all = all_.sites.back().reach.emplace();
        if (value == "none") return {};
        for (;;) {
            const std::size_t comma = value.find(',');
            const auto one = Reach::parse(trim(value.substr(0, comma)));
            if (!one) return wrong("reach: " + one.error().message);
            if (all.size() >= kMaxReach) return wrong("more than 256 networks that one site may reach");
            all.push_back(one.value());
            if (comma == std::string_view::npos) return {};
            value = value.substr(comma + 1);
        }
    }

    Result<void> networks(std::string_view value) {
        for (;;) {
            const std::size_t comma = value.find(',');
            auto network = topology::Subnet::parse(trim(value.substr(0, comma)));
            if (!network) return wrong(network.error().message);
            for (const Site& site : all_.sites)
                if (std::find(site.networks.begin(), site.networks.end(), network.value()) !=
                    site.networks.end())
                    return wrong(network.value().to_string() + " is already a network of site " +
                                 in_quotes(site.name));
            if (all_.sites.back().networks.size() >= kMaxNetworks)
                return wrong("more than 256 networks in one site");
            all_.sites.back().networks.push_back(network.value());
            if (comma == std::string_view::npos) return {};
            value = value.substr(comma + 1);
        }
    }

    Result<void> endpoint(std::string_view value, Endpoint& into) {
        auto parsed = Endpoint::parse(value);
        if (!parsed) return wrong(parsed.error().message);
        if (parsed.value().port == 0) return wrong(in_quotes(value) + " has no port: give ADDRESS:PORT");
        into = parsed.value();
        return {};
    }

    Result<void> session_line(std::string_view key, std::string_view value) {
        SessionOptions& sessions = all_.sessions;
        if (key == "streams") {
            if (!read_number(value, 1U, kMaxStreams, sessions.streams))
                return wrong("streams = " + std::string(value) + ": allowed are 1 to 32");
        } else if (key == "congestion") {
            if (!good_name(value) || value.size() > 15)
                return wrong(in_quotes(value) + " is not the name of a congestion control");
            sessions.congestion = value;
        } else if (key == "cap") {
            if (!read_number(value, std::uint64_t{0}, std::uint64_t{10'000'000}, sessions.cap_mbit))
                return wrong("cap = " + std::string(value) +
                             ": allowed are 0 (no limit) to 10000000 Mbit/s, in whole numbers");
        } else if (key == "key") {
            sessions.key_file = value;
        } else {
            return wrong("[sessions] has no setting " + in_quotes(key) +
                         "; the settings are streams, congestion, cap and key");
        }
        return {};
    }

    const std::string file_;
    Sites all_;
    Where where_ = Where::nowhere;
    bool sessions_seen_ = false;
    std::vector<std::string> seen_;
    unsigned number_ = 0, section_line_ = 0;
};

Result<std::string> read_file(const std::string& path) {
    const auto unreadable = [&path](int code) { return Error{code, path + ": " + std::strerror(code)}; };
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid()) return unreadable(errno);
    std::string text;
    char block[16384];
    while (const ssize_t size = ::read(file.get(), block, sizeof block)) {
        if (size < 0) return unreadable(errno);
        text.append(block, static_cast<std::size_t>(size));
        if (text.size() > kMaxFile) return unreadable(EFBIG);
    }
    return text;
}

}  // namespace

bool Site::may_reach(const Endpoint& target) const {
    if (!reach) return target.port >= kFirstFreePort;
    return std::any_of(reach->begin(), reach->end(), [&](const Reach& one) { return one.contains(target); });
}

const Site* Sites::site_of(const Endpoint& endpoint) const {
    const Site* best = nullptr;
    unsigned bits = 0;
    const Bytes address = Bytes(endpoint.address).first(endpoint.address_size());
    for (const Site& site : sites)
        for (const topology::Subnet& network : site.networks)
            if (network.contains(address) && (best == nullptr || network.prefix_bits() > bits)) {
                best = &site;
                bits = network.prefix_bits();
            }
    return best;
}

const Site* Sites::named(std::string_view name) const {
    const auto found =
        std::find_if(sites.begin(), sites.end(), [&](const Site& site) { return site.name == name; });
    return found == sites.end() ? nullptr : &*found;
}

Result<Sites> parse_sites(std::string_view text, std::string_view name) {
    Parser parser(name);
    unsigned number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (auto done = parser.line(text.substr(0, end), ++number); !done) return done.error();
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (auto done = parser.end(); !done) return done.error();
    return parser.take();
}

Result<Sites> read_sites(const std::string& path) {
    auto text = read_file(path);
    if (!text) return text.error();
    auto sites = parse_sites(text.value(), path);
    if (!sites) return sites;
    std::string& key = sites.value().sessions.key_file;
    const std::size_t slash = path.rfind('/');
    if (!key.empty() && key.front() != '/' && slash != std::string::npos)
        key.insert(0, path.substr(0, slash + 1));
    return sites;
}

}  // namespace mcastcoll::sites
