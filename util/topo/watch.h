// What running jobs do: the difference between two looks at what their processes report.
#pragma once

#include "job.h"

namespace mcastcoll::topo {

// Of a group on one host, between two looks. The rates are a second's.
struct Activity {
    std::uint64_t key = 0;
    std::string program, host;
    std::vector<Rank> reporting;       // those of the host's processes that wrote both times
    double operations = 0, bytes = 0;  // that one member took part in: the most of the host's
    double sent = 0;                   // multicast datagrams, by all of them
    double heard = 0, repaired = 0;    // fragments: by multicast; asked for or computed instead
    std::string lane, repair, state;
    Rank awaited = kNoRank;

    // The share of fragments that the multicast did not bring, 0 to 1.
    double loss() const { return heard + repaired > 0 ? repaired / (heard + repaired) : 0; }
};

// By group, then host. Processes and groups that are in one of the looks only are left out; who has written
// nothing in between, since it is outside of MPI or libfabric, did nothing.
std::vector<Activity> compare(const LoadedReports& before, const LoadedReports& now);

// Everything that was seen, for the charts of a page.
struct Sample {
    double at = 0;  // seconds since the first look
    std::vector<Activity> activities;
};

std::string as_table(const std::vector<Activity>& activities);
// One object on a line.
std::string as_json_line(const Sample& sample);
// All counters of all processes in Prometheus's text format (exposition format 0.0.4).
std::string as_metrics(const LoadedReports& loaded);
// One HTML page that needs nothing else: the trees, the latest table, charts over time.
std::string as_page(const std::vector<JobGroup>& groups, const std::vector<Sample>& history, Rank root);

}  // namespace mcastcoll::topo
