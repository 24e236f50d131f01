// Tests the pure parts of a host set: fields, sealed messages, invitations, and lists of hosts given by the
// user.
#include <criterion/criterion.h>

#include "hostset/encoding.h"
#include "hostset/invitation.h"
#include "hostset/messages.h"
#include "hostset/opener.h"
#include "hostset/reader.h"
#include "hostset/sealer.h"
#include "hostset/writer.h"

using namespace mcastcoll;
using namespace mcastcoll::hostset;

namespace {

wire::Key key(unsigned char byte) {
    wire::Key key;
    key.fill(static_cast<std::byte>(byte));
    return key;
}

std::string take(Opener& opener) {
    auto message = opener.next();
    cr_assert(message.ok(), "%s", message.ok() ? "" : message.error().message.c_str());
    cr_assert(message.value().has_value(), "not all of it is there");
    return *message.value();
}

void expect_hosts_error(const char* text, const char* part) {
    const auto hosts = parse_hosts(text, ',');
    cr_assert_not(hosts.ok(), "taken: %s", text);
    cr_assert(hosts.error().message.find(part) != std::string::npos, "%s", hosts.error().message.c_str());
}

}  // namespace

Test(encoding, fields_come_back) {
    const std::string bytes =
        Writer().number(7).text("").text(std::string("a\0b", 3)).number(UINT64_MAX).take();
    Reader reader(bytes);
    cr_assert_eq(reader.number(), 7U);
    cr_assert_eq(reader.text().size(), 0U);
    cr_assert(reader.text() == std::string_view("a\0b", 3));
    cr_assert_not(reader.at_end());
    cr_assert_eq(reader.number(), UINT64_MAX);
    cr_assert(reader.at_end());
    cr_assert_eq(reader.number(), 0U);
    cr_assert_not(reader.ok());
}

Test(encoding, truncated_fields_are_invalid) {
    const std::string bytes = Writer().text("four").take();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        Reader reader(std::string_view(bytes).substr(0, size));
        cr_assert_eq(reader.text().size(), 0U);
        cr_assert_not(reader.ok());
    }
    const std::string huge = Writer().number(UINT64_MAX).take();  // a length beyond all memory
    Reader reader(huge);
    cr_assert_eq(reader.text().size(), 0U);
    cr_assert_not(reader.ok());
}

Test(encoding, messages_come_whole_and_in_order) {
    Sealer sealer(key(1));
    std::string all = sealer.seal("one");
    all += sealer.seal("");
    all += sealer.seal(std::string(5000, 'z'));
    Opener opener(key(1), 5000);
    std::vector<std::string> got;
    for (const char c : all) {
        opener.append({&c, 1});
        for (auto message = opener.next(); message.ok() && message.value(); message = opener.next())
            got.push_back(*message.value());
    }
    cr_assert_eq(got.size(), 3U);
    cr_assert(got[0] == "one" && got[1].empty() && got[2] == std::string(5000, 'z'));
}

Test(encoding, a_message_has_a_limit) {
    Sealer sealer(key(1));
    Opener opener(key(1), 10);
    opener.append(sealer.seal("0123456789"));
    cr_assert_eq(take(opener).size(), 10U);
    opener.append(sealer.seal("0123456789a").substr(0, 20));  // the length alone is too large: no body needed
    const auto message = opener.next();
    cr_assert_not(message.ok());
    cr_assert_eq(message.error().code, EMSGSIZE);
}

Test(encoding, an_invalid_tag_is_no_message) {
    Sealer sealer(key(1));
    const std::string first = sealer.seal("first"), second = sealer.seal("second");
    Opener other(key(2), 100), late(key(1), 100), again(key(1), 100);
    other.append(first);
    cr_assert_not(other.next().ok(), "another key");
    late.append(second);
    cr_assert_not(late.next().ok(), "the first one was left out");
    again.append(first + first);
    cr_assert(take(again) == "first");
    cr_assert_not(again.next().ok(), "the same again");
    for (std::size_t at = 4; at < first.size(); ++at) {
        std::string changed = first;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        Opener opener(key(1), 100);
        opener.append(changed);
        cr_assert_not(opener.next().ok(), "byte %zu is another", at);
    }
}

