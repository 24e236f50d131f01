// The part of the judge for reception: which hosts receive from which, and losses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "judging.h"

namespace mcastcoll::doctor {

// Fewer lost datagrams, of some hundred at a low rate, are attributed to chance or to a moment's load.
inline constexpr std::uint64_t kFewLost = 3;

class Reception {
  public:
    struct Count {
        std::uint64_t sent = 0, got = 0, twice = 0, late = 0, gap = 0;
        double lost() const {
            return sent == 0 ? 0 : 1 - static_cast<double>(std::min(got, sent)) / static_cast<double>(sent);
        }
        std::uint64_t missing() const { return sent - std::min(got, sent); }
    };

    explicit Reception(Judging& judging);

    void judge();

  private:
    Count count(unsigned from, unsigned to, std::initializer_list<Phase> phases) const;
    bool receives(unsigned to, unsigned from) const { return count(from, to, {Phase::small}).got > 0; }
    // Counts the datagrams from all members from which this member receives any.
    Count count_from_all(unsigned to, std::initializer_list<Phase> phases) const;
    // Why the member's kernel does not send multicasts; empty if it does.
    std::string refusal(unsigned at) const;
    // A rule that may drop multicasts, preferably a rule about multicast; null: no such rule found.
    const Firewall::Rule* rule(unsigned at, bool outgoing, bool surely = false) const;

    bool is_near(unsigned one, unsigned other) const;
    bool has_neighbour(unsigned one) const;
    void judge_alone();
    void split();
    void find_none_receives();
    void find_not_receiving(unsigned at);
    void find_not_received(unsigned at);
    void find_missing_pairs();
    void judge_full_size();
    void judge_again();
    void judge_losses();
    bool shares_machine(unsigned at) const;  // with another member
    void find_overflow(unsigned at, const std::string& title, const std::string& cost);
    void judge_gentle_loss(unsigned at, const Count& gentle);
    void judge_fast_loss(unsigned at, Phase phase, const Count& lost);
    void judge_order();

    Judging& judging_;
    std::vector<std::vector<const ReceivedStream*>> received_;  // by receiver; then by sender and phase
    std::vector<unsigned> senders_, not_receiving_, not_received_;
    bool none_receives_ = false;
    std::size_t working_pairs_ = 0;
};

// The finding for a firewall rule that drops multicasts.
Finding of_rule(const Firewall::Rule& rule, Severity severity, std::string title, std::string cost);

}  // namespace mcastcoll::doctor
