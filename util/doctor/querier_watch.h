// Listens on an interface for the general queries of IGMP or MLD.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.h"
#include "facts.h"
#include "transport/interface.h"

namespace mcastcoll::doctor {

class QuerierWatch {
  public:
    QuerierWatch(const transport::Interface& interface, int family);
    // Waits until this many seconds after construction. Returns the querier whose query has arrived, if any.
    Querier wait(double seconds);

  private:
    FileDescriptor socket_;
    std::string why_not_;
    int family_;
    std::int64_t begun_ns_;
};

}  // namespace mcastcoll::doctor
