#include <errno.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstring>
#include <string_view>

#include "gateway/gateway.h"
#include "relay/preface.h"
#include "wire/bytes.h"

namespace mcastcoll::gateway {
namespace {

constexpr std::uint32_t kGet = 0x47455420;  // "GET "

}  // namespace

Newcomer::Newcomer(Gateway& gateway, FileDescriptor socket, const Endpoint& from)
    : gateway_(gateway),
      socket_(std::move(socket)),
      host_{from.family, 0, from.address},
      ours_(gateway.is_ours(host_, name_of(socket_.get()))),
      stranger_(!ours_ && !gateway.is_gateway(host_)),
      deadline_(gateway.now() + gateway.settings().greeting) {}

void Newcomer::on_events(std::uint32_t) {
    if (!socket_.valid()) return;
    if (reply_.empty())
        listen();
    else
        reply();
}

// Never more than belongs to the greeting: what follows is for whoever takes over.
std::size_t Newcomer::wanted() const {
    if (size_ < 4) return relay::kPrefaceSize;
    switch (wire::get<std::uint32_t>(words_.data())) {
        case relay::kPrefaceMagic:
            return relay::kPrefaceSize;
        case trunk::kHelloMagic:
            return trunk::kHelloSize;
        case kGet: {
            const std::string_view text(reinterpret_cast<const char*>(words_.data()), size_);
            return text.find("\r\n\r\n") != std::string_view::npos || size_ == words_.size() ? size_
                                                                                             : words_.size();
        }
        default:
            return 0;
    }
}

void Newcomer::listen() {
    while (socket_.valid()) {
        const std::size_t most = wanted();
        if (most <= size_) return decide();
        const ssize_t size = recv(socket_.get(), words_.data() + size_, most - size_, MSG_DONTWAIT);
        if (size > 0) {
            size_ += static_cast<std::size_t>(size);
        } else if (size == 0) {
            if (size_ > 0) ++gateway_.counters().garbage;
            return close();
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            return close();
        }
    }
}

void Newcomer::refuse(std::uint64_t& counter) {
    ++counter;
    close_with_reset(socket_);
    close();
}

void Newcomer::decide() {
    GatewayCounters& counters = gateway_.counters();
    const Bytes words = Bytes(words_).first(size_);
    const std::uint32_t magic = wire::get<std::uint32_t>(words.data());
    if (magic == relay::kPrefaceMagic) {
        const auto preface = relay::decode_preface(words);
        if (!preface) return refuse(counters.garbage);
        if (!ours_) return refuse(counters.strangers);
        Peer* peer = gateway_.peer_of(preface->target);
        if (peer == nullptr) return refuse(counters.no_route);
        if (gateway_.full()) return refuse(counters.over_limit);
        FileDescriptor socket = gateway_.take(*this, socket_);
        return peer->adopt(std::move(socket), *preface);
    }
    if (magic == trunk::kHelloMagic) {
        const auto hello = trunk::decode_hello(words);
        if (!hello || hello->to != gateway_.settings().own_site().name ||
            hello->stream >= trunk::kMaxStreams || hello->with_key != gateway_.settings().key.has_value())
            return refuse(counters.refused_hellos);
        Peer* peer = gateway_.peer_named(hello->from);
        if (peer == nullptr || peer->connects() || gateway_.draining())
            return refuse(counters.refused_hellos);
        // Without a key an address is all that tells the site's gateway from anybody else.
        if (!hello->with_key && !host_.same_host(peer->site().wan)) {
            gateway_.say(fmt::format("{} says that it is the gateway of {}, which is at {}: refused",
                                     host_.to_string(), hello->from, peer->site().wan.to_string()));
            return refuse(counters.foreign_hellos);
        }
        const bool known = !stranger_;
        trunk::HelloBytes bytes;
        std::copy(words.begin(), words.end(), bytes.begin());
        FileDescriptor socket = gateway_.take(*this, socket_);
        return peer->greet(std::move(socket), *hello, bytes, known);
    }
    if (magic != kGet) return refuse(counters.garbage);
    if (!ours_) return refuse(counters.strangers);
    ++counters.status_pages;
    const std::string_view text(reinterpret_cast<const char*>(words_.data()), size_);
    const bool json = text.starts_with("GET /json");
    const std::string body = json ? status_as_json(gateway_) : status_as_text(gateway_);
    reply_ = fmt::format(
        "HTTP/1.0 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        json ? "application/json" : "text/plain; charset=utf-8", body.size(), body);
    reply();
}

void Newcomer::reply() {
    const bool fine = send_what_fits(socket_.get(), std::as_bytes(std::span(reply_)), replied_);
    if (!fine || replied_ == reply_.size()) close();
}

void Newcomer::close() {
    socket_.reset();
    gateway_.forget(*this);
}

}  // namespace mcastcoll::gateway
