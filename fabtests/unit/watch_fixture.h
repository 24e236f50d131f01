// Real processes that are watched, for the tests of PeerWatch.
#pragma once

#include <criterion/criterion.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "transport/peer_watch.h"
#include "transport_fixture.h"

namespace mcastcoll::test {

inline SocketAddress loopback() {
    return SocketAddress::parse("127.0.0.1").value();
}

inline std::unique_ptr<PeerWatch> open_or_fail(const PeerWatchOptions& options) {
    auto opened = PeerWatch::open(options);
    cr_assert(opened.ok(), "%s", opened.ok() ? "" : opened.error().message.c_str());
    return std::move(opened).value();
}

// A peer: opens its own PeerWatch, tells its point, then never cares for it again.
inline int peer(const PeerWatchOptions& options, const Pipe& point) {
    auto own = PeerWatch::open(options);
    if (!own) return 2;
    const auto encoded = encode_watch_point(own.value()->local_point());
    point.put_all(encoded.data(), encoded.size());
    for (;;) ::pause();
}

inline WatchPoint receive_point(const Pipe& pipe) {
    std::array<std::byte, kWatchPointBytes> encoded;
    cr_assert(pipe.get_all(encoded.data(), encoded.size(), kPatienceMs));
    auto point = decode_watch_point(encoded);
    cr_assert(point.ok());
    return point.value();
}

// Those found dead within the time; returns early when `expected` have been.
inline std::vector<PeerWatch::Death> deaths(PeerWatch& watch, std::size_t expected, int milliseconds) {
    std::vector<PeerWatch::Death> found;
    eventually(milliseconds, [&] {
        std::array<PeerWatch::Death, 4> dead;
        const std::size_t count = watch.poll(now(), dead);
        found.insert(found.end(), dead.begin(), dead.begin() + static_cast<std::ptrdiff_t>(count));
        return found.size() >= expected;
    });
    return found;
}

inline void expect_reason(const PeerWatch::Death& death, const std::string& part) {
    cr_assert(death.reason.find(part) != std::string::npos, "'%s' is not in the reason '%s'", part.c_str(),
              death.reason.c_str());
}

}  // namespace mcastcoll::test
