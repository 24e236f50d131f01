// An engine receives any packet at any time from its peers, while the application posts operations.
#include <deque>

#include "engine/engine.h"
#include "fuzz.h"

using namespace mcastcoll;

namespace {

void combine(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const std::uint8_t*>(one),
               *second = static_cast<const std::uint8_t*>(other);
    for (std::size_t i = 0; i < elements; ++i)
        static_cast<std::uint8_t*>(out)[i] = static_cast<std::uint8_t>(first[i] ^ second[i]);
}

struct Application {
    explicit Application(const engine::GroupConfig& config) : engine(config) {}

    void drain() {
        engine::Effect effect;
        for (unsigned turns = 0; engine.poll_effects({}, effect); ++turns) {
            using Kind = engine::Effect::Kind;
            fuzz::check(turns < 100'000, "effects come to an end");
            if (effect.kind == Kind::message || effect.kind == Kind::watch)
                fuzz::check(index_of(effect.to) < engine.config().members, "an effect names a member");
            if (effect.kind == Kind::gathered) (void)engine.release(effect.operation, now);
            if (effect.kind != Kind::complete) continue;
            const std::uint64_t number = number_of(effect.operation);
            fuzz::check(number < ended.size(), "what completes was submitted");
            fuzz::check(!ended[number], "nothing completes twice");
            ended[number] = true;
        }
        engine.check_invariants();
        fuzz::check(engine.next_deadline().value >= 0, "a deadline is a time");
    }
    void post(fuzz::Input& in) {
        constexpr std::size_t kLengths[] = {0, 1, 64, 513, 4096, 20'000};
        auto& buffer = buffers.emplace_back(in.one_of(kLengths));
        Collective request{.kind = static_cast<CollectiveKind>(in.between<unsigned>(0, 3)),
                           .root = rank_of(in.between<std::uint32_t>(0, engine.config().members - 1)),
                           .buffer = buffer.data(),
                           .bytes = buffer.size(),
                           .combiner = {combine, 1}};
        if (request.kind == CollectiveKind::barrier) request.bytes = 0;
        if (request.kind != CollectiveKind::broadcast) request.root = rank_of(0), request.hold = in.flag();
        if (request.kind == CollectiveKind::reduce) request.hold = false;
        const auto number = engine.submit(request, now);
        if (number.ok()) ended.resize(number_of(number.value()) + 1);
    }

    engine::Engine engine;
    Nanoseconds now = Nanoseconds::from_ms(1);
    std::deque<std::vector<std::byte>> buffers;
    std::vector<bool> ended;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input in(data, size);
    engine::GroupConfig config;
    config.members = in.between<std::uint32_t>(1, 9);
    config.self = rank_of(in.between<std::uint32_t>(0, config.members - 1));
    config.key = GroupKey{7};
    config.fragment_bytes = 512;
    config.retransmit_bytes = 2048;
    config.operation_slots = 32;
    config.checkpoint_every = 8;
    config.window = 16;
    config.message_bytes = 8192;
    config.pending_operations = 16;
    config.repair = static_cast<engine::Repair>(in.between<unsigned>(0, 3));
    config.redundancy = static_cast<engine::Redundancy>(in.between<unsigned>(0, 2));
    config.root_sync = static_cast<engine::RootSync>(in.between<unsigned>(0, 3));
    Application member(config);
    member.engine.start(member.now);
    while (in.remaining_bytes() > 0) {
        const auto what = in.between<unsigned>(0, 15);
        if (what < 8) {
            const auto packet = fuzz::take_packet(in, config.key, config.epoch, config.members, 600);
            if (wire::is_multicast(wire::peek_kind(packet)))
                member.engine.on_packet(packet, member.now);
            else
                member.engine.on_message(packet, member.now);
        } else if (what < 11) {
            member.post(in);
        } else if (what == 11) {
            member.engine.on_peer_lost(rank_of(in.between<std::uint32_t>(0, config.members - 1)), 104,
                                       member.now);
        } else if (what == 12) {
            member.engine.close(member.now);
        } else {
            const auto max = in.flag() ? Nanoseconds::from_ms(100) : Nanoseconds::from_us(300);
            member.now = member.now + Nanoseconds{in.between<std::int64_t>(0, max.value)};
            if (member.engine.next_deadline() <= member.now) member.engine.on_timeout(member.now);
        }
        member.drain();
    }
    return 0;
}
