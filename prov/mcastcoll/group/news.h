// What the user reads about a group's beginning, its engine, its operations and its end, in sentences for the
// log.
#pragma once

#include <span>
#include <string>

#include "base/function_ref.h"
#include "engine/engine.h"
#include "group/port.h"
#include "topology/group_report.h"

namespace mcastcoll::group {

class Group;
class LevelSet;

// What a group's engine has decided since it was last asked: who hears the multicast, which repair and which
// root synchronisation the automatic policies take, and what made them.
class EngineNews {
  public:
    // The ranks are those of the engine's members in the group.
    void tell(const engine::Engine& engine, std::span<const std::uint32_t> ranks,
              FunctionRef<void(const std::string& sentence)> say);

  private:
    std::string about_multicast(const engine::Engine& engine, std::span<const std::uint32_t> ranks) const;

    std::uint32_t verdict_ = 0;
    std::uint64_t policy_changes_ = 0;
    engine::RootSync root_sync_ = engine::RootSync::none;
};

void tell_joined(Port& port, const LevelSet& set, Rank self);
// How an operation goes, when that was decided for the first time.
void tell_selection(Port& port, LevelSet& set);
// Who was lost, and how this member knows. reason: what its watch said, or null.
std::string describe_loss(const Port& port, const LevelSet& set, int error, Rank lost,
                          const std::string* reason);
// Of a formed group; with the text of its error.
topology::ReportedGroup report_of(const Group& group, const char* error);

}  // namespace mcastcoll::group
