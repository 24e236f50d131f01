// The messenger over a real inner provider: a group's share of the message pools at limit - 1, limit, and
// beyond.
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ports/foreign_connection_pace.h"
#include "ports/foreign_connections.h"
#include "ports/messenger.h"
#include "support/stalled.h"

using namespace mcastcoll;
using ports::Messenger;

namespace {

constexpr std::size_t kSmallSends = 384, kLargeSends = 24, kReceives = 64;  // three quarters of the pools
constexpr std::size_t kLargeBytes = 40'000;  // size of a message that takes a large buffer
using Clock = std::chrono::steady_clock;
constexpr auto kLimit = std::chrono::seconds(60);  // limit for steps that take milliseconds

// Receives messages, each of which begins with its number.
class Counter final : public Messenger::Receiver {
  public:
    void on_message(MutableBytes message) override {
        std::uint64_t number = 0;
        std::memcpy(&number, message.data(), sizeof number);
        in_order_ = in_order_ && number == count_++;
        for (std::size_t i = sizeof number; i < message.size(); ++i)
            whole_ = whole_ && message[i] == std::byte(number % 251);
    }
    void on_send_error(fi_addr_t, int error) override { error_ = error; }
    std::uint64_t count() const { return count_; }
    bool good() const { return in_order_ && whole_ && error_ == 0; }

  private:
    std::uint64_t count_ = 0;
    int error_ = 0;
    bool in_order_ = true, whole_ = true;
};

// Reliable datagrams over TCP, which every libfabric has: from ofi_rxm before 1.18, from "tcp" itself since.
constexpr const char* kTcp = "tcp";

struct Info {
    // Returns whether this libfabric has the provider.
    static bool there(const char* provider) {
        fi_info* hints = fi_allocinfo();
        fi_info* found = nullptr;
        hints->fabric_attr->prov_name = strdup(provider);
        const bool is = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &found) == 0;
        fi_freeinfo(found);
        fi_freeinfo(hints);
        return is;
    }
    explicit Info(const char* provider) {
        fi_info* hints = fi_allocinfo();
        hints->caps = FI_MSG;
        hints->ep_attr->type = FI_EP_RDM;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->fabric_attr->prov_name = strdup(provider);
        cr_assert_eq(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info), 0);
        fi_freeinfo(hints);
        cr_assert_eq(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    }
    ~Info() {
        fi_close(&fabric->fid);
        fi_freeinfo(info);
    }
    fi_info* info = nullptr;
    fid_fabric* fabric = nullptr;
};

std::unique_ptr<Messenger> open(const Info& info, Counter& counter) {
    auto opened = Messenger::open(info.fabric, info.info, counter);
    cr_assert(opened.ok(), "%s", opened.ok() ? "" : opened.error().message.c_str());
    return std::move(opened).value();
}

fi_addr_t address_of(Messenger& from, const Messenger& to) {
    auto peer = from.peer(to.address());
    cr_assert(peer.ok());
    return peer.value();
}

// Two messengers of one process, which make progress only when polled.
class Pair {
  public:
    explicit Pair(const char* provider = kTcp) : info_(provider), peer_(address_of(*from_, *to_)) {}
    // Sends messages of this size while there is room, at most `max`; returns how many.
    std::size_t send(std::size_t max, std::size_t bytes) {
        std::size_t sent = 0;
        for (; sent < max && from_->can_send(account_); ++sent) {
            std::vector<std::byte> message(bytes, std::byte(number_ % 251));
            std::memcpy(message.data(), &number_, sizeof number_);
            from_->send(account_, peer_, Bytes(message).first(8), Bytes(message).subspan(8));
            ++number_;
        }
        return sent;
    }
    // Polls both until the receiver has received everything, and the sender's buffers are free.
    bool settle() {
        for (const auto end = Clock::now() + kLimit; Clock::now() < end;) {
            from_->poll();
            to_->poll();
            if (received_.count() == number_ && from_->under_way() == 0)
                return sent_.good() && received_.good();
        }
        return false;
    }
    void poll_sender() { from_->poll(); }
    Messenger& receiver() { return *to_; }
    std::size_t under_way() const { return from_->under_way(); }

  private:
    Info info_;
    Counter sent_, received_;
    const std::unique_ptr<Messenger> from_ = open(info_, sent_), to_ = open(info_, received_);
    Messenger::Account account_{*from_};
    const fi_addr_t peer_;
    std::uint64_t number_ = 0;
};

}  // namespace

TestSuite(messenger, .timeout = 300);

