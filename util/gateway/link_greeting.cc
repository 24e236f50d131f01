// A stream's first words: hello, proof and welcome (trunk/hello.h).
#include <sys/socket.h>

#include <algorithm>

#include "gateway/gateway.h"
#include "gateway/link.h"
#include "gateway/peer.h"

namespace mcastcoll::gateway {

Link::Link(Peer& peer, unsigned stream, FileDescriptor socket)
    : peer_(peer), stream_(stream), socket_(std::move(socket)), state_(State::connecting) {
    prepare();
    writable_ = readable_ = false;
}

Link::Link(Peer& peer, FileDescriptor socket, const trunk::Hello& hello, const trunk::HelloBytes& bytes,
           bool known)
    : peer_(peer), stream_(hello.stream), socket_(std::move(socket)), state_(State::proof), known_(known) {
    greeting_.theirs = hello;
    greeting_.their_bytes = bytes;
    prepare();
}

void Link::prepare() {
    deadline_ = peer_.gateway().now() + peer_.gateway().settings().greeting;
    prepare_for_stream(socket_.get(), peer_.gateway().settings().silence);
    // That the system has it was found out at the start; on a socket that was accepted it is set again.
    const std::string& congestion = peer_.gateway().settings().sites.trunks.congestion;
    if (!congestion.empty()) (void)set_congestion(socket_.get(), congestion).ok();
    greeting_.ours = peer_.make_hello(stream_);
    if (greeting_.ours.with_key) {
        greeting_.keys = KeyPair::make();
        greeting_.ours.public_key = greeting_.keys.public_key;
    }
    greeting_.our_bytes = encode_hello(greeting_.ours);
}

// On a connection that is new everything of this size fits; if it does not, something is wrong with it.
bool Link::put(Bytes bytes) {
    if (send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
        static_cast<ssize_t>(bytes.size()))
        return true;
    close("it takes no greeting");
    return false;
}

void Link::connected() {
    if (pending_error(socket_.get()) != 0) return close("cannot connect");
    state_ = State::hello;
    writable_ = true;
    put(greeting_.our_bytes);
}

void Link::answer() {
    if (greeting_.ours.with_key) {
        auto derived = derive_keys(peer_.gateway().settings().key.value(), greeting_.keys,
                                   greeting_.theirs.public_key, greeting_.their_bytes, greeting_.our_bytes);
        if (!derived) return close("its public key is none");
        greeting_.derived = *derived;
    }
    std::array<std::byte, trunk::kHelloSize + trunk::kProofSize> words;
    std::copy(greeting_.our_bytes.begin(), greeting_.our_bytes.end(), words.begin());
    std::copy(greeting_.derived.acceptor_proof.begin(), greeting_.derived.acceptor_proof.end(),
              words.begin() + trunk::kHelloSize);
    put(words);
}

bool Link::parse_greeting() {
    const Bytes bytes = arrived();
    const std::size_t wanted =
        state_ == State::hello ? trunk::kHelloSize + trunk::kProofSize : trunk::kProofSize;
    if (bytes.size() < wanted) return true;
    head_ += wanted;
    return state_ == State::hello ? on_hello(bytes.first(wanted)) : on_proof(bytes.first(wanted));
}

// The connector's side.
bool Link::on_hello(Bytes bytes) {
    GatewayCounters& counters = peer_.gateway().counters();
    const auto hello = trunk::decode_hello(bytes);
    if (!hello || hello->from != greeting_.ours.to || hello->to != greeting_.ours.from ||
        hello->with_key != greeting_.ours.with_key) {
        const bool other_key = hello && hello->with_key != greeting_.ours.with_key;
        return refuse(counters.refused_hellos,
                      other_key ? "only one of us has a key" : "the gateway there is another's");
    }
    greeting_.theirs = *hello;
    if (greeting_.ours.with_key) {
        const auto derived =
            derive_keys(peer_.gateway().settings().key.value(), greeting_.keys, hello->public_key,
                        greeting_.our_bytes, bytes.first(trunk::kHelloSize));
        if (!derived || !equal(derived->acceptor_proof, bytes.last(trunk::kProofSize)))
            return refuse(counters.wrong_keys, "it has another key");
        greeting_.derived = *derived;
        sealer_.emplace(greeting_.derived.from_connector);
        opener_.emplace(greeting_.derived.from_acceptor);
    }
    state_ = State::welcome;
    return put(greeting_.derived.connector_proof);
}

// The acceptor's side.
bool Link::on_proof(Bytes bytes) {
    if (!equal(greeting_.derived.connector_proof, bytes))
        return refuse(peer_.gateway().counters().wrong_keys, "it has another key");
    if (greeting_.ours.with_key) {
        sealer_.emplace(greeting_.derived.from_acceptor);
        opener_.emplace(greeting_.derived.from_connector);
    }
    const trunk::Welcome welcome = peer_.bind(*this);
    trunk::Frame frame({trunk::FrameType::welcome, 0, 0, 0, 0}, encode_welcome(welcome));
    frame.seal();
    std::vector<std::byte> record(frame.bytes().begin(), frame.bytes().end());
    if (sealer_) {
        record.clear();
        sealer_->seal(frame.bytes(), record);
    }
    if (!put(record)) return false;
    if (welcome.peer_session == 0) {
        close("its state and ours do not belong together");
        return false;
    }
    return come_up(greeting_.theirs.window);
}

bool Link::on_welcome(const trunk::FrameHeader& header, Bytes payload) {
    if (header.type != trunk::FrameType::welcome)
        return refuse(peer_.gateway().counters().garbage, "it does not begin with a welcome");
    const trunk::Welcome welcome = trunk::decode_welcome(payload);
    if (!peer_.welcomed(*this, welcome)) {
        close("its state and ours do not belong together");
        return false;
    }
    return come_up(welcome.window);
}

bool Link::come_up(std::uint32_t window) {
    state_ = State::up;
    deadline_ = kNever;
    peer_.link_up(*this, window);
    return true;
}

}  // namespace mcastcoll::gateway
