// A member of reliable multicast messages, and peers that send arbitrary packets.
#include "fuzz.h"
#include "reliable/protocol.h"

using namespace mcastcoll;

namespace {

struct Host final : reliable::Protocol::Host {
    bool multicast(Bytes, std::size_t) override { return room; }
    void send(const reliable::Place&, Bytes) override {}
    bool deliver(const reliable::Member&, std::uint8_t, Bytes) override { return room; }
    void lost(const reliable::Member&, reliable::Loss) override {}
    bool room = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    (void)reliable::decode(fuzz::bytes_of(data, size));
    fuzz::Input in(data, size);
    Host host;
    Nanoseconds now = Nanoseconds::from_ms(1);
    reliable::Protocol protocol({.self = reliable::MemberId{1}, .window = 16, .payload = 64, .room = 16},
                                host, now);
    while (in.remaining_bytes() > 0) {
        const auto what = in.between<unsigned>(0, 9);
        if (what < 6) {
            reliable::Header header{.kind = static_cast<reliable::Kind>(in.between<unsigned>(1, 7)),
                                    .flags = in.any<std::uint8_t>(),
                                    .size = static_cast<std::uint16_t>(fuzz::take_number(in)),
                                    .from = reliable::MemberId{in.between<std::uint64_t>(0, 9)},
                                    .to = reliable::MemberId{in.between<std::uint64_t>(0, 2)},
                                    .number = fuzz::take_number(in)};
            header.oldest = fuzz::take_number(in);
            const auto head = reliable::encode(header);
            std::vector<std::byte> packet(head.begin(), head.end());
            const auto body = fuzz::take_bytes(in, 300);
            packet.insert(packet.end(), body.begin(), body.end());
            const auto decoded = reliable::decode(packet);
            if (decoded.ok()) protocol.on_packet(decoded.value(), packet, {}, now);
        } else if (what == 6) {
            const auto message = fuzz::take_bytes(in, 200);
            if (protocol.can_send(message.size())) protocol.send(message, now);
        } else if (what == 7) {
            host.room = in.flag();
            protocol.deliver();
        } else {
            now = now + Nanoseconds{in.between<std::int64_t>(0, 100'000'000)};
            protocol.tick(now);
        }
    }
    protocol.leave(now);
    return 0;
}
