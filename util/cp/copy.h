// One copy from start to end, on every host: the order of the exchanges, and the list of failed hosts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cp/catalogue.h"
#include "cp/channel.h"
#include "cp/pool.h"
#include "cp/progress.h"
#include "cp/queue.h"
#include "cp/sink.h"
#include "cp/summary.h"
#include "hostset/host_set.h"

namespace mcastcoll::cp {

inline constexpr const char* kProgram = "mcastcoll-cp";

struct Settings {
    std::vector<std::string> sources;
    std::string target;
    bool quiet = false, json = false;
};

class Copy {
  public:
    Copy(hostset::HostSet& host_set, const Settings& settings);
    ~Copy();
    int run();

  private:
    Result<void> go();
    Result<hostset::HostSet::Gathered> exchange(std::string mine, unsigned wait_s);
    Result<void> announce();
    Result<void> look_at_targets();
    Result<void> get_ready();
    std::string prepare();
    Result<void> share_catalogue();
    Result<void> share_positions();
    Result<void> copy();
    Result<void> conclude();
    void report();
    void mark_lost(std::uint32_t rank, const std::string& why);
    bool works() const { return works_; }

    hostset::HostSet& host_set_;
    const Settings& settings_;
    Summary summary_;
    bool works_ = true;   // this host has, or is to get, a copy
    std::string target_;  // on this host
    std::string target_state_;
    bool many_ = false, into_ = false;
    Catalogue catalogue_;
    std::vector<std::uint64_t> positions_;  // the start position of each file
    std::shared_ptr<Pool> pool_;
    std::unique_ptr<Channel> channel_;
    Queue arrived_;
    std::unique_ptr<Sink> sink_;
    std::unique_ptr<Progress> progress_;
};

}  // namespace mcastcoll::cp