// Two groups wait for a peer that never polls; a third continues.
Test(messenger, a_peer_that_takes_nothing_leaves_room_for_others) {
    for (const std::size_t bytes : {std::size_t{100}, kLargeBytes}) {
        const Info info(kTcp);
        Counter sent, unread, taken;
        const auto from = open(info, sent), deaf = open(info, unread), other = open(info, taken);
        const fi_addr_t to_deaf = address_of(*from, *deaf), to_other = address_of(*from, *other);
        const std::vector<std::byte> message(bytes);
        std::size_t waiting = 0;
        Messenger::Account first(*from), second(*from), third(*from);
        for (Messenger::Account* const account : {&first, &second})
            for (; from->can_send(*account); ++waiting) from->send(*account, to_deaf, message, {});
        cr_assert_gt(waiting, bytes == kLargeBytes ? kLargeSends : kSmallSends, "both wait");
        cr_assert(from->can_send(third));
        from->send(third, to_other, message, {});
        for (const auto end = Clock::now() + kLimit; taken.count() == 0 && Clock::now() < end;)
            from->poll(), other->poll();
        cr_assert_eq(taken.count(), 1);
        cr_assert_eq(unread.count(), 0);
    }
}

// The buffers of a closed group's messages belong to no group, and return to the pool all the same.
Test(messenger, a_group_goes_while_its_messages_are_under_way) {
    const Info info(kTcp);
    Counter sent, taken;
    const auto from = open(info, sent), to = open(info, taken);
    const fi_addr_t peer = address_of(*from, *to);
    const std::vector<std::byte> message(kLargeBytes);
    for (int round = 0; round < 3; ++round) {
        std::optional<Messenger::Account> account(std::in_place, *from);
        std::size_t count = 0;
        for (; from->can_send(*account); ++count) from->send(*account, peer, message, {});
        cr_assert_eq(count, kLargeSends, "all that there is");
        account.reset();
        for (const auto end = Clock::now() + kLimit; from->under_way() > 0 && Clock::now() < end;)
            from->poll(), to->poll();
        cr_assert_eq(from->under_way(), 0);
    }
}

// The provider "net" may leave its descriptor readable after the data have been read. A waiter that must not
// pause does not sleep on such a descriptor; for a waiter that may pause, prepare_wait() clears the
// descriptor.
Test(messenger, a_stale_descriptor_is_cleared_by_a_caller_that_may_pause) {
    if (!Info::there("net")) cr_skip_test("libfabric 2.x has it no more");
    Pair pair("net");
    cr_assert(pair.send(5, 100) == 5 && pair.settle());
    Messenger& receiver = pair.receiver();
    pollfd waiting{receiver.descriptor(), POLLIN, 0};
    cr_assert_geq(waiting.fd, 0);
    const bool clear = ::poll(&waiting, 1, 0) == 0;
    cr_assert_eq(receiver.prepare_wait(false), clear);
    cr_assert(receiver.prepare_wait());
    cr_assert(receiver.prepare_wait(false));
}

// The peer is not polled, so all messages stay in the sender's buffers.
Test(messenger, as_many_small_messages_as_there_are_buffers) {
    for (const std::size_t want : {kSmallSends - 1, kSmallSends, kSmallSends + 1}) {
        Pair pair;
        const std::size_t sent = pair.send(want, 100);
        cr_assert_eq(sent, std::min(want, kSmallSends));
        cr_assert_eq(pair.under_way(), sent);
        cr_assert_eq(pair.send(1, 100), want < kSmallSends ? 1 : 0);
        cr_assert(pair.settle());
        cr_assert_eq(pair.send(kSmallSends + 1, 100) > 0, true, "there is room again");
        cr_assert(pair.settle());
    }
}

Test(messenger, as_many_large_messages_as_there_are_buffers) {
    for (const std::size_t want : {kLargeSends - 1, kLargeSends, kLargeSends + 1}) {
        Pair pair;
        cr_assert_eq(pair.send(want, kLargeBytes), std::min(want, kLargeSends));
        cr_assert_eq(pair.send(1, kLargeBytes), want < kLargeSends ? 1 : 0);
        cr_assert(pair.settle());
    }
}

