// Watches the processes of peers for their death at the request of groups. Finds a peer's process by its
// watch point (transport/watch_point.h), which the peer sends in its hello.
#pragma once

#include <memory>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "transport/peer_watch.h"
#include "wire/join.h"

namespace mcastcoll::ports {

class ProcessWatch {
  public:
    using Lost = FunctionRef<void(transport::PeerWatch::Id peer, int error, std::string_view reason)>;

    Result<void> open(const transport::PeerWatchOptions& options);
    bool is_open() const { return watch_ != nullptr; }
    // The watch point of this process.
    wire::ByteString own_point() const;

    void watch(transport::PeerWatch::Id peer, const wire::ByteString& watch_point, Nanoseconds now);
    // Watches a peer that may be gone, and checks the peer at once.
    void look_at(transport::PeerWatch::Id peer, const wire::ByteString& watch_point, Nanoseconds now);
    // Whether the host of a watched peer is not answering at present.
    bool any_silent(Nanoseconds now) const { return watch_->any_silent(now); }
    // Checks all watched peers, so that any_silent() sees a silent host within one or two seconds.
    void look_at_all(Nanoseconds now) { watch_->look_at_all(now); }
    // Reports dead peers; does nothing if called again within 10 ms.
    void check(Nanoseconds now, Lost lost);

    Nanoseconds next_deadline() const { return watch_->next_deadline(); }
    int descriptor() const { return watch_->descriptor(); }
    // Number of look_at() calls.
    std::uint64_t suspicions() const { return suspicions_; }

  private:
    std::unique_ptr<transport::PeerWatch> watch_;
    Nanoseconds checked_at_{};
    std::uint64_t suspicions_ = 0;
    std::uint32_t scope_ = 0;  // see SocketAddress::seen_from
};

}  // namespace mcastcoll::ports
