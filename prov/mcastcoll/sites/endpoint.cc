#include "sites/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "topology/subnet.h"

namespace mcastcoll::sites {
namespace {

Error bad(std::string_view text, const char* why) {
    return Error{EINVAL, '"' + std::string(text) + "\" " + why};
}

Endpoint unmapped(Endpoint endpoint) {
    const Bytes bare = topology::unwrap(endpoint.address);
    if (endpoint.family != Family::v6 || bare.size() != 4) return endpoint;
    Endpoint v4{Family::v4, endpoint.port, {}};
    std::copy(bare.begin(), bare.end(), v4.address.begin());
    return v4;
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
    std::string_view host = text;
    std::size_t colon = std::string_view::npos;  // before the port
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) return bad(text, "lacks the closing bracket");
        host = text.substr(1, close - 1);
        if (close + 1 < text.size()) colon = close + 1;
        if (colon != std::string_view::npos && text[colon] != ':')
            return bad(text, "has something other than :PORT after the bracket");
    } else if (std::count(text.begin(), text.end(), ':') == 1) {
        colon = text.find(':');
        host = text.substr(0, colon);
    }
    Endpoint endpoint;
    if (colon != std::string_view::npos) {
        const std::string_view port = text.substr(colon + 1);
        const auto [end, status] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
        if (status != std::errc() || end != port.data() + port.size())
            return bad(text, "has no port number (0 to 65535) after the colon");
    }
    const std::string name(host);
    if (inet_pton(AF_INET, name.c_str(), endpoint.address.data()) == 1) {
        endpoint.family = Family::v4;
    } else if (inet_pton(AF_INET6, name.c_str(), endpoint.address.data()) == 1) {
        endpoint.family = Family::v6;
    } else {
        return bad(text, "is not an IPv4 or IPv6 address");
    }
    return unmapped(endpoint);
}

Endpoint Endpoint::of(const sockaddr* address, std::size_t size) {
    Endpoint endpoint;
    if (address == nullptr || size < sizeof(sa_family_t)) return endpoint;
    sa_family_t family = AF_UNSPEC;
    std::memcpy(&family, address, sizeof family);
    if (family == AF_INET && size >= sizeof(sockaddr_in)) {
        sockaddr_in v4;
        std::memcpy(&v4, address, sizeof v4);
        endpoint = {Family::v4, ntohs(v4.sin_port), {}};
        std::memcpy(endpoint.address.data(), &v4.sin_addr, sizeof v4.sin_addr);
    } else if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
        sockaddr_in6 v6;
        std::memcpy(&v6, address, sizeof v6);
        endpoint = {Family::v6, ntohs(v6.sin6_port), {}};
        std::memcpy(endpoint.address.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    }
    return unmapped(endpoint);
}

std::size_t Endpoint::to(sockaddr_storage& storage) const {
    std::memset(&storage, 0, sizeof storage);
    if (family == Family::v4) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        std::memcpy(&v4.sin_addr, address.data(), sizeof v4.sin_addr);
        std::memcpy(&storage, &v4, sizeof v4);
        return sizeof v4;
    }
    if (family == Family::v6) {
        sockaddr_in6 v6{};
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        std::memcpy(&v6.sin6_addr, address.data(), sizeof v6.sin6_addr);
        std::memcpy(&storage, &v6, sizeof v6);
        return sizeof v6;
    }
    return 0;
}

std::string Endpoint::to_string() const {
    if (!valid()) return "no address";
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(family == Family::v4 ? AF_INET : AF_INET6, address.data(), text, sizeof text);
    if (port == 0) return text;
    return (family == Family::v4 ? std::string(text) : '[' + std::string(text) + ']') + ':' +
           std::to_string(port);
}

}  // namespace mcastcoll::sites
