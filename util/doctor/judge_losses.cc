// Judges losses between hosts that receive from each other.
#include <fmt/format.h>

#include "reception.h"

namespace mcastcoll::doctor {
namespace {

constexpr double kLittleLost = 0.003;
constexpr double kMuchLostFast = 0.01;
constexpr double kManyTwice = 0.001, kManyLate = 0.01;

}  // namespace

void Reception::judge_losses() {
    bool any = false;
    for (const unsigned at : senders_) {
        const Count gentle = count_from_all(at, {Phase::small, Phase::full});
        const bool full_lost = judging_.found("full-size-lost");
        const Count looked = full_lost ? count_from_all(at, {Phase::small}) : gentle;
        const bool loses = looked.missing() >= kFewLost && looked.lost() > kLittleLost;
        if (loses) judge_gentle_loss(at, looked);
        any = any || loses;
        if (full_lost) continue;
        for (const Phase phase : {Phase::slow, Phase::medium, Phase::fast, Phase::burst}) {
            const Count lost = count_from_all(at, {phase});
            if (lost.lost() <= std::max(kMuchLostFast, loses ? 3 * looked.lost() : 0)) continue;
            judge_fast_loss(at, phase, lost);
            any = true;
            break;
        }
    }
    if (!any)
        judging_.fine(fmt::format("no loss at up to {} Mbit/s from each host, nor in bursts",
                                  judging_.facts().top_mbit));
}

void Reception::judge_gentle_loss(unsigned at, const Count& gentle) {
    const std::string title =
        fmt::format("{:.1f} % of multicasts are lost at any rate.", gentle.lost() * 100);
    const std::string cost = fmt::format(
        "Each lost datagram must be requested and sent again, one by one, which takes time; the longest run "
        "of lost datagrams was {}.",
        gentle.gap);
    const bool overflow = judging_.host(at).overflows > 0;
    if (const Firewall::Rule* found = rule(at, false, overflow))
        return judging_.find(of_rule(*found, Severity::limits, title, cost), {at});
    if (overflow) return find_overflow(at, title, cost);
    judging_.find({"loss",
                   Severity::limits,
                   title,
                   "The network or the interface drops them: a bad cable, a duplex mismatch, storm control, "
                   "or wireless.",
                   cost,
                   fmt::format("ip -s link show {0}; ethtool -S {0} | grep -i -e err -e drop",
                               judging_.host(at).network.interface),
                   {}},
                  {at});
}

bool Reception::shares_machine(unsigned at) const {
    return std::any_of(senders_.begin(), senders_.end(), [&](unsigned other) {
        return other != at && judging_.host(other).machine.boot == judging_.host(at).machine.boot;
    });
}

void Reception::find_overflow(unsigned at, const std::string& title, const std::string& cost) {
    const std::uint64_t buffer =
        4 * std::max<std::uint64_t>(judging_.host(at).network.buffer_wanted, std::uint64_t{1} << 20);
    judging_.find({"overflow",
                   shares_machine(at) ? Severity::note : Severity::limits,
                   title,
                   "The receive buffer was full: it is too small, or the process did not get a core in time.",
                   cost,
                   fmt::format("sysctl -w net.core.rmem_max={0}, and FI_MCASTCOLL_RCVBUF={0}", buffer),
                   {}},
                  {at});
}

void Reception::judge_fast_loss(unsigned at, Phase phase, const Count& lost) {
    const std::uint64_t parts = phase == Phase::slow ? 16 : phase == Phase::medium ? 4 : 1;
    const std::string when =
        phase == Phase::burst ? "in bursts" : fmt::format("at {} Mbit/s", judging_.facts().top_mbit / parts);
    const std::string title = fmt::format("{:.1f} % of multicasts are lost {}.", lost.lost() * 100, when);
    const bool shares = shares_machine(at);
    const std::string cost =
        shares ? "The hosts share the cores of one machine, so this result does not apply to a cluster."
               : "Roots slow down, and lost datagrams must be repaired.";
    if (judging_.host(at).overflows > 0) return find_overflow(at, title, cost);
    if (const Firewall::Rule* found = rule(at, false, true))
        return judging_.find(of_rule(*found, Severity::limits, title, cost), {at});
    judging_.find(
        {"loss-at-rate",
         shares ? Severity::note : Severity::limits,
         title,
         "The network or the interface drops datagrams that arrive too fast: storm control, a slow link, "
         "small queues in the switch.",
         cost,
         fmt::format("ethtool -S {0} | grep -i -e drop -e miss; ethtool -G {0} rx 4096; storm control on the "
                     "switch",
                     judging_.host(at).network.interface),
         {}},
        {at});
}

void Reception::judge_order() {
    for (const unsigned at : senders_) {
        const Count all = count_from_all(
            at, {Phase::small, Phase::full, Phase::slow, Phase::medium, Phase::fast, Phase::burst});
        if (all.got == 0) continue;
        const auto share = [&](std::uint64_t part) {
            return static_cast<double>(part) / static_cast<double>(all.got);
        };
        if (share(all.twice) > kManyTwice && all.twice >= kFewLost)
            judging_.find(
                {"duplicates",
                 Severity::limits,
                 "Multicasts arrive more than once.",
                 fmt::format("{:.0f} copies of 100 datagrams arrived: there are two paths, or a loop: two "
                             "bridges, a bond that is not configured on the switch, a mirror port.",
                             100 + share(all.twice) * 100),
                 "The copies are dropped; each costs as much as a datagram.",
                 "Check for two paths between the switches without spanning tree, and check the bond's mode.",
                 {}},
                {at});
        if (share(all.late) > kManyLate)
            judging_.find(
                {"reordered",
                 Severity::note,
                 "Multicasts arrive out of order.",
                 fmt::format(
                     "{:.0f} % arrived after later ones: datagrams are spread over several links or queues.",
                     share(all.late) * 100),
                 "Members request data that is only late.",
                 "Bonds: a transmit hash by addresses (layer2+3), not round robin.",
                 {}},
                {at});
    }
}

}  // namespace mcastcoll::doctor
