// Searches an nftables ruleset for rules that may drop a UDP multicast. A condition of unknown form counts as
// possibly true; the experiment then shows whether datagrams are lost.
#include "firewall_rules.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace mcastcoll::doctor {
namespace {

using Json = nlohmann::json;

// Range of the ports drawn by groups.
constexpr std::int64_t kMinPort = 20000, kMaxPort = 32767;
constexpr int kDeepest = 8;  // nesting of chains

struct Chain {
    std::string family, table, name, hook, policy;
    std::vector<Json> rules;
};

// Meaning of a condition: the packet is a multicast, is no multicast, or may be either.
enum class Traffic { multicast, other, any };

Traffic opposite(Traffic traffic) {
    return traffic == Traffic::multicast ? Traffic::other
           : traffic == Traffic::other   ? Traffic::multicast
                                         : traffic;
}

std::string words(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_object()) return value.dump();
    if (value.contains("prefix"))
        return fmt::format("{}/{}", words(value["prefix"]["addr"]), words(value["prefix"]["len"]));
    if (value.contains("range"))
        return fmt::format("{}-{}", words(value["range"][0]), words(value["range"][1]));
    if (value.contains("payload") && value["payload"].contains("protocol"))
        return fmt::format("{} {}", words(value["payload"]["protocol"]), words(value["payload"]["field"]));
    for (const char* kind : {"meta", "ct"})
        if (value.contains(kind)) return fmt::format("{} {}", kind, words(value[kind].value("key", Json())));
    if (value.contains("set") && value["set"].is_array()) {
        std::string all;
        for (const Json& one : value["set"]) all += (all.empty() ? "{ " : ", ") + words(one);
        return all + " }";
    }
    return value.is_object() && !value.empty() ? value.begin().key() : value.dump();
}

Traffic of_address(const Json& value) {
    const std::string text = words(value);
    const int first = std::atoi(text.c_str());
    const bool v6 = text.find(':') != std::string::npos;
    if (text.starts_with("@") || text.starts_with("{")) return Traffic::any;  // a set
    if (!text.empty() && text.back() == '0' && text.ends_with("/0")) return Traffic::any;
    if (v6) return text.starts_with("ff") ? Traffic::multicast : Traffic::other;
    return first >= 224 && first <= 239 ? Traffic::multicast : Traffic::other;
}

bool has_port(const Json& value, int port) {
    const auto within = [port](std::int64_t from, std::int64_t to) {
        return port != 0 ? from <= port && port <= to : from <= kMaxPort && to >= kMinPort;
    };
    if (value.is_number_integer()) return within(value.get<std::int64_t>(), value.get<std::int64_t>());
    if (!value.is_object()) return true;
    if (value.contains("range") && value["range"].is_array() && value["range"].size() == 2 &&
        value["range"][0].is_number() && value["range"][1].is_number())
        return within(value["range"][0].get<std::int64_t>(), value["range"][1].get<std::int64_t>());
    if (!value.contains("set") || !value["set"].is_array()) return true;
    for (const Json& one : value["set"])
        if (has_port(one, port)) return true;
    return false;
}

bool names(const Json& value, std::string_view word) {
    if (value.is_string()) return value.get<std::string>() == word;
    if (value.is_object() && value.contains("set") && value["set"].is_array())
        for (const Json& one : value["set"])
            if (names(one, word)) return true;
    return value.is_object() && !value.contains("set");  // of unknown form: possible
}

Traffic of_match(const Json& match, const std::string& interface, int port, const std::string& other_ip) {
    const Json left = match.value("left", Json()), right = match.value("right", Json());
    const std::string what = words(left);
    if (what.starts_with(other_ip)) return Traffic::other;
    const bool negated = match.value("op", "") == "!=";
    const auto unless = [negated](Traffic traffic) { return negated ? opposite(traffic) : traffic; };
    const auto only = [&](bool fits) { return fits != negated ? Traffic::any : Traffic::other; };
    if (what == "ip daddr" || what == "ip6 daddr") return unless(of_address(right));
    if (what == "meta pkttype" || what == "fib")
        return unless(names(right, "multicast") ? Traffic::multicast : Traffic::other);
    if (what == "meta iifname" || what == "meta oifname" || what == "meta iif" || what == "meta oif")
        return only(names(right, interface) || words(right).find('*') != std::string::npos);
    if (what == "meta l4proto" || what == "ip protocol" || what == "ip6 nexthdr")
        return only(names(right, "udp") || right == 17);
    if (what == "udp dport") return only(has_port(right, port));
    if (what.starts_with("tcp ") || what.starts_with("icmp") || what.starts_with("igmp"))
        return Traffic::other;
    if (what == "ct state" && !negated)
        return names(right, "new") || names(right, "untracked") ? Traffic::any : Traffic::other;
    return Traffic::any;
}

// Whether a condition holds for every multicast of the provider: only then does an accepting rule end the
// evaluation.
bool always_holds(const Json& match, const std::string& interface, int port) {
    const Json left = match.value("left", Json()), right = match.value("right", Json());
    const std::string what = words(left);
    if (match.value("op", "") == "!=") return false;
    if (what == "ip daddr" || what == "ip6 daddr") {
        const std::string range = words(right);
        return range == "224.0.0.0/4" || range == "239.0.0.0/8" || range == "ff00::/8";
    }
    if (what == "meta pkttype") return names(right, "multicast");
    if (what == "meta iifname" || what == "meta oifname") return right == interface;
    if (what == "meta l4proto" || what == "ip protocol") return names(right, "udp") || right == 17;
    if (what != "udp dport") return false;
    return port != 0 ? has_port(right, port)
                     : has_port(right, kMinPort) && has_port(right, kMaxPort) && right.contains("range");
}

