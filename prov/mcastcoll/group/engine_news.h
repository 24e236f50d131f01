// What a group's engine has decided since it was last asked, in sentences for the log: who hears the
// multicast, which repair and which root synchronisation the automatic policies take, and what made them.
#pragma once

#include <span>
#include <string>

#include "base/function_ref.h"
#include "engine/engine.h"

namespace mcastcoll::group {

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

}  // namespace mcastcoll::group
