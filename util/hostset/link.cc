#include "hostset/link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "base/system.h"
#include "gateway/sockets.h"

namespace mcastcoll::hostset {

namespace {
constexpr unsigned kDeadAfter_ms = 30'000;  // for a host that no longer acknowledges
constexpr std::size_t kReadBytes = 64 << 10;
}  // namespace

Link::Link(FileDescriptor socket, const wire::Key& token, Side side)
    : socket_(std::move(socket)), token_(token), side_(side) {
    if (!kernel_random(own_number_)) socket_.reset();  // a closed socket ends the link
    gateway::set_option(descriptor(), IPPROTO_TCP, TCP_NODELAY, 1);
    gateway::set_option(descriptor(), SOL_SOCKET, SO_KEEPALIVE, 1);
    gateway::set_option(descriptor(), IPPROTO_TCP, TCP_KEEPIDLE, 10);
    gateway::set_option(descriptor(), IPPROTO_TCP, TCP_KEEPINTVL, 5);
    gateway::set_option(descriptor(), IPPROTO_TCP, TCP_USER_TIMEOUT, kDeadAfter_ms);
    out_.assign(reinterpret_cast<const char*>(own_number_.data()), own_number_.size());
}

short Link::events() const {
    return static_cast<short>(all_sent() ? POLLIN : POLLIN | POLLOUT);
}

void Link::send(std::string_view message) {
    if (sealer_ == nullptr) {
        unsealed_.emplace_back(message);
        return;
    }
    if (all_sent()) {
        out_.clear();
        sent_ = 0;
    }
    out_ += sealer_->seal(message);
}

void Link::derive_keys() {
    const std::string_view numbers[] = {
        {reinterpret_cast<const char*>(own_number_.data()), own_number_.size()},
        std::string_view(in_).substr(0, own_number_.size())};
    const bool head = side_ == Side::head;
    const std::string both = std::string(numbers[head ? 0 : 1]).append(numbers[head ? 1 : 0]);
    const wire::Key from_head = wire::derive(token_, "crew: from the head", bytes_of(both));
    const wire::Key from_member = wire::derive(token_, "crew: from a member", bytes_of(both));
    sealer_ = std::make_unique<Sealer>(head ? from_head : from_member);
    opener_ = std::make_unique<Opener>(head ? from_member : from_head, max_);
    opener_->append(std::string_view(in_).substr(own_number_.size()));
    in_.clear();
    for (const std::string& message : unsealed_) send(message);
    unsealed_.clear();
}

bool Link::receive() {
    std::array<char, kReadBytes> buffer;
    for (;;) {
        const ssize_t got = ::recv(descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got == 0) return false;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN;
        const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
        if (opener_ != nullptr) {
            opener_->append(bytes);
            // Until the other side is authenticated, input is limited: read no more for now.
            if (max_ == kMaxHello) return true;
            continue;
        }
        in_ += bytes;
        if (in_.size() >= own_number_.size()) derive_keys();
    }
}

bool Link::progress() {
    if (!socket_.valid()) return false;
    const bool whole = receive();
    return gateway::send_what_fits(descriptor(), bytes_of(out_), sent_) && whole;
}

Result<std::optional<std::string>> Link::next() {
    if (opener_ == nullptr) return std::optional<std::string>();
    opener_->allow(max_);
    return opener_->next();
}

Result<std::string> await_message(Link& link, Deadline deadline) {
    for (;;) {
        const bool connected = link.progress();
        auto message = link.next();
        if (!message) return message.error();
        if (message.value()) return std::move(*message.value());
        if (!connected) return Error{ECONNRESET, "the connection has ended"};
        if (deadline.over()) return Error{ETIMEDOUT, "no response in time"};
        pollfd one{link.descriptor(), link.events(), 0};
        ::poll(&one, 1, deadline.left_ms());
    }
}

}  // namespace mcastcoll::hostset
