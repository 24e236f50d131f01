#include "gateway/pending_connection.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>

#include "gateway/gateway.h"
#include "gateway/session/hello.h"
#include "gateway/sockets.h"

namespace mcastcoll::gateway {
namespace {

constexpr std::uint32_t kGet = 0x47455420;  // "GET "
constexpr std::size_t kMaxMagic = 5;        // header of a TLS record: type, version, length

// A web page can make its own name resolve to this gateway's address, and a browser of this site would give
// the status page to that web page. Such a request has the page's host name.
bool names_an_address(std::string_view request) {
    std::string lower(request);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    constexpr std::string_view kField = "\r\nhost:";
    const std::size_t at = lower.find(kField);
    if (at == std::string::npos) return true;  // no browser
    std::string host = lower.substr(at + kField.size(), lower.find("\r\n", at + 2) - at - kField.size());
    std::erase_if(host, [](char c) { return c == ' ' || c == '\t'; });
    return host == "localhost" || host.starts_with("localhost:") || Endpoint::parse(host).ok();
}

}  // namespace

PendingConnection::PendingConnection(Gateway& gateway, FileDescriptor socket, const Endpoint& from)
    : gateway_(gateway),
      shared_(gateway.shared()),
      socket_(std::move(socket)),
      from_(from),
      host_{from.family, 0, from.address},
      of_site_(gateway.is_of_site(host_, name_of(socket_.get()))),
      foreign_(!of_site_ && !gateway.is_gateway(host_)),
      deadline_(shared_.now() + kHelloTime) {}

void PendingConnection::on_events(std::uint32_t) {
    if (!socket_.valid()) return;
    if (tls_ != nullptr) return go_on_with_tls();
    if (reply_.empty())
        listen();
    else
        reply();
}

// Returns how many bytes to read before decide(): those of the preface, hello, TLS record or request, and no
// more, since later bytes are for the next owner of the socket. 0: the input is invalid.
std::size_t PendingConnection::wanted() const {
    if (size_ < kMaxMagic) return kPrefaceSize;
    if (uses_tls()) {
        const std::size_t record = kMaxMagic + wire::get<std::uint16_t>(input_.data() + 3);
        return record <= input_.size() ? record : 0;
    }
    switch (magic()) {
        case kPrefaceMagic:
            return kPrefaceSize;
        case session::kHelloMagic:
            return session::kHelloSize;
        case kGet:
            return text().find("\r\n\r\n") == std::string_view::npos ? input_.size() : size_;
        default:
            return 0;
    }
}

void PendingConnection::listen() {
    while (socket_.valid() && reply_.empty() && tls_ == nullptr) {
        const std::size_t max = wanted();
        if (max <= size_) {
            decide();
            continue;
        }
        const ssize_t size = recv(socket_.get(), input_.data() + size_, max - size_, MSG_DONTWAIT);
        if (size > 0) {
            size_ += static_cast<std::size_t>(size);
        } else if (size == 0) {
            if (size_ > 0) ++shared_.counters.garbage;
            return close();
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            return close();
        }
    }
}

void PendingConnection::refuse(std::uint64_t& counter) {
    ++counter;
    close_with_reset(socket_);
    close();
}

void PendingConnection::refuse(std::uint64_t& counter, const std::string& why) {
    shared_.warn(fmt::format("a connection from {} is refused: {}", host_.to_string(), why));
    refuse(counter);
}

void PendingConnection::decide() {
    const Bytes bytes = Bytes(input_).first(size_);
    if (uses_tls() && size_ >= kMaxMagic && wanted() != 0) return begin_tls(bytes);
    switch (magic()) {
        case kPrefaceMagic:
            return on_preface(bytes);
        case session::kHelloMagic:
            return on_hello(bytes);
        case kGet:
            return on_get();
        default:
            return refuse(shared_.counters.garbage);
    }
}

void PendingConnection::on_preface(Bytes bytes) {
    GatewayCounters& counters = shared_.counters;
    const auto preface = decode_preface(bytes);
    if (!preface) return refuse(counters.garbage);
    if (!of_site_) return refuse(counters.foreign_connections);
    // The preface must name the address and port of this connection, so that no process can impersonate
    // another.
    if (preface->source != from_)
        return refuse(counters.false_sources, "it claims to be " + preface->source.to_string());
    Peer* peer = gateway_.peer_of(shared_.settings.sites.site_of(preface->target));
    if (peer == nullptr) return refuse(counters.no_route);
    if (const sites::Site& own = shared_.settings.own_site(); !own.may_reach(preface->target))
        return refuse(
            counters.out_of_reach,
            fmt::format("this site may not reach {}{}", preface->target.to_string(),
                        own.reach ? "" : "; the sites file can allow ports below 32768 by \"reach\""));
    if (shared_.full()) return refuse(counters.over_limit);
    peer->adopt(gateway_.take(*this, socket_), *preface);
}

// A foreign connection occupies only the buffer above until a whole TLS client hello has arrived, and until
// the hello proves the key (or replays such a hello).
void PendingConnection::begin_tls(Bytes bytes) {
    if (shared_.tls == nullptr)
        return refuse(shared_.counters.refused_hellos, "it requests TLS, but this gateway has no key");
    tls_ = std::make_unique<Tls>(*shared_.tls, socket_.get(), bytes);
    size_ = 0;
    go_on_with_tls();
    if (socket_.valid() && !tls_->knows_the_key())
        refuse(shared_.counters.wrong_keys, "no TLS: its hello is in pieces");
}

void PendingConnection::go_on_with_tls() {
    Tls::Taken taken{Tls::Progress::done, 0};
    if (!tls_->is_ready()) taken.progress = tls_->shake_hands();
    if (tls_->is_ready()) {
        taken = tls_->read(MutableBytes(input_).subspan(size_, session::kHelloSize - size_), true);
        size_ += taken.size;
    }
    // After a failure this sends the TLS alert.
    if (!tls_->flush()) return close();
    if (size_ == session::kHelloSize) return on_hello(Bytes(input_).first(size_));
    if (taken.progress == Tls::Progress::failed) {
        ++shared_.counters.wrong_keys;
        shared_.warn(
            fmt::format("a connection from {} is refused: no TLS: {}", host_.to_string(), tls_->failure()));
    }
    if (taken.progress != Tls::Progress::waiting) close();
}

void PendingConnection::on_hello(Bytes bytes) {
    GatewayCounters& counters = shared_.counters;
    const bool is_hello = wire::get<std::uint32_t>(bytes.data()) == session::kHelloMagic;
    if (const auto version = session::version_of_hello(bytes); is_hello && version != session::kHelloVersion)
        return refuse(counters.refused_hellos,
                      fmt::format("it uses version {} of the session protocol, this gateway uses {}", version,
                                  session::kHelloVersion));
    const auto hello = session::decode_hello(bytes);
    if (!hello || hello->to != shared_.settings.own_site().name || hello->stream >= session::kMaxStreams)
        return refuse(counters.refused_hellos);
    if (tls_ == nullptr && shared_.tls != nullptr)
        return refuse(counters.refused_hellos,
                      fmt::format("the gateway of {} has no key, but this gateway has one", hello->from));
    Peer* const peer = gateway_.peer_of(shared_.settings.sites.named(hello->from));
    const bool is_other = tls_ != nullptr && tls_->peer() != hello->from;
    if (peer == nullptr || peer->connects() || is_other || shared_.draining)
        return refuse(counters.refused_hellos);
    // Without a key, the address is the only identification of the site's gateway.
    if (tls_ == nullptr && !host_.same_host(peer->site().wan))
        return refuse(counters.foreign_hellos,
                      fmt::format("it claims to be the gateway of {}, which is at {}", hello->from,
                                  peer->site().wan.to_string()));
    peer->accept(gateway_.take(*this, socket_), *hello, std::move(tls_));
}

void PendingConnection::on_get() {
    if (!of_site_) return refuse(shared_.counters.foreign_connections);
    ++shared_.counters.status_pages;
    const bool json = text().starts_with("GET /json"), by_address = names_an_address(text());
    std::string_view body = "Use the gateway's address instead of a name.\n";
    if (by_address) body = gateway_.status(json);
    reply_ =
        fmt::format("HTTP/1.0 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                    by_address ? "200 OK" : "403 Forbidden",
                    json && by_address ? "application/json" : "text/plain; charset=utf-8", body.size(), body);
    reply();
}

void PendingConnection::reply() {
    const bool fine = send_what_fits(socket_.get(), std::as_bytes(std::span(reply_)), replied_);
    if (!fine || replied_ == reply_.size()) close();
}

void PendingConnection::close() {
    socket_.reset();
    gateway_.forget(*this);
}

}  // namespace mcastcoll::gateway
