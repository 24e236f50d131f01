// The joins of a process: answers to messages for unknown groups.
#include <criterion/criterion.h>

#include "group/joins.h"
#include "wire_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::group;

namespace {

class Replies final : public Joins::Port {
  public:
    bool may_be(const wire::ByteString&, const Source&) const override { return true; }
    bool same_host(const wire::ByteString&, const wire::ByteString&) const override { return true; }
    void reply(const Source&, Bytes datagram) override {
        replies.emplace_back(datagram.begin(), datagram.end());
    }
    Result<Outbox::Peer> peer(const wire::ByteString&) override { return Outbox::Peer{1}; }
    void queue_message(std::vector<Outbox::Peer>, wire::ByteString) override { ++messages; }
    void foreign_version(const Source&, std::uint8_t) override { ++warnings; }

    std::vector<wire::ByteString> replies;
    unsigned messages = 0, warnings = 0;
};

const Source kSomewhere(6, std::byte{1});

wire::ByteString hello_of_version(std::uint8_t version) {
    wire::Hello hello;
    hello.id = {7, 1};
    hello.members = 2;
    hello.address_family = 4;
    hello.peer.private_address = kSomewhere;
    wire::ByteString bytes = wire::encode(hello);
    bytes[2] = std::byte{version};
    test::put_checksum(bytes);
    return bytes;
}

}  // namespace

Test(joins, another_version_is_answered_at_a_bounded_rate) {
    Replies port;
    Joins joins(port);
    const wire::ByteString foreign = hello_of_version(wire::kJoinVersion + 1);
    const Nanoseconds start = Nanoseconds::from_ms(5'000);
    for (int i = 0; i < 63; ++i) joins.on_datagram(foreign, kSomewhere, start);
    cr_assert_eq(port.replies.size(), 63U);
    joins.on_datagram(foreign, kSomewhere, start);
    joins.on_datagram(foreign, kSomewhere, start + Nanoseconds::from_ms(999));
    cr_assert_eq(port.replies.size(), 64U);
    joins.on_datagram(foreign, kSomewhere, start + Nanoseconds::from_ms(1'000));
    cr_assert_eq(port.replies.size(), 65U);
    cr_assert_eq(port.warnings, 1U);
}

Test(joins, a_hello_for_a_join_to_come_is_kept_without_an_answer) {
    Replies port;
    Joins joins(port);
    joins.on_datagram(hello_of_version(wire::kJoinVersion), kSomewhere, Nanoseconds{1});
    cr_assert(port.replies.empty());
}

Test(joins, unrequested_members_are_foreign) {
    Replies port;
    Joins joins(port);
    joins.on_datagram(wire::encode(wire::Echo{{{7, 1}, 0, rank_of(0)}, 1, false}), kSomewhere,
                      Nanoseconds{1});
    joins.on_datagram(wire::encode(wire::Surveyed{{{7, 1}, 0, rank_of(0)}, {}}), kSomewhere, Nanoseconds{1});
    cr_assert_eq(joins.foreign_datagrams(), 2U);
    cr_assert(port.replies.empty());
}

Test(joins, a_message_of_no_group_does_nothing) {
    Replies port;
    Joins joins(port);
    const wire::MessageHead head{{7, 1}, 1, wire::ByteString(8)};
    for (const wire::ByteString& message :
         {wire::encode(wire::WelcomePart{head, 0, 9, wire::ByteString(9)}),
          wire::encode(wire::HostWelcome{head, {}, {}}), wire::encode_collect(head),
          wire::encode(wire::GatheredHellos{{7, 1}, rank_of(1), {}}), wire::encode(wire::Ended{{7, 1}, 104})})
        cr_assert_not(joins.on_join_message(message, Nanoseconds{1}));
    cr_assert_eq(port.messages, 0U);
}
