// What everybody has finished (watermark.h), and leaving (departure.h): what the engine does about them.
#include <algorithm>
#include <cerrno>

#include "engine/engine.h"

namespace mcastcoll::engine {

void Engine::release_below(std::uint64_t id) {
    if (id <= slots_.first_kept() || id > slots_.first_open()) return;
    for (std::uint64_t done = slots_.first_kept(); done < id; ++done) learn_from(slots_.at(done));
    slots_.release_below(id);
    moved_at_ = now_;
    ++counters_.checkpoints;
    verdicts_.release_below(slots_.first_kept());
}

// Operations up to a window above this watermark may be begun: it was told, not just learnt from somebody
// who was, and with it the verdict that they need.
void Engine::raise_watermark(std::uint64_t watermark, Nanoseconds now) {
    release_below(watermark);
    watermark_.rise_to(std::min(watermark, slots_.first_kept()));
    begin_pending(now);
}

// Nobody can ask for this operation any more: what its repairs tell.
void Engine::learn_from(const Slot& slot) {
    if (slot.state != SlotState::finished) return;
    if (slot.is_root(config_.self) && slot.operation.kind == CollectiveKind::broadcast)
        root_sync_.note_operation(slot.troubled);
    if (is_large(slot) || slot.plan.hands_on) return;
    for (std::uint32_t i = 0; i < slot.client_count; ++i) {
        const Client& client = slot.clients[i];
        if (client.expected && graph_of(slot).hears(slot.operation.root, client.rank))
            policy_.note_successor(client.asked);
    }
    counters_.policy_changes = policy_.changes();
}

void Engine::check_watermark(Nanoseconds now) {
    if (phase_ != Phase::active) return;
    const std::uint64_t agreed = watermark_.agree(finished_here());
    if (agreed == 0) return;
    watermark_.set_cast_due(config_.repair == Repair::sync && graph().audible(config_.self));
    raise_watermark(agreed, now);
}

void Engine::on_watermark_up(const wire::Header& header, Nanoseconds now) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity) {
        ++counters_.unexpected_kind;
        return;
    }
    watermark_.on_up(child, number_of(header.operation));
    check_watermark(now);
}

void Engine::on_watermark_down(const wire::Header& header, Nanoseconds now) {
    if (header.sender != tree_parent_) {
        ++counters_.unexpected_kind;
        return;
    }
    take_watermark(header, now);
}

void Engine::check_leave() {
    if (phase_ == Phase::active && idle()) departure_.on_idle();
}

void Engine::close(Nanoseconds now) {
    now_ = now;
    if (departure_.closing()) return;
    departure_.close();
    if (watch_at_ == kNever) watch_at_ = now + config_.watch_delay;
    if (phase_ != Phase::active && phase_ != Phase::failed)
        return fail(config_.self, kClosedEarly, true, now);
    check_leave();
}

void Engine::on_leave_up(const wire::Header& header) {
    const std::uint32_t child = child_index(header.sender);
    if (child == kMaxArity) {
        ++counters_.unexpected_kind;
        return;
    }
    departure_.on_child_left(child);
    check_leave();
}

void Engine::on_leave_down(const wire::Header& header, Nanoseconds now) {
    if (header.sender != tree_parent_ || !departure_.on_everybody_left())
        fail(header.sender, EPROTO, true, now);
}

bool Engine::next_checkpoint_message(Effect& effect) {
    Watermark::Word word;
    if (watermark_.next(word, [this](Rank child) { return hears_watermark(child); })) {
        counters_.watermark_asks_sent += word.kind == wire::Kind::watermark_ask;
        const bool down = word.kind == wire::Kind::watermark_down;
        make_message(effect, word.kind, word.to, operation_of(word.number), down ? verdicts_.version() : 0, 0,
                     {});
        return true;
    }
    if (departure_.next(word.kind, word.to)) {
        make_message(effect, word.kind, word.to, operation_of(slots_.next()), 0, 0, {});
        return true;
    }
    if (departure_.over() && phase_ == Phase::active) {
        phase_ = Phase::left;
        notices_.left();
    }
    return false;
}

}  // namespace mcastcoll::engine