// The receiver is not polled while more messages arrive than it has buffers for.
Test(messenger, more_messages_than_receive_buffers_wait) {
    Pair pair;
    cr_assert(pair.send(1, 100) == 1 && pair.settle(), "they are connected");
    for (const std::size_t want : {kReceives - 1, kReceives, kReceives + 1, 4 * kReceives})
        for (const std::size_t bytes : {std::size_t{100}, ports::kSmallMessageBytes}) {
            std::size_t sent = 0;
            for (const auto end = Clock::now() + kLimit; sent < want && Clock::now() < end;) {
                sent += pair.send(want - sent, bytes);
                pair.poll_sender();
            }
            cr_assert_eq(sent, want);
            cr_assert(pair.settle(), "%zu messages of %zu bytes", want, bytes);
        }
}

namespace {

constexpr std::size_t kForeign = kReceives + 6;

// Connections of non-members, more than there are receives, each in the middle of a message.
class ForeignConnections {
  public:
    explicit ForeignConnections(Messenger& at) {
        sockaddr_in address{};
        std::memcpy(&address, at.address().data(), sizeof address);
        for (std::uint16_t i = 0; i < kForeign; ++i) {
            // One after the other, because the backlog of connections is short.
            all_.push_back(
                fabtest::connect_foreign(address, "127.0.0.2", static_cast<std::uint16_t>(1000 + i)));
            cr_assert(all_.back().valid());
            bool began = false;
            for (const auto end = Clock::now() + kLimit; !began && Clock::now() < end;) {
                at.poll();
                began = fabtest::begin_message(all_.back());
            }
            cr_assert(began);
        }
    }
    void leave() { all_.clear(); }

  private:
    std::vector<FileDescriptor> all_;
};

// The provider that carries the groups' messages over TCP.
const char* own_provider() {
    return Info::there("net") ? "net" : kTcp;
}

transport::SocketAddress listens_at(const Messenger& messenger) {
    return transport::SocketAddress::from_bytes(messenger.address()).value();
}

bool becomes_starved(Messenger& messenger) {
    for (const auto end = Clock::now() + kLimit; Clock::now() < end;)
        if (messenger.is_starved()) return true;
    return false;
}

}  // namespace

Test(messenger, receives_that_wait_are_not_starved) {
    for (const char* provider : {own_provider(), kTcp}) {
        Pair pair(provider);
        for (int round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < 2 * kReceives; ++i) cr_assert_not(pair.receiver().is_starved());
            cr_assert(pair.send(5, 100) == 5 && pair.settle());
        }
    }
}

Test(messenger, foreign_connections_in_the_middle_of_messages_are_ended) {
    Pair pair(own_provider());
    cr_assert(pair.send(1, 100) == 1 && pair.settle());
    const ForeignConnections foreign_connections(pair.receiver());
    cr_assert(becomes_starved(pair.receiver()));
    cr_assert(pair.send(5, 100) == 5);
    std::size_t members = 0;
    const std::size_t ended =
        ports::end_connections(listens_at(pair.receiver()), [&](const transport::SocketAddress& from) {
            const bool is_member = from.same_host(listens_at(pair.receiver()));
            members += is_member;
            return !is_member;
        });
    cr_assert_eq(ended, kForeign);
    cr_assert_eq(members, 1);
    cr_assert(pair.settle());
    cr_assert_not(pair.receiver().is_starved());
}

// A connection that ends in the middle of a message frees the receive of this message.
Test(messenger, foreign_connections_that_end_take_no_receives_with_them) {
    Pair pair(own_provider());
    cr_assert(pair.send(1, 100) == 1 && pair.settle());
    ForeignConnections foreign_connections(pair.receiver());
    cr_assert(becomes_starved(pair.receiver()));
    foreign_connections.leave();
    cr_assert(pair.send(5, 100) == 5 && pair.settle());
}

Test(foreign_connections, are_looked_for_where_nothing_comes) {
    constexpr auto at = [](std::int64_t ms) { return Nanoseconds::from_ms(ms); };
    ports::ForeignConnectionPace pace;
    pace.received(at(5000));
    cr_assert(pace.next_look() == at(6000));
    pace.has_looked(false, at(6000));
    cr_assert(pace.next_look() == at(7000));
    pace.has_looked(false, at(7000));
    cr_assert(pace.next_look() == at(9000), "less and less often");
    for (int i = 0; i < 20; ++i) pace.has_looked(false, at(9000));
    cr_assert(pace.next_look() == at(9000 + 32'000));
    pace.has_looked(true, at(41'000));
    cr_assert(pace.is_alert() && pace.next_look() == at(41'010), "often");
    pace.received(at(41'020));
    cr_assert(pace.next_look() == at(41'030));
    pace.has_looked(false, at(101'000));
    cr_assert_not(pace.is_alert());
    cr_assert(pace.next_look() == at(102'000));
}
