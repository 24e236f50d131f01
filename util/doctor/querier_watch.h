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
    // Returns the query received since construction; waits until construction is this long ago.
    Querier wait(double seconds);

  private:
    FileDescriptor socket_;
    std::string why_not_;
    int family_;
    std::int64_t begun_ns_;
};

}  // namespace mcastcoll::doctor
