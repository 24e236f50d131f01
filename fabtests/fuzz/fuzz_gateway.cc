// Input of a gateway before authentication of the peer, and from a malicious peer gateway with the key:
// hellos (a stream's first messages), records of TLS, and the frames in them, in any pieces.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "fuzz.h"
#include "gateway/link.h"
#include "gateway/link_owner.h"
#include "gateway/preface.h"

using namespace mcastcoll;
using namespace mcastcoll::gateway;

namespace {

constexpr const char* kSites =
    "[site rennes]\nnetworks = 10.2.0.0/16\ngateway = 192.0.2.2:7000\n"
    "[site lyon]\nnetworks = 10.1.0.0/16\ngateway = 192.0.2.1:7000\n";

struct Host final : gateway::session::Host {
    void opened(gateway::session::ChannelId, Bytes preface) override {
        (void)gateway::decode_preface(preface);
    }
    std::size_t deliver(gateway::session::ChannelId, Bytes bytes) override { return bytes.size() / 2; }
    void finished(gateway::session::ChannelId) override {}
    void was_reset(gateway::session::ChannelId) override {}
};

struct Owner final : LinkOwner {
    bool welcomed(Link&, const gateway::session::Welcome& welcome) override {
        return welcome.session % 2 == 0;
    }
    void link_up(Link& link, std::uint32_t window) override {
        session.set_peer_window(window);
        session.stream_up(link.stream(), Nanoseconds::from_ms(1));
        up = true;
    }
    void link_closed(Link& link, bool was_up, const std::string&) override {
        fuzz::check(!closed, "a stream is closed once");
        fuzz::check(was_up == up, "what comes up is what is closed");
        if (was_up) session.stream_down(link.stream());
        closed = true;
    }
    void violated(const std::string&) override { violated_ = true; }

    explicit Owner(gateway::session::Session& its) : session(its) {}
    gateway::session::Session& session;
    bool up = false, closed = false, violated_ = false;
};

Shared& shared() {
    static Shared* const made = [] {
        Settings settings;
        auto sites = sites::parse_sites(kSites, "sites");
        fuzz::check(sites.ok(), sites.ok() ? "" : sites.error().message.c_str());
        settings.sites = std::move(sites).value();
        settings.key.emplace().fill(std::byte{1});
        settings.silence = Nanoseconds::from_ms(1000);
        return new Shared(settings);
    }();
    return *made;
}

struct Pair {
    Pair() {
        std::array<int, 2> both;
        fuzz::check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both.data()) == 0,
                    "there are descriptors");
        near = FileDescriptor(both[0]);
        far = FileDescriptor(both[1]);
    }
    FileDescriptor near, far;
};

