#include "sites/reach.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>

namespace mcastcoll::sites {
namespace {

bool read_port(std::string_view text, std::uint16_t& port) {
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), port);
    return status == std::errc() && end == text.data() + text.size() && port != 0;
}

bool read_ports(std::string_view text, Reach& reach) {
    const std::size_t dash = std::min(text.find('-'), text.size());
    if (!read_port(text.substr(0, dash), reach.first_port)) return false;
    if (dash == text.size()) {
        reach.last_port = reach.first_port;
        return true;
    }
    return read_port(text.substr(dash + 1), reach.last_port) && reach.first_port <= reach.last_port;
}

}  // namespace

bool Reach::contains(const Endpoint& target) const {
    return target.port >= first_port && target.port <= last_port &&
           network.contains(Bytes(target.address).first(target.address_size()));
}

Result<Reach> Reach::parse(std::string_view text) {
    const auto wrong = [&](const char* what) {
        return Error{EINVAL, '"' + std::string(text) + "\" " + what};
    };
    std::string_view network = text, ports;
    bool with_ports = false;
    if (text.starts_with('[')) {
        const std::size_t bracket = text.find(']');
        if (bracket == text.npos) return wrong("lacks the closing bracket");
        network = text.substr(1, bracket - 1);
        ports = text.substr(bracket + 1);
        with_ports = !ports.empty();
        if (with_ports && ports.front() != ':')
            return wrong("has something other than :PORTS after the bracket");
    } else if (std::count(text.begin(), text.end(), ':') == 1) {
        with_ports = true;
        network = text.substr(0, text.find(':'));
        ports = text.substr(network.size());
    }
    auto subnet = topology::Subnet::parse(network);
    if (!subnet) return subnet.error();
    Reach reach{subnet.value()};
    if (with_ports && !read_ports(ports.substr(1), reach))
        return wrong("has no port (1 to 65535) and no range PORT-PORT after the colon");
    return reach;
}

}  // namespace mcastcoll::sites
