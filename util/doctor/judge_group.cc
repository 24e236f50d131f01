// Judges the querier, and the result of the test group.
#include <fmt/format.h>

#include "judging.h"

namespace mcastcoll::doctor {
namespace {

// The remark when no query has arrived, but the wait was too short to prove that there is no querier.
std::string proves_nothing(unsigned interval_s) {
    const unsigned surely_s = interval_s + 5, forgotten_s = 2 * interval_s + 50;
    return fmt::format(
        "Queriers send a query every {} s {}, so this time was too short. `--listen {}` detects reliably "
        "whether there is a querier, and `--listen {}` whether a switch stops forwarding to groups.",
        interval_s, interval_s == kUsualQueryInterval_s ? "by default" : "here (--query-interval)", surely_s,
        forgotten_s);
}

}  // namespace

void judge_querier(Judging& judging) {
    std::vector<unsigned> without_query;
    double waited_s = 0;
    for (const unsigned i : judging.senders()) {
        const Host& host = judging.host(i);
        if (host.network.loopback) continue;
        const char* const what = host.network.family == 4 ? "IGMP queries" : "MLD queries";
        if (!host.querier.received) {
            judging.unseen(what, host.querier.received.why_not);
        } else if ((*host.querier.received).empty()) {
            without_query.push_back(i);
            waited_s = host.querier.waited_s;
        } else {
            judging.fine(fmt::format("{} of {} are received, so switches know the group members", what,
                                     *host.querier.received));
            return;
        }
    }
    if (without_query.empty()) return;
    const unsigned interval_s = judging.facts().query_interval_s;
    const bool sure = waited_s >= interval_s;
    judging.find({sure ? "querier-missing" : "no-query-received",
                  sure ? Severity::limits : Severity::note,
                  fmt::format("No IGMP (MLD) query was received within {:.0f} s.", waited_s),
                  !sure ? proves_nothing(interval_s)
                  : interval_s == kUsualQueryInterval_s
                      ? std::string("No switch or router of this network is an IGMP (MLD) querier.")
                      : fmt::format("No switch or router of this network is an IGMP (MLD) querier, or its "
                                    "query interval is longer than {} s (--query-interval).",
                                    interval_s),
                  "None if the switches do not snoop IGMP. If they do, groups lose multicast after some "
                  "minutes without a querier.",
                  "On a switch: enable an IGMP querier for this VLAN, or disable IGMP snooping.",
                  {}});
}

void judge_group(Judging& judging) {
    std::uint64_t sent = 0, received = 0;
    unsigned ran = 0, members = 0;
    for (const unsigned i : judging.present()) {
        const auto& result = judging.host(i).end_to_end;
        if (!result) continue;
        ++ran;
        members = result->members;
        sent += result->multicast_sent;
        received += result->multicast_received;
        if (result->error.empty() || judging.found("address-shared")) continue;
        judging.find(
            {"group-failed",
             Severity::broken,
             "A group, a barrier and a broadcast through libfabric failed.",
             result->warning.empty() ? result->error + "."
                                     : fmt::format("{}. The provider: {}.", result->error, result->warning),
             "Collectives of programs will fail in the same way, or will run without mcastcoll.",
             "For details: FI_LOG_LEVEL=info mcastcoll-doctor 2>&1 | grep -a :mcastcoll:",
             {}},
            {i});
    }
    if (ran == 0 || judging.found("group-failed") || judging.found("address-shared")) return;
    if (judging.senders().size() > 1 && sent == 0 &&
        judging.host(judging.present().front()).libraries.multicast && !judging.found("none-receives"))
        judging.find({"group-without-multicast",
                      Severity::limits,
                      "A group formed, but did not use multicast.",
                      "During the join no member received the multicasts of another member, or each member "
                      "is in a segment of its own.",
                      "Collectives between hosts use point-to-point messages.",
                      "For the reason: FI_LOG_LEVEL=info mcastcoll-doctor 2>&1 | grep -a :mcastcoll:",
                      {}});
    judging.fine(
        sent > 0 ? fmt::format("a group of {} members completed a barrier and a broadcast without an error: "
                               "{} datagrams multicast, {} fragments received",
                               members, sent, received)
                 : fmt::format("a group of {} members completed a barrier and a broadcast without an error{}",
                               members, judging.senders().size() > 1 ? "" : ", in shared memory"));
}

}  // namespace mcastcoll::doctor
