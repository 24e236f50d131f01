#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "split/call.h"
#include "split/ledger.h"
#include "split/prefaces.h"

namespace mcastcoll::split {
namespace {

enum class Found {
    nothing,   // nothing yet, or only a part of a preface
    ordinary,  // no preface: the gateway's host itself, an error, or the end
    preface,   // taken off
    unknown,   // a preface, but not one of ours
};

bool begins_as_preface(const std::byte* bytes, std::size_t length) noexcept {
    std::array<std::byte, 4> magic;
    wire::put(magic.data(), relay::kPrefaceMagic);
    return std::memcmp(bytes, magic.data(), std::min(length, magic.size())) == 0;
}

// Looks without taking, so that what is no preface is left for the program.
Found take_preface(int fd, relay::Endpoint& source) noexcept {
    std::array<std::byte, relay::kPrefaceSize> bytes;
    ssize_t n = 0;
    do n = real_recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Found::nothing : Found::ordinary;
    const auto length = static_cast<std::size_t>(n);
    if (length == 0 || !begins_as_preface(bytes.data(), length)) return Found::ordinary;
    if (length < bytes.size()) return Found::nothing;
    const auto preface = relay::decode_preface(bytes);
    if (!preface) return Found::unknown;
    source = preface->source;
    real_recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return Found::preface;
}

Found wait_for_preface(int fd, relay::Endpoint& source) noexcept {
    if (!wait_for(fd, POLLIN, kPatience_ms)) return Found::nothing;
    Found found = take_preface(fd, source);
    for (int i = 0; i < 2 * kPatience_ms && found == Found::nothing; i++) {
        pause_a_little();
        found = take_preface(fd, source);
    }
    return found;
}

}  // namespace

bool receive_accepted(int fd, relay::Endpoint& peer) noexcept {
    const KeepErrno keep;
    Connection accepted;
    accepted.cookie = cookie_of(fd);
    accepted.accepted = true;
    accepted.peer = peer;
    const Found found = wait_for_preface(fd, accepted.peer);
    if (found == Found::ordinary) return true;
    if (found == Found::unknown) return keep.instead(ECONNABORTED);
    if (found == Found::nothing) accepted.stage = Stage::to_take;
    peer = accepted.peer;
    const Locked locked;
    return add(accepted) || keep.instead(ENOBUFS);
}

bool may_read(int fd, int flags) noexcept {
    return may_go_on(fd, flags, Stage::to_take, [fd](Connection& known) {
        switch (take_preface(fd, known.peer)) {
            case Found::nothing:
                return EAGAIN;
            case Found::unknown:
                return ECONNABORTED;
            case Found::ordinary:
                remove(known.cookie);
                return 0;
            case Found::preface:
                settle(known);
                return 0;
        }
        return 0;
    });
}

}  // namespace mcastcoll::split