class Reader {
  public:
    Reader(const std::string& interface, int port, int family)
        : interface_(interface), port_(port), other_ip_(family == 4 ? "ip6 " : "ip ") {}

    void take(const Json& object) {
        if (object.contains("chain")) {
            const Json& chain = object["chain"];
            const std::string key = place_of(chain, "name");
            Chain& ours = chains_[key];
            ours = {chain.value("family", ""), chain.value("table", ""),  chain.value("name", ""),
                    chain.value("hook", ""),   chain.value("policy", ""), std::move(ours.rules)};
            order_.push_back(key);
        } else if (object.contains("rule")) {
            chains_[place_of(object["rule"], "chain")].rules.push_back(object["rule"]);
        }
    }

    std::vector<Firewall::Rule> found() {
        for (const std::string& key : order_) {
            const Chain& chain = chains_[key];
            if (chain.hook.empty() || chain.hook == "forward" || !concerns(chain)) continue;
            accepted_ = false;
            outgoing_ = chain.hook == "output" || chain.hook == "postrouting" || chain.hook == "egress";
            look_into(chain, "", false, 0);
            if (chain.policy == "drop" && !accepted_) add_policy(chain);
        }
        return std::move(rules_);
    }

  private:
    // Chains of a bridge apply to bridged packets only.
    bool concerns(const Chain& chain) const {
        return chain.family != "bridge" && chain.family != "arp" && chain.family + ' ' != other_ip_;
    }
    static std::string place_of(const Json& object, const char* name) {
        return fmt::format("{} {} {}", object.value("family", ""), object.value("table", ""),
                           object.value(name, ""));
    }

    void add_policy(const Chain& chain) {
        const std::string place = fmt::format("{} {} {}", chain.family, chain.table, chain.name);
        rules_.push_back(
            {fmt::format("chain {} drops packets that no rule accepts (policy drop)", place),
             fmt::format("nft insert rule {} meta l4proto udp ip daddr 239.0.0.0/8 accept", place), false,
             outgoing_});
    }

    // `before`: the conditions under which the chain was called.
    void look_into(const Chain& chain, const std::string& before, bool about_multicast, int depth) {
        for (const Json& rule : chain.rules) look_at(chain, rule, before, about_multicast, depth);
    }

    void look_at(const Chain& chain, const Json& rule, std::string conditions, bool about_multicast,
                 int depth) {
        bool always = before_is_certain_;
        for (const Json& part : rule.value("expr", Json::array())) {
            if (accepted_) return;
            if (part.contains("match")) {
                const Json& match = part["match"];
                const Traffic traffic = of_match(match, interface_, port_, other_ip_);
                if (traffic == Traffic::other) return;
                about_multicast = about_multicast || traffic == Traffic::multicast;
                always = always && always_holds(match, interface_, port_);
                conditions += fmt::format("{} {}{} ", words(match.value("left", Json())),
                                          match.value("op", "==") == "==" ? "" : match.value("op", "") + " ",
                                          words(match.value("right", Json())));
            } else if (part.contains("accept")) {
                accepted_ = accepted_ || always;
            } else if (part.contains("drop") || part.contains("reject")) {
                const std::string place = fmt::format("{} {} {}", chain.family, chain.table, chain.name);
                rules_.push_back({fmt::format("{}drop (chain {})", conditions, place),
                                  fmt::format("nft delete rule {} handle {}", place, rule.value("handle", 0)),
                                  about_multicast, outgoing_});
            } else {
                for (const char* call : {"jump", "goto"})
                    if (part.contains(call) && depth < kDeepest) {
                        const std::string target = part[call].value("target", "");
                        const auto called =
                            chains_.find(fmt::format("{} {} {}", chain.family, chain.table, target));
                        const bool certain = std::exchange(before_is_certain_, always);
                        if (called != chains_.end())
                            look_into(called->second, conditions, about_multicast, depth + 1);
                        before_is_certain_ = certain;
                    }
            }
        }
    }

    const std::string& interface_;
    const int port_;
    const std::string other_ip_;  // prefix of conditions of the other IP version
    bool outgoing_ = false;
    bool accepted_ = false;          // every multicast has been accepted by an earlier rule
    bool before_is_certain_ = true;  // the chain is called for every multicast
    std::map<std::string, Chain> chains_;
    std::vector<std::string> order_;
    std::vector<Firewall::Rule> rules_;
};

}  // namespace

Result<std::vector<Firewall::Rule>> rules_against_multicast(const std::string& ruleset,
                                                            const std::string& interface, int port,
                                                            int family) {
    try {
        Reader reader(interface, port, family);
        const Json all = Json::parse(ruleset);
        for (const Json& object : all.at("nftables")) reader.take(object);
        return reader.found();
    } catch (const std::exception& error) {
        return Error{EBADMSG, fmt::format("cannot parse the output of nft: {}", error.what())};
    }
}

}  // namespace mcastcoll::doctor
