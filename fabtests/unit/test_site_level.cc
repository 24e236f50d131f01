// The level between sites by itself: greeting, windows, and messages that are not as they should be.
#include <criterion/criterion.h>

#include <cerrno>
#include <vector>

#include "levels/site_level.h"

namespace mcastcoll::levels {

TestSuite(site_level, .timeout = 300);

// What is sent to a member that does not know the group yet is lost.
Test(site_level, sites_greet_until_they_are_answered) {
    const std::vector<MemberPlace> two_sites = {{0, 0}, {1, 1}};
    Placement first(0, two_sites), second(1, two_sites);
    SiteLevel top(first, {}), other(second, {});
    SiteLevel::Outgoing message;
    other.start({});
    cr_assert(other.poll_outgoing(message));  // lost
    cr_assert_not(other.poll_outgoing(message));
    top.start({});
    cr_assert_not(top.greeted());
    cr_assert_eq(other.next_deadline(), kLeastGreetInterval);
    other.progress(kLeastGreetInterval);
    cr_assert(other.poll_outgoing(message));
    top.on_message(message.header, {});
    cr_assert(top.greeted());
    cr_assert(top.poll_outgoing(message));
    cr_assert_eq(message.to, 1U);
    cr_assert_not(other.greeted());
    other.on_message(message.header, {});
    cr_assert(other.greeted());
    cr_assert_eq(other.next_deadline(), kNever);
}

Test(site_level, lengths_that_differ_are_an_error) {
    const std::vector<MemberPlace> two_sites = {{0, 0}, {1, 1}};
    Placement first(0, two_sites), second(1, two_sites);
    SiteLevel sender(first, {}), receiver(second, {});
    std::vector<std::byte> long_one(100), short_one(50);
    Leg out, in;
    out.buffer = long_one.data();
    out.bytes = out.ready = long_one.size();
    in.buffer = short_one.data();
    in.bytes = short_one.size();
    cr_assert_eq(sender.post(out, {}), 0);
    cr_assert_eq(receiver.post(in, {}), 0);
    SiteLevel::Outgoing message;
    cr_assert(sender.poll_outgoing(message));
    std::vector<std::byte> bytes(message.header.begin(), message.header.end());
    bytes.insert(bytes.end(), message.payload.begin(), message.payload.end());
    receiver.on_message(bytes, {});
    receiver.progress({});
    cr_assert(in.done);
    cr_assert_eq(in.error, EMSGSIZE);
}

// Pieces of an operation that nobody posts are kept up to the window, and no further.
Test(site_level, unposted_pieces_are_bounded) {
    const std::vector<MemberPlace> two_sites = {{0, 0}, {1, 1}};
    Placement first(0, two_sites), second(1, two_sites);
    SiteConfig config;
    config.message_bytes = 2048;
    config.window_bytes = 8192;
    SiteLevel sender(first, config), receiver(second, config);
    std::vector<std::byte> data(100000);
    Leg out;
    out.buffer = data.data();
    out.bytes = out.ready = data.size();
    cr_assert_eq(sender.post(out, {}), 0);
    std::size_t sent = 0;
    for (SiteLevel::Outgoing message; sender.poll_outgoing(message); sent += message.payload.size()) {
        std::vector<std::byte> bytes(message.header.begin(), message.header.end());
        bytes.insert(bytes.end(), message.payload.begin(), message.payload.end());
        receiver.on_message(bytes, {});
    }
    cr_assert_gt(sent, 0);
    cr_assert_leq(sent, config.window_bytes);
    cr_assert_eq(receiver.counters().bad_pieces, 0);
    cr_assert_not(out.done);
}

Test(site_level, foreign_and_broken_pieces_are_counted) {
    const std::vector<MemberPlace> two_sites = {{0, 0}, {1, 1}};
    Placement first(0, two_sites);
    SiteLevel level(first, {});
    std::vector<std::byte> garbage(100);
    level.on_message(garbage, {});
    level.on_message(Bytes(garbage).first(3), {});
    wire::Header header;
    header.kind = wire::Kind::piece;
    header.key = GroupKey{1};
    header.sender = rank_of(1);
    wire::HeaderBytes encoded;
    wire::encode(header, {}, encoded);
    level.on_message(encoded, {});
    header.key = GroupKey{0};
    header.sender = rank_of(17);
    wire::encode(header, {}, encoded);
    level.on_message(encoded, {});
    cr_assert_eq(level.counters().bad_pieces, 4);
}

}  // namespace mcastcoll::levels
