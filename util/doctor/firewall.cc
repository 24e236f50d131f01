#include <fmt/format.h>

#include "firewall_rules.h"
#include "probes.h"

namespace mcastcoll::doctor {

Firewall look_at_firewall(const std::string& interface, int port, int family) {
    Firewall firewall;
    const Ran ran = run_program({"nft", "--json", "list", "ruleset"}, 10);
    if (ran.code != 0) {
        const std::string complaint = ran.complaint.substr(0, ran.complaint.find('\n'));
        firewall.looked = Look<bool>::failed(complaint.find("not permitted") != std::string::npos
                                                 ? "nft shows the rules only to root"
                                                 : complaint);
        return firewall;
    }
    auto rules = rules_against_multicast(ran.output, interface, port, family);
    if (!rules) {
        firewall.looked = Look<bool>::failed(rules.error().message);
        return firewall;
    }
    firewall.rules = std::move(rules).value();
    // nft does not list rules in the kernel's older tables.
    const auto old = first_line("/proc/net/ip_tables_names");
    if (old && !(*old).empty())
        firewall.looked = Look<bool>::failed("iptables-legacy has rules, which nft does not show");
    else
        firewall.looked = true;
    return firewall;
}

}  // namespace mcastcoll::doctor
