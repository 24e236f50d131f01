// A member of reliable multicast messages, and peers that send arbitrary packets.
#include "feed/feed.h"
#include "fuzz.h"

using namespace mcastcoll;

namespace {

struct Host final : feed::Feed::Host {
    bool multicast(Bytes, std::size_t) override { return room; }
    void send(const feed::Place&, Bytes) override {}
    bool deliver(const feed::Member&, std::uint8_t, Bytes) override { return room; }
    void lost(const feed::Member&, feed::Loss) override {}
    bool room = true;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    (void)feed::decode(fuzz::bytes_of(data, size));
    fuzz::Input in(data, size);
    Host host;
    Nanoseconds now = Nanoseconds::from_ms(1);
    feed::Feed feed({.self = feed::MemberId{1}, .window = 16, .payload = 64, .room = 16}, host, now);
    while (in.remaining_bytes() > 0) {
        const auto what = in.between<unsigned>(0, 9);
        if (what < 6) {
            feed::Header header{.kind = static_cast<feed::Kind>(in.between<unsigned>(1, 7)),
                                .flags = in.any<std::uint8_t>(),
                                .size = static_cast<std::uint16_t>(fuzz::take_number(in)),
                                .from = feed::MemberId{in.between<std::uint64_t>(0, 9)},
                                .to = feed::MemberId{in.between<std::uint64_t>(0, 2)},
                                .number = fuzz::take_number(in)};
            header.oldest = fuzz::take_number(in);
            const auto head = feed::encode(header);
            std::vector<std::byte> packet(head.begin(), head.end());
            const auto body = fuzz::take_bytes(in, 300);
            packet.insert(packet.end(), body.begin(), body.end());
            const auto decoded = feed::decode(packet);
            if (decoded.ok()) feed.on_packet(decoded.value(), packet, {}, now);
        } else if (what == 6) {
            const auto message = fuzz::take_bytes(in, 200);
            if (feed.can_send(message.size())) feed.send(message, now);
        } else if (what == 7) {
            host.room = in.flag();
            feed.deliver();
        } else {
            now = now + Nanoseconds{in.between<std::int64_t>(0, 100'000'000)};
            feed.tick(now);
        }
    }
    feed.leave(now);
    return 0;
}
