// A process in the fuzzer of groups: its part in one group, the ports needed by this part, and the
// application above.
#pragma once

#include <cerrno>
#include <deque>
#include <optional>

#include "fuzz.h"
#include "group/join_memory.h"
#include "group/joins.h"
#include "host/process.h"
#include "ports/team_level.h"
#include "wire/bytes.h"

namespace mcastcoll::fuzz {

using group::Outbox;
using wire::ByteString;

constexpr std::uint64_t kList = 0x1157;
constexpr std::size_t kMaxOpen = 8, kOperations = 3;

enum class Way : std::uint8_t { datagram, join_message, message, multicast };

struct Letter {
    Way way;
    std::uint32_t from, to;
    ByteString bytes;
};

inline ByteString address_of(std::uint32_t rank) {
    return {std::byte{1}, static_cast<std::byte>(rank)};
}

// Corrects the checksum of a join message, or of a packet.
inline void seal_message(ByteString& message) {
    if (message.size() < 8) return;
    const Bytes all = message;
    wire::put(message.data(), wire::kJoinMagic);
    const std::uint32_t sum = wire::add_to_crc(wire::add_to_crc(UINT32_MAX, all.first(4)), all.subspan(8));
    wire::put(message.data() + 4, static_cast<std::uint32_t>(~sum));
}

inline void seal_packet(ByteString& packet) {
    const wire::Decoded decoded = wire::decode(packet, wire::Checksum::none);
    if (decoded.refusal != wire::Refusal::none) return;
    wire::HeaderBytes head;
    wire::encode(decoded.header, decoded.payload, head);
    std::copy(head.begin(), head.end(), packet.begin());
}

// Memory that the processes of a host share.
struct HostMemory {
    std::shared_ptr<host::Segment> segment;
    host::Shape shape;
    Bytes table;
};

class World;

class Process final : public group::Joins::Member,
                      private group::Port,
                      private group::Multicast,
                      private group::Joins::Port {
  public:
    Process(World& world, std::uint32_t rank);

    void call();
    void deliver(Letter letter);
    void turn();
    void lose(std::uint32_t rank) { core_.on_peer_lost(rank, ECONNRESET, "it is gone"); }
    Nanoseconds next_deadline() const { return core_.next_deadline(); }
    group::Group& core() override { return core_; }
    bool over() const { return closed_; }

  private:
    const wire::JoinId& join_id() const override { return id_; }
    const group::MemberList& members() const override;
    const wire::JoinKey& key() const override { return key_; }
    bool comes_from(Rank rank, const group::Source& source) override {
        return index_of(rank) < members()->size() && source == address_of(index_of(rank));
    }
    void within(Nanoseconds, FunctionRef<void()> body) noexcept override { body(); }

    // Overrides of group::JoinPort.
    wire::Hello own_hello() const override;
    void send_hello(Rank to, std::uint32_t, Bytes hello) override { send(to, 0, hello); }
    void send(Rank to, std::uint32_t, Bytes datagram) override {
        post(Way::datagram, index_of(to), datagram);
    }
    const wire::Hello* miscounted_hello(Rank rank) override { return joins_.miscounted_hello(*this, rank); }
    group::RoundTrips& round_trips() override { return round_trips_; }
    Result<Outbox::Peer> peer(const ByteString& address) override;
    void queue_message(std::vector<Outbox::Peer> to, ByteString message) override {
        fuzz::check(message.size() <= group::kMessageBytes, "no join message is too long");
        for (const Outbox::Peer one : to) post(Way::join_message, static_cast<std::uint32_t>(one), message);
    }
    void withdraw() override {}
    void explain(std::string_view) override {}
    // Overrides of group::Port.
    group::Multicast& multicast() override { return *this; }
    bool can_send() const override { return true; }
    void send_message(Outbox::Peer to, const wire::HeaderBytes& header, Bytes payload) override {
        ByteString bytes(header.begin(), header.end());
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        post(Way::message, static_cast<std::uint32_t>(to), bytes);
    }
    void queue_final_message(std::vector<Outbox::Peer> to, ByteString message) override {
        queue_message(std::move(to), std::move(message));
    }
    void watch(Outbox::Peer, const ByteString&, Nanoseconds) override {}
    void look_at(Outbox::Peer, const ByteString&, Nanoseconds) override {}
    Result<group::SharedBytes> find_table(const group::HostMemoryName& name) override;
    Result<std::unique_ptr<group::HostLevel>> open_host(const group::HostMembers& members) override;
    void keyed() override {}
    void changed() override {}
    void join_ended(int error) override {
        fuzz::check(!join_over_, "a join ends once");
        join_over_ = true;
        if (error != 0) failed_ = true;
    }
    void remember_ended(int error) override { joins_.remember_ended(*this, error); }
    void failed(int, Rank lost) override {
        fuzz::check(lost == kNoRank || index_of(lost) < members()->size(), "who is lost is a member");
        failed_ = true;
    }
    void completed(std::uint64_t cookie, int) override {
        fuzz::check(cookie < ended_.size(), "what completes was submitted");
        fuzz::check(!ended_[cookie], "nothing completes twice");
        ended_[cookie] = true;
    }
    std::string describe_stray_hello() override { return {}; }
    void warn(std::string_view) override {}
    std::string address_of(Rank rank) const override { return std::to_string(index_of(rank)); }
    std::string text_of(int error) const override { return std::to_string(error); }
    // Overrides of group::Multicast.
    int offer(wire::Welcome& welcome, const group::Hellos& hellos) override;
    void join(const wire::Welcome& welcome, const levels::Placement&) override {
        listens_ = !welcome.group_addresses.empty();
    }
    bool joined() const override { return listens_; }
    const std::string& why_not() const override { return why_not_; }
    std::string name() const override { return "nowhere"; }
    void send(const wire::HeaderBytes& header, Bytes payload, std::uint32_t) override;
    void flush() override {}
    void forget_payloads() override {}
    // Overrides of group::Joins::Port.
    bool may_be(const ByteString& member, const group::Source& source) const override {
        return member == source;
    }
    bool same_host(const ByteString& one, const ByteString& other) const override { return one == other; }
    void reply(const group::Source& source, Bytes datagram) override {
        post(Way::datagram, static_cast<std::uint32_t>(source[1]), datagram);
    }
    void foreign_version(const group::Source&, std::uint8_t) override {}

    static ByteString address_of(std::uint32_t rank) { return fuzz::address_of(rank); }
    group::JoinParameters parameters() const;
    void post(Way way, std::uint32_t to, Bytes bytes);

    World& world_;
    const std::uint32_t rank_;
    const wire::JoinId id_{kList, 0};
    const wire::JoinKey key_;
    const std::string why_not_ = "there is none";
    group::RoundTrips round_trips_;
    group::Joins joins_{*this};
    std::deque<fuzz::Call> calls_;  // must outlive the group
    std::vector<bool> ended_;
    bool listens_ = false, join_over_ = false, failed_ = false, closed_ = false;
    group::Group core_;
};

}  // namespace mcastcoll::fuzz
