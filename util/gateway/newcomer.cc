#include <errno.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include "gateway/gateway.h"

namespace mcastcoll::gateway {
namespace {

constexpr std::uint32_t kGet = 0x47455420;  // "GET "

}  // namespace

Newcomer::Newcomer(Gateway& gateway, FileDescriptor socket, const Endpoint& from)
    : gateway_(gateway),
      shared_(gateway.shared()),
      socket_(std::move(socket)),
      from_(from),
      host_{from.family, 0, from.address},
      ours_(gateway.is_ours(host_, name_of(socket_.get()))),
      stranger_(!ours_ && !gateway.is_gateway(host_)),
      deadline_(shared_.now() + kGreetingTime) {}

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
    switch (magic()) {
        case relay::kPrefaceMagic:
            return relay::kPrefaceSize;
        case trunk::kHelloMagic:
            return greeting_ ? trunk::kHelloSize + trunk::kProofSize : trunk::kHelloSize;
        case kGet:
            return text().find("\r\n\r\n") == std::string_view::npos ? words_.size() : size_;
        default:
            return 0;
    }
}

void Newcomer::listen() {
    while (socket_.valid() && reply_.empty()) {
        const std::size_t most = wanted();
        if (most <= size_) {
            decide();
            continue;
        }
        const ssize_t size = recv(socket_.get(), words_.data() + size_, most - size_, MSG_DONTWAIT);
        if (size > 0) {
            size_ += static_cast<std::size_t>(size);
        } else if (size == 0) {
            if (size_ > 0 && !greeting_) ++shared_.counters.garbage;
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

void Newcomer::refuse(std::uint64_t& counter, const std::string& why) {
    shared_.warn(fmt::format("{} is refused: {}", host_.to_string(), why));
    refuse(counter);
}

void Newcomer::decide() {
    const Bytes words = Bytes(words_).first(size_);
    switch (magic()) {
        case relay::kPrefaceMagic:
            return on_preface(words);
        case trunk::kHelloMagic:
            return greeting_ ? on_proof(words.last(trunk::kProofSize)) : on_hello(words);
        case kGet:
            return on_get();
        default:
            return refuse(shared_.counters.garbage);
    }
}

void Newcomer::on_preface(Bytes words) {
    GatewayCounters& counters = shared_.counters;
    const auto preface = relay::decode_preface(words);
    if (!preface) return refuse(counters.garbage);
    if (!ours_) return refuse(counters.strangers);
    // A process says by which address and port of its host this connection comes: nobody speaks for another.
    if (preface->source != from_)
        return refuse(counters.false_sources, "it says that it is " + preface->source.to_string());
    Peer* peer = gateway_.peer_of(shared_.settings.sites.site_of(preface->target));
    if (peer == nullptr) return refuse(counters.no_route);
    if (!shared_.settings.own_site().may_reach(preface->target))
        return refuse(counters.out_of_reach, "this site may not reach " + preface->target.to_string());
    if (shared_.full()) return refuse(counters.over_limit);
    peer->adopt(gateway_.take(*this, socket_), *preface);
}

void Newcomer::on_hello(Bytes words) {
    GatewayCounters& counters = shared_.counters;
    const auto& key = shared_.settings.key;
    const auto hello = trunk::decode_hello(words);
    if (!hello || hello->to != shared_.settings.own_site().name || hello->stream >= trunk::kMaxStreams ||
        hello->with_key != key.has_value())
        return refuse(counters.refused_hellos);
    peer_ = gateway_.peer_of(shared_.settings.sites.named(hello->from));
    if (peer_ == nullptr || peer_->connects() || shared_.draining) return refuse(counters.refused_hellos);
    // Without a key an address is all that tells the site's gateway from anybody else.
    if (!hello->with_key && !host_.same_host(peer_->site().wan))
        return refuse(counters.foreign_hellos,
                      fmt::format("it says that it is the gateway of {}, which is at {}", hello->from,
                                  peer_->site().wan.to_string()));
    greeting_ = peer_->greet(hello->stream);
    greeting_->theirs = *hello;
    if (key) {
        const auto derived =
            derive_keys(*key, greeting_->keys, hello->public_key, words, greeting_->our_bytes);
        if (!derived) return refuse(counters.wrong_keys);
        greeting_->derived = *derived;
    }
    std::array<std::byte, trunk::kHelloSize + trunk::kProofSize> answer;
    std::ranges::copy(greeting_->our_bytes, answer.begin());
    std::ranges::copy(greeting_->derived.acceptor_proof, answer.begin() + trunk::kHelloSize);
    std::size_t sent = 0;
    if (!send_what_fits(socket_.get(), answer, sent) || sent < answer.size()) close();
}

void Newcomer::on_proof(Bytes proof) {
    if (!equal(greeting_->derived.connector_proof, proof)) return refuse(shared_.counters.wrong_keys);
    peer_->accept(gateway_.take(*this, socket_), std::move(*greeting_));
}

void Newcomer::on_get() {
    if (!ours_) return refuse(shared_.counters.strangers);
    ++shared_.counters.status_pages;
    const bool json = text().starts_with("GET /json");
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
