// A gateway session with arbitrary frames from the peer; and the decoding of arbitrary hellos (a stream's
// first messages) and prefaces (gateway/preface.h).
#include "fuzz.h"
#include "gateway/preface.h"
#include "gateway/session/hello.h"
#include "gateway/session/session.h"

using namespace mcastcoll;

namespace {

struct Host final : gateway::session::Host {
    void opened(gateway::session::ChannelId, Bytes) override {}
    std::size_t deliver(gateway::session::ChannelId, Bytes bytes) override {
        return std::min(bytes.size(), room);
    }
    void finished(gateway::session::ChannelId) override {}
    void was_reset(gateway::session::ChannelId) override {}
    std::size_t room = 64;
};

void hellos(Bytes raw) {
    if (const auto hello = gateway::session::decode_hello(raw))
        fuzz::check(gateway::session::decode_hello(gateway::session::encode_hello(*hello)) == hello,
                    "a hello stays the same");
    if (const auto preface = gateway::decode_preface(raw))
        fuzz::check(gateway::decode_preface(gateway::encode_preface(*preface)) == preface,
                    "a preface stays the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    hellos(fuzz::bytes_of(data, size));
    fuzz::Input in(data, size);
    Host host;
    gateway::session::WindowPool pool{1 << 20};
    gateway::session::Session session(
        {.first_window = 4096, .opened_window = 4096, .max_window = 65536, .max_channels = 64}, pool, host);
    Nanoseconds now = Nanoseconds::from_ms(1);
    for (const unsigned stream : {0U, 1U}) session.stream_up(stream, now);
    while (in.remaining_bytes() > 0) {
        const auto what = in.between<unsigned>(0, 9);
        const unsigned stream = in.flag();
        if (what < 6 && session.stream(stream).is_up()) {
            const auto payload = fuzz::take_bytes(in, 200);
            gateway::session::FrameHeader header{
                .type = static_cast<gateway::session::FrameType>(in.between<unsigned>(1, 9)),
                .length = static_cast<std::uint32_t>(payload.size()),
                .channel = in.between<std::uint32_t>(0, 9),
                .order = static_cast<std::uint32_t>(fuzz::take_number(in)),
                .sequence = fuzz::take_number(in)};
            std::array<std::byte, gateway::session::kHeaderSize> bytes;
            gateway::session::put_header(bytes.data(), header);
            const auto read = gateway::session::get_header(bytes);
            if (read && !session.on_frame(stream, *read, payload, now).ok()) return session.abandon(), 0;
        } else if (what == 6) {
            const auto preface = gateway::encode_preface({});
            if (const auto channel = session.open_channel(preface))
                if (in.flag()) session.finish(*channel);
        } else if (what == 7 && session.stream(stream).is_up()) {
            std::size_t frames = 0;
            while (frames < 50 && session.next(stream, now) != nullptr) ++frames;
            session.written(stream, frames);
        } else {
            now = now + Nanoseconds{in.between<std::int64_t>(0, 50'000'000)};
            session.on_time(now);
        }
    }
    session.abandon();
    return 0;
}
