// Collects the reports of running jobs, from this host or from all hosts of a host set.
#pragma once

#include <memory>

#include "hostset/host_set.h"
#include "job.h"

namespace mcastcoll::topo {

class Look {
  public:
    // Collects from this host only if `host_set` is nullptr.
    Look(std::vector<std::string> folders, std::unique_ptr<hostset::HostSet> host_set);
    ~Look();
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

    bool is_head() const { return host_set_ == nullptr || host_set_->is_head(); }
    // Requests new reports from all writers within the next seconds. Returns an error if the host set is
    // lost.
    Result<void> request_reports();
    // Returns the reports of all hosts; names a lost host once, in the complaints.
    Result<LoadedReports> take();
    // Serves the head's requests until the head ends.
    Result<void> serve();

  private:
    Result<void> send_request(const std::string& request);

    const std::vector<std::string> folders_;
    const std::unique_ptr<hostset::HostSet> host_set_;
    std::vector<std::uint32_t> lost_;
};

}  // namespace mcastcoll::topo