void send_all(int socket, Bytes bytes) {
    if (!bytes.empty()) (void)::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

// A peer without the key is never accepted, whatever its hello.
void as_foreign_host(fuzz::Input& in) {
    static const TlsContext rennes(wire::Key{std::byte{1}}, "rennes", {"lyon"}),
        lyon(wire::Key{std::byte{2}}, "lyon", {"rennes"});
    Pair pair;
    std::vector<std::byte> hello;
    if (in.flag()) {
        Tls connecting(lyon, pair.far.get(), "rennes");
        (void)connecting.shake_hands();
        hello = connecting.outgoing();
        for (unsigned count = in.between(0U, 4U); count > 0 && !hello.empty(); --count)
            hello[in.between<std::size_t>(0, hello.size() - 1)] =
                static_cast<std::byte>(in.between(0U, 255U));
    } else {
        hello = in.bytes(600);
    }
    const Bytes early = Bytes(hello).first(in.between<std::size_t>(0, hello.size()));
    Tls accepting(rennes, pair.near.get(), early);
    send_all(pair.far.get(), Bytes(hello).subspan(early.size()));
    for (int turn = 0; turn < 3; ++turn) {
        (void)accepting.shake_hands();
        (void)accepting.flush();
        send_all(pair.far.get(), in.bytes(200));
    }
    fuzz::check(!accepting.is_ready() && accepting.peer().empty(), "no foreign host gets in");
}

class Liar {
  public:
    explicit Liar(fuzz::Input& in)
        : in_(in), session_({.max_channels = 64}, shared().pool, host_), owner_(session_) {
        std::unique_ptr<Tls> tls;
        // Mostly without TLS, because a handshake takes longer than everything else.
        if (in.between(0U, 15U) == 0) tls = shake_hands();
        gateway::session::Hello hello{.session = 2,
                                      .peer_session = in.between(0U, 2U),
                                      .stream = 0,
                                      .streams = 1,
                                      .window = 4096,
                                      .from = "rennes",
                                      .to = "lyon"};
        const bool sends_hello = in.flag();
        link_.emplace(owner_, shared(), session_, std::move(pair_.near), hello, std::move(tls));
        if (sends_hello) link_->welcome({3, in.between(0U, 1U), 4096});
    }
    ~Liar() {
        if (!owner_.closed) link_->close("over");
        session_.abandon();
    }

    void run() {
        while (in_.remaining_bytes() > 0 && !owner_.closed && !owner_.violated_) {
            send_input();
            link_->on_events(EPOLLIN | (in_.between(0U, 15U) == 0 ? EPOLLRDHUP : 0U));
            for (unsigned turns = 0; !owner_.closed && !owner_.violated_ && link_->read_more(); ++turns) {
                fuzz::check(turns < 1000, "reading comes to an end");
                link_->read();
            }
            if (!owner_.closed && link_->can_write()) (void)link_->write(now_, 4096);
            now_ = now_ + Nanoseconds::from_ms(1);
        }
    }

  private:
    // Connects the gateway in lyon to the gateway under test in rennes, and returns the tested end of the
    // stream.
    std::unique_ptr<Tls> shake_hands() {
        static const TlsContext lyon(wire::Key{std::byte{1}}, "lyon", {"rennes"}),
            rennes(wire::Key{std::byte{1}}, "rennes", {"lyon"});
        theirs_.emplace(lyon, pair_.far.get(), "rennes");
        auto ours = std::make_unique<Tls>(rennes, pair_.near.get(), Bytes());
        for (int i = 0; i < 4; ++i)
            for (Tls* one : {&*theirs_, ours.get()})
                if (!one->is_ready()) {
                    (void)one->shake_hands();
                    (void)one->flush();
                }
        fuzz::check(ours->is_ready() && theirs_->is_ready(), "who has the key gets in");
        return ours;
    }

    // Sends a frame, or arbitrary bytes, from the peer to the gateway under test.
    void send_input() {
        std::vector<std::byte> bytes;
        if (in_.between(0U, 7U) > 0) {
            const auto payload = in_.bytes(200);
            const gateway::session::FrameHeader header{
                .type = static_cast<gateway::session::FrameType>(in_.between(0U, 9U)),
                .length = static_cast<std::uint32_t>(in_.between(0U, 15U) == 0 ? fuzz::take_number(in_)
                                                                               : payload.size()),
                .channel = in_.between<std::uint32_t>(0, 9),
                .order = static_cast<std::uint32_t>(fuzz::take_number(in_)),
                .sequence = fuzz::take_number(in_)};
            bytes.resize(gateway::session::kHeaderSize);
            gateway::session::put_header(bytes.data(), header);
            bytes.insert(bytes.end(), payload.begin(), payload.end());
        } else {
            bytes = in_.bytes(100);
        }
        if (!theirs_) return send_all(pair_.far.get(), bytes);
        (void)theirs_->write(bytes);
        if (auto& records = theirs_->outgoing(); in_.between(0U, 15U) == 0 && !records.empty())
            records[in_.between<std::size_t>(0, records.size() - 1)] ^= std::byte{1};
        (void)theirs_->flush();
    }

    fuzz::Input& in_;
    Nanoseconds now_ = Nanoseconds::from_ms(1);
    Pair pair_;
    Host host_;
    std::optional<Tls> theirs_;
    gateway::session::Session session_;
    Owner owner_;
    std::optional<Link> link_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input in(data, size);
    if (in.between(0U, 7U) == 0)
        as_foreign_host(in);
    else
        Liar(in).run();
    return 0;
}
