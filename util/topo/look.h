// Where the reports of running jobs come from: this host, or all hosts of a crew.
#pragma once

#include <memory>

#include "crew/crew.h"
#include "job.h"

namespace mcastcoll::topo {

class Look {
  public:
    // No crew: this host alone.
    Look(std::vector<std::string> folders, std::unique_ptr<crew::Crew> crew);
    ~Look();
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

    bool is_head() const { return crew_ == nullptr || crew_->is_head(); }
    // Asks all writers for news during the next seconds. An error: the crew is lost.
    Result<void> ask_for_news();
    // What all have reported. A host that is lost is complained about once.
    Result<LoadedReports> take();
    // What the others do until the head is done.
    Result<void> serve();

  private:
    Result<void> tell(const std::string& word);

    const std::vector<std::string> folders_;
    const std::unique_ptr<crew::Crew> crew_;
    std::vector<std::uint32_t> lost_;
};

}  // namespace mcastcoll::topo
