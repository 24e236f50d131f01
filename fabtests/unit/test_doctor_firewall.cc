// Detection of nftables rules that may drop the provider's multicasts, from nftables' JSON.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include "doctor/firewall_rules.h"

using namespace mcastcoll;
using namespace mcastcoll::doctor;

namespace {

// Returns the JSON of a match of one field; the rest of the rule follows.
std::string match(const std::string& left, const std::string& right, const char* op = "==") {
    return fmt::format(R"({{"match": {{"op": "{}", "left": {}, "right": {}}}}}, )", op, left, right);
}
std::string payload(const char* protocol, const char* field) {
    return fmt::format(R"({{"payload": {{"protocol": "{}", "field": "{}"}}}})", protocol, field);
}
std::string meta(const char* key) {
    return fmt::format(R"({{"meta": {{"key": "{}"}}}})", key);
}
std::string ruleset(const std::string& expression, const char* hook = "input",
                    const char* policy = "accept") {
    return fmt::format(
        R"({{"nftables": [{{"metainfo": {{}}}}, {{"table": {{"family": "inet", "name": "t"}}}},
        {{"chain": {{"family": "inet", "table": "t", "name": "c", "hook": "{}", "policy": "{}"}}}},
        {{"chain": {{"family": "inet", "table": "t", "name": "called"}}}},
        {{"rule": {{"family": "inet", "table": "t", "chain": "called", "handle": 8, "expr": [{{"drop": null}}]}}}},
        {{"rule": {{"family": "inet", "table": "t", "chain": "c", "handle": 9, "expr": [{}]}}}}]}})",
        hook, policy, expression);
}
std::vector<Firewall::Rule> found(const std::string& text, int port = 0, int family = 4) {
    auto rules = rules_against_multicast(text, "eth0", port, family);
    cr_assert(rules.ok(), "%s: %s", rules.ok() ? "" : rules.error().message.c_str(), text.c_str());
    return rules.value();
}

const std::string kDrop = R"({"drop": null})";
const std::string kMulticast = R"({"prefix": {"addr": "224.0.0.0", "len": 4}})";

}  // namespace

Test(doctor_firewall, rules_that_name_multicast) {
    for (const std::string& expression :
         {match(payload("ip", "daddr"), kMulticast) + kDrop, match(meta("pkttype"), "\"multicast\"") + kDrop,
          match(payload("ip", "daddr"), "\"239.1.2.3\"") + R"({"counter": {"packets": 3}}, {"reject": null})",
          match(payload("ip", "daddr"), kMulticast) + R"({"jump": {"target": "called"}})"}) {
        const auto rules = found(ruleset(expression));
        cr_assert_eq(rules.size(), 1, "%s", expression.c_str());
        cr_assert(rules[0].names_multicast && !rules[0].outgoing, "%s", expression.c_str());
        cr_assert(rules[0].removal.starts_with("nft delete rule inet t c"), "%s", rules[0].removal.c_str());
    }
    cr_assert(found(ruleset(match(meta("pkttype"), "\"multicast\"") + kDrop, "output"))[0].outgoing);
}

Test(doctor_firewall, rules_that_may_match) {
    for (const std::string& expression :
         {kDrop, match(meta("l4proto"), "\"udp\"") + kDrop,
          match(payload("udp", "dport"), R"({"range": [30000, 40000]})") + kDrop,
          match(meta("iifname"), "\"eth0\"") + kDrop,
          match(payload("ip", "saddr"), "\"10.0.0.1\"") + kDrop}) {
        const auto rules = found(ruleset(expression));
        cr_assert_eq(rules.size(), 1, "%s", expression.c_str());
        cr_assert_not(rules[0].names_multicast, "%s", expression.c_str());
    }
    const auto rules =
        found(ruleset(match(payload("tcp", "dport"), "22") + R"({"accept": null})", "input", "drop"));
    cr_assert_eq(rules.size(), 1);
    cr_assert(rules[0].removal.starts_with("nft insert rule inet t c "));
}

Test(doctor_firewall, rules_of_other_things) {
    for (const std::string& expression :
         {match(payload("tcp", "dport"), "22") + kDrop, match(payload("ip", "daddr"), "\"10.0.0.1\"") + kDrop,
          match(R"({"ct": {"key": "state"}})", "\"invalid\"", "in") + kDrop,
          match(payload("udp", "dport"), R"({"set": [53, 67]})") + kDrop,
          match(meta("iifname"), "\"eth1\"") + kDrop, match(meta("l4proto"), "\"igmp\"") + kDrop,
          match(payload("ip", "daddr"), kMulticast, "!=") + kDrop, std::string(R"({"accept": null})")})
        cr_assert(found(ruleset(expression)).empty(), "%s", expression.c_str());
    cr_assert(found(ruleset(kDrop, "forward")).empty());
    const std::string port = match(payload("udp", "dport"), "4000") + kDrop;
    cr_assert(found(ruleset(port)).empty());
    cr_assert_eq(found(ruleset(port), 4000).size(), 1, "the port is that of the settings");
}

Test(doctor_firewall, rules_of_the_other_ip_version) {
    const std::string v6 =
        match(payload("ip6", "daddr"), R"({"prefix": {"addr": "ff00::", "len": 8}})") + kDrop;
    cr_assert(found(ruleset(v6)).empty());
    cr_assert_eq(found(ruleset(v6), 0, 6).size(), 1);
    cr_assert(found(ruleset(match(payload("ip", "daddr"), kMulticast) + kDrop), 0, 6).empty());
}

// A rule accepts packets in a chain whose policy drops all other packets.
Test(doctor_firewall, rules_that_accept_first) {
    const std::string accept = R"({"accept": null})";
    for (const std::string& expression :
         {match(payload("ip", "daddr"), kMulticast) + accept,
          match(meta("pkttype"), "\"multicast\"") + accept, match(meta("l4proto"), "\"udp\"") + accept,
          match(meta("iifname"), "\"eth0\"") + accept,
          match(payload("udp", "dport"), R"({"range": [1024, 65535]})") + accept, accept})
        cr_assert(found(ruleset(expression, "input", "drop")).empty(), "%s", expression.c_str());
    for (const std::string& expression :
         {match(payload("ip", "daddr"), "\"224.0.0.251\"") + accept,
          match(meta("iifname"), "\"lo\"") + accept, match(payload("udp", "dport"), "5353") + accept,
          match(R"({"ct": {"key": "state"}})", R"({"set": ["established", "related"]})", "in") + accept,
          match(payload("ip", "saddr"), "\"10.0.0.1\"") + accept})
        cr_assert_eq(found(ruleset(expression, "input", "drop")).size(), 1, "%s", expression.c_str());
}

Test(doctor_firewall, nonsense_is_an_error) {
    for (const char* text : {"", "{}", "[1]", "{\"nftables\": [{\"rule\": 3}]}"})
        cr_assert_not(rules_against_multicast(text, "eth0", 0, 4).ok() &&
                          !rules_against_multicast(text, "eth0", 0, 4).value().empty(),
                      "%s", text);
}
