#include "group/engine_news.h"

#include <fmt/core.h>

namespace mcastcoll::group {
namespace {

std::string describe(const engine::RepairPlan& plan) {
    if (plan.chained) return "the ring from the start";
    const char* first = plan.route == engine::Route::root ? "asking the root" : "asking the ring";
    return fmt::format("{}{}", first, plan.hands_on ? " and handing on" : "");
}

std::string about_repair(const engine::PolicyState& policy) {
    return fmt::format(
        "repair is now {} for small, {} for large messages: of 1000, {} small ones were asked for by the "
        "ring "
        "successor and {} large fragments were not heard; a repair takes {} us along the ring, {} us by the "
        "root",
        describe(policy.small), describe(policy.large), policy.successor_asks, policy.large_missed,
        policy.ring_repair.value / 1000, policy.root_repair.value / 1000);
}

}  // namespace

std::string EngineNews::about_multicast(const engine::Engine& engine,
                                        std::span<const std::uint32_t> ranks) const {
    const engine::SupplyGraph& graph = engine.graph();
    const engine::Verdict& verdict = graph.verdict();
    std::string who;
    for (const auto& [what, members] :
         {std::pair{"hear nothing", &verdict.deaf}, {"are not heard", &verdict.mute}}) {
        if (members->empty()) continue;
        who += fmt::format("; {} {}: rank {}", members->size(), what, ranks[index_of(members->front())]);
        if (members->size() > 1) who += ", ...";
    }
    const std::string reach =
        verdict.works ? fmt::format("it reaches {} of {} members", graph.hearing_count(), ranks.size())
                      : std::string("it reaches nobody, all is point-to-point");
    return fmt::format("verdict {} about the multicast: {}{}", verdict_, reach, who);
}

void EngineNews::tell(const engine::Engine& engine, std::span<const std::uint32_t> ranks,
                      FunctionRef<void(const std::string& sentence)> say) {
    if (engine.counters().policy_changes != policy_changes_) {
        policy_changes_ = engine.counters().policy_changes;
        say(about_repair(engine.policy()));
    }
    if (engine.config().root_sync == engine::RootSync::adaptive && engine.root_sync().present != root_sync_) {
        const engine::RootSyncState sync = engine.root_sync();
        root_sync_ = sync.present;
        say(fmt::format(
            "root synchronisation is now {}: of 1000 own broadcasts {} were asked for; others enter "
            "{} us later",
            name_of(sync.present), sync.troubled, sync.lateness.value / 1000));
    }
    if (engine.verdict_version() == verdict_) return;
    verdict_ = engine.verdict_version();
    say(about_multicast(engine, ranks));
}

}  // namespace mcastcoll::group
