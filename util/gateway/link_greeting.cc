// A stream's first words: hello, proof and welcome (trunk/hello.h).
#include <sys/socket.h>

#include "gateway/gateway.h"

namespace mcastcoll::gateway {

Link::Link(Peer& peer, FileDescriptor socket, Greeting greeting, bool connecting)
    : peer_(peer),
      stream_(greeting.ours.stream),
      socket_(std::move(socket)),
      state_(connecting ? State::connecting : State::welcome),
      readable_(!connecting),
      writable_(!connecting),
      deadline_(peer.gateway().now() + kGreetingTime),
      greeting_(std::move(greeting)) {
    prepare_for_stream(socket_.get(), peer_.gateway().settings().silence);
    // That the system has it was found out at the start; on a socket that was accepted it is set again.
    const std::string& congestion = peer_.gateway().settings().sites.trunks.congestion;
    if (!congestion.empty()) (void)set_congestion(socket_.get(), congestion).ok();
    if (!connecting) encrypt(greeting_.derived.from_acceptor, greeting_.derived.from_connector);
}

void Link::encrypt(const Secret& ours, const Secret& theirs) {
    if (!greeting_.ours.with_key) return;
    sealer_.emplace(ours);
    opener_.emplace(theirs);
}

// On a connection that is new everything of this size fits; if it does not, something is wrong with it.
bool Link::put(Bytes bytes) {
    std::size_t sent = 0;
    if (send_what_fits(socket_.get(), bytes, sent) && sent == bytes.size()) return true;
    close("it takes no greeting");
    return false;
}

void Link::connected() {
    if (option_of<int>(socket_.get(), SOL_SOCKET, SO_ERROR) != 0) return close("cannot connect");
    state_ = State::hello;
    writable_ = true;
    put(greeting_.our_bytes);
}

// The connector's side.
bool Link::on_hello(Bytes bytes) {
    GatewayCounters& counters = peer_.gateway().counters();
    const auto hello = trunk::decode_hello(bytes);
    if (!hello || hello->from != greeting_.ours.to || hello->to != greeting_.ours.from)
        return refuse(counters.refused_hellos, "the gateway there is another's");
    if (hello->with_key != greeting_.ours.with_key)
        return refuse(counters.refused_hellos, "only one of us has a key");
    if (hello->with_key) {
        const auto derived =
            derive_keys(peer_.gateway().settings().key.value(), greeting_.keys, hello->public_key,
                        greeting_.our_bytes, bytes.first(trunk::kHelloSize));
        if (!derived || !equal(derived->acceptor_proof, bytes.last(trunk::kProofSize)))
            return refuse(counters.wrong_keys, "it has another key");
        greeting_.derived = *derived;
        encrypt(derived->from_connector, derived->from_acceptor);
    }
    state_ = State::welcome;
    return put(greeting_.derived.connector_proof);
}

void Link::welcome(const trunk::Welcome& words) {
    trunk::Frame frame({trunk::FrameType::welcome, 0, 0, 0, 0}, encode_welcome(words));
    frame.seal();
    std::vector<std::byte> record;
    if (sealer_) sealer_->seal(frame.bytes(), record);
    if (!put(sealer_ ? Bytes(record) : frame.bytes())) return;
    if (words.peer_session == 0) return close("its state and ours do not belong together");
    come_up(greeting_.theirs.window);
}

bool Link::on_welcome(const trunk::FrameHeader& header, Bytes payload) {
    if (header.type != trunk::FrameType::welcome)
        return refuse(peer_.gateway().counters().garbage, "it does not begin with a welcome");
    const trunk::Welcome welcome = trunk::decode_welcome(payload);
    if (!peer_.welcomed(*this, welcome)) {
        close("its state and ours do not belong together");
        return false;
    }
    come_up(welcome.window);
    return true;
}

void Link::come_up(std::uint32_t window) {
    state_ = State::up;
    deadline_ = kNever;
    peer_.link_up(*this, window);
}

}  // namespace mcastcoll::gateway
