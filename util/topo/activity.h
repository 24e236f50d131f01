// Activity of running jobs: the difference between two sets of reports.
#pragma once

#include "job.h"

namespace mcastcoll::topo {

// Activity of a group on one host between two sets of reports. Rates are per second.
struct Activity {
    std::uint64_t key = 0;
    std::string program, host;
    std::vector<Rank> reporting;        // processes of the host that wrote both times
    double operations = 0, bytes = 0;   // of one member; the maximum of the host's members
    double sent = 0;                    // multicast datagrams, sum of the members
    double received = 0, repaired = 0;  // fragments: received by multicast; retransmitted or computed
    std::string transport, repair, state;
    Rank awaited = kNoRank;

    // The share of fragments that did not arrive by multicast, 0 to 1.
    double loss() const { return received + repaired > 0 ? repaired / (received + repaired) : 0; }
};

// Sorted by group, then host. Processes and groups in only one of the two sets are left out. A process
// without a new report counts as idle: processes write while they are inside MPI or libfabric.
std::vector<Activity> compare(const LoadedReports& before, const LoadedReports& now);

// One point in time of the charts of a page.
struct Sample {
    double at = 0;  // seconds since the first sample
    std::vector<Activity> activities;
};

std::string as_table(const std::vector<Activity>& activities);
// Returns a sample as a JSON object, on a single line.
std::string as_json_line(const Sample& sample);
// Returns all counters of all processes in Prometheus's text format (exposition format 0.0.4).
std::string as_metrics(const LoadedReports& loaded);
// Returns a self-contained HTML page: the trees, the latest table, charts over time.
std::string as_page(const std::vector<JobGroup>& groups, const std::vector<Sample>& history, Rank root);

}  // namespace mcastcoll::topo