Test(encoding, invitations) {
    const std::string bytes = as_bytes_of(Invitation{key(9), 3, {"FI_LOG_LEVEL=warn", "FI_X=a\nb"}});
    const auto invitation = parse_invitation(bytes);
    cr_assert(invitation.ok());
    cr_assert(invitation.value().token == key(9));
    cr_assert_eq(invitation.value().rank, 3U);
    cr_assert_eq(invitation.value().environment.size(), 2U);
    cr_assert(invitation.value().environment[1] == "FI_X=a\nb");
    for (std::size_t size = 0; size < bytes.size(); ++size)
        cr_assert_not(parse_invitation(std::string_view(bytes).substr(0, size)).ok());
    cr_assert_not(parse_invitation(bytes + "x").ok());
}

Test(encoding, hellos) {
    const std::string bytes = as_bytes_of(Hello{"mcastcoll-x 1", 5, 77, "h5"});
    const auto hello = parse_hello(bytes);
    cr_assert(hello.ok());
    cr_assert(hello.value().program == "mcastcoll-x 1" && hello.value().host == "h5");
    cr_assert_eq(hello.value().rank, 5U);
    cr_assert_eq(hello.value().host_id, 77U);
    cr_assert_not(parse_hello(bytes.substr(1)).ok());
}

Test(encoding, hosts) {
    auto hosts = parse_hosts("h0, user@h1,10.0.0.1 ,fd00::1", ',');
    cr_assert(hosts.ok());
    cr_assert_eq(hosts.value().size(), 4U);
    cr_assert(hosts.value()[1] == "user@h1" && hosts.value()[2] == "10.0.0.1" &&
              hosts.value()[3] == "fd00::1");
    hosts = parse_hosts("# nodes\n\n h0 \nh1 # the second\r\nh2", '\n');
    cr_assert(hosts.ok());
    cr_assert_eq(hosts.value().size(), 3U);
    cr_assert(hosts.value()[0] == "h0" && hosts.value()[1] == "h1" && hosts.value()[2] == "h2");
    expect_hosts_error("", "'' is not the name");
    expect_hosts_error("a,,b", "'' is not the name");
    expect_hosts_error("a,b,a", "host a is named twice");
    expect_hosts_error("a,-oProxyCommand=x", "'-oProxyCommand=x' is not the name");
    expect_hosts_error("a b", "'a b' is not the name");
    expect_hosts_error("a;reboot", "is not the name");
    cr_assert_not(parse_hosts("# nothing\n", '\n').ok());
    std::string many = "h";
    for (std::size_t i = 0; i < kMaxHosts; ++i) many += ",h" + std::to_string(i);
    expect_hosts_error(many.c_str(), "at most 4096");
}

Test(encoding, endpoints) {
    const auto endpoints = parse_endpoints("10.0.0.1:4711,[fd00::1]:80");
    cr_assert(endpoints.ok());
    cr_assert_eq(endpoints.value().size(), 2U);
    cr_assert_eq(endpoints.value()[1].port, 80U);
    cr_assert(to_string(endpoints.value()) == "10.0.0.1:4711,[fd00::1]:80");
    for (const char* text : {"", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:99999", "h0:1", "10.0.0.1:1,"})
        cr_assert_not(parse_endpoints(text).ok(), "taken: %s", text);
}

Test(encoding, words_for_the_shell) {
    cr_assert(as_shell_word("") == "''");
    cr_assert(as_shell_word("a b$c") == "'a b$c'");
    cr_assert(as_shell_word("it's") == "'it'\\''s'");
}
