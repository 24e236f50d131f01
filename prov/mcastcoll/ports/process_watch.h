// The processes of peers, as groups ask for them to be watched: by the peers' watch points (wire::Hello), and
// looked after every now and then.
#pragma once

#include <memory>
#include <string_view>

#include "base/function_ref.h"
#include "base/result.h"
#include "transport/peer_watch.h"
#include "wire/join.h"

namespace mcastcoll::ofi {

class ProcessWatch {
  public:
    using Lost = FunctionRef<void(PeerWatch::Id peer, int error, std::string_view reason)>;

    Result<void> open(const PeerWatchOptions& options);
    bool is_open() const { return watch_ != nullptr; }
    // How this process is watched.
    wire::ByteString own_point() const;

    void watch(PeerWatch::Id peer, const wire::ByteString& watch_point, Nanoseconds now);
    // The same, for a peer that may be gone: if so, the watch is to say it soon.
    void look_at(PeerWatch::Id peer, const wire::ByteString& watch_point, Nanoseconds now);
    // Whether the host of a watched peer answers nothing just now, and what makes that show in a second or
    // two.
    bool any_silent(Nanoseconds now) const { return watch_->any_silent(now); }
    void look_at_all(Nanoseconds now) { watch_->look_at_all(now); }
    // Hands out who is gone; not more often than every few milliseconds.
    void check(Nanoseconds now, Lost lost);

    Nanoseconds next_deadline() const { return watch_->next_deadline(); }
    int descriptor() const { return watch_->descriptor(); }
    // Times that somebody was looked at.
    std::uint64_t doubts() const { return doubts_; }

  private:
    std::unique_ptr<PeerWatch> watch_;
    Nanoseconds checked_at_{};
    std::uint64_t doubts_ = 0;
    std::uint32_t scope_ = 0;  // as SocketAddress::seen_from
};

}  // namespace mcastcoll::ofi
