// Findings of the doctor: one fault at a time in otherwise healthy facts.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include "doctor/report.h"
#include "doctor/tally.h"
#include "doctor_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::doctor;
using namespace mcastcoll::test;

namespace {

std::string ids(const Diagnosis& diagnosis) {
    std::string text;
    for (const Finding& finding : diagnosis.findings) {
        text += (text.empty() ? "" : " ") + finding.id;
        if (!finding.hosts.empty()) text += fmt::format("@{}", fmt::join(finding.hosts, ","));
    }
    return text;
}

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

struct Case {
    const char* what;
    const char* ids;
    Severity severity;
    std::function<void(Facts&)> spoil;
};

// Changes the facts: member `to` received no datagram from member `from`.
void cut(Facts& facts, unsigned from, unsigned to) {
    change(facts, from, to, kEveryPhase, [](ReceivedStream& received) { received.datagrams = 0; });
}
void silence(Facts& facts) {
    for (unsigned from = 0; from < facts.hosts.size(); ++from)
        for (unsigned to = 0; to < facts.hosts.size(); ++to)
            if (from != to) cut(facts, from, to);
}
void lose(Facts& facts, unsigned to, std::initializer_list<Phase> phases, std::uint64_t each) {
    for (unsigned from = 0; from < facts.hosts.size(); ++from)
        if (from != to)
            change(facts, from, to, phases, [&](ReceivedStream& received) { received.datagrams -= each; });
}
void set_rule(Facts& facts, unsigned at, bool outgoing) {
    facts.hosts[at]->firewall.rules = {{"ip daddr 224.0.0.0/4 drop", "nft delete rule x", true, outgoing}};
}
template <typename Change>
std::function<void(Facts&)> at_first(Change change) {
    return [change](Facts& facts) { change(*facts.hosts[0]); };
}
template <typename Change>
std::function<void(Facts&)> everywhere(Change change) {
    return [change](Facts& facts) {
        for (auto& host : facts.hosts) change(*host);
    };
}

const Case kHostCases[] = {
    {"a bad setting", "settings-wrong", Severity::broken,
     everywhere([](Host& h) { h.libraries.settings_error = "FI_MCASTCOLL_TTL=x is not valid"; })},
    {"no provider", "provider-missing@n0", Severity::broken,
     at_first([](Host& h) { h.libraries.provider = Look<std::string>::failed("no such provider"); })},
    {"no component", "component-missing@n0", Severity::limits,
     at_first([](Host& h) { h.libraries.component = false; })},
    {"no interposer", "interposer-missing@n0", Severity::note,
     at_first([](Host& h) { h.libraries.interposer = false; })},
    {"no Open MPI, no MPICH", "", Severity::note, everywhere([](Host& h) {
         h.libraries.openmpi = h.libraries.mpich = Look<std::string>::failed("ompi_info: not found");
         h.libraries.component = h.libraries.interposer = Look<bool>::failed("there is none");
     })},
    {"multicast off", "multicast-off", Severity::limits,
     everywhere([](Host& h) { h.libraries.multicast = false; })},
    {"other versions", "versions-differ", Severity::limits,
     at_first([](Host& h) { h.libraries.libfabric = "2.1"; })},
    {"loopback", "loopback@n0", Severity::broken, at_first([](Host& h) { h.network.loopback = true; })},
    {"no segmentation", "offload-off@n0", Severity::note,
     at_first([](Host& h) { h.network.segmentation = false; })},
    {"no coalescing on a virtual link", "", Severity::note, at_first([](Host& h) {
         h.network.driver = "";
         h.network.coalescing = false;
     })},
    {"small buffers", "buffer-small@n0", Severity::limits, at_first([](Host& h) {
         h.network.rmem_max = std::uint64_t{212992};
         h.network.buffer_granted = 425984;
         h.network.window = 37;
     })},
    {"small buffers for others", "buffer-small@n0", Severity::limits, at_first([](Host& h) {
         h.network.rmem_max = std::uint64_t{212992};
         h.network.buffer_forced = true;
     })},
    {"a tiny buffer that was requested", "buffer-tiny@n0", Severity::limits, at_first([](Host& h) {
         h.network.buffer_wanted = 4096;
         h.network.buffer_granted = 8192;
         h.network.window = 0;
     })},
    {"a small MTU", "mtu-small", Severity::limits, everywhere([](Host& h) { h.network.mtu = 1400; })},
    {"a larger MTU on one", "mtu-differs", Severity::limits, at_first([](Host& h) { h.network.mtu = 9000; })},
    {"jumbo frames everywhere", "", Severity::note, everywhere([](Host& h) { h.network.mtu = 9000; })},
    {"a small /dev/shm", "shm-small@n0", Severity::limits,
     at_first([](Host& h) { h.memory.shm_bytes = std::uint64_t{1} << 25; })},
    {"Docker's /dev/shm", "", Severity::note,
     everywhere([](Host& h) { h.memory.shm_bytes = h.memory.shm_free = std::uint64_t{64} << 20; })},
    {"a full /dev/shm", "shm-full@n0", Severity::limits,
     at_first([](Host& h) { h.memory.shm_free = std::uint64_t{1} << 20; })},
    {"Yama", "cma-refused@n0", Severity::limits, at_first([](Host& h) {
         h.memory.ptrace_scope = std::uint64_t{1};
         h.memory.reads_neighbour = false;
     })},
    {"Yama that does not hold for root", "", Severity::note,
     at_first([](Host& h) { h.memory.ptrace_scope = std::uint64_t{1}; })},
    {"few descriptors", "files-few@n0", Severity::limits, at_first([](Host& h) { h.memory.files = 256; })},
    {"little locked memory, no RDMA", "", Severity::note,
     everywhere([](Host& h) { h.memory.locked = 65536; })},
    {"little locked memory", "memlock-small@n0", Severity::limits, at_first([](Host& h) {
         h.rdma.devices = {"mlx5_0"};
         h.rdma.group = std::string("mlx5_0:1, Ethernet");
         h.memory.locked = 65536;
     })},
    {"RDMA refused", "rdma-refused@n0", Severity::limits, at_first([](Host& h) {
         h.libraries.wants_verbs = true;
         h.rdma.devices = {"mlx5_0"};
         h.rdma.group = Look<std::string>::failed("the subnet manager refused");
     })},
    {"RDMA refused, not requested", "rdma-refused@n0", Severity::note, at_first([](Host& h) {
         h.rdma.devices = {"mlx5_0"};
         h.rdma.group = Look<std::string>::failed("the interface is of no device");
     })},
    {"RDMA requested", "rdma-missing@n0", Severity::limits,
     at_first([](Host& h) { h.libraries.wants_verbs = true; })},
    {"a slow clock", "clock-slow@n0", Severity::limits,
     at_first([](Host& h) { h.machine.clock_source = std::string("hpet"); })},
    {"a virtual machine's clock", "", Severity::note,
     everywhere([](Host& h) { h.machine.clock_source = std::string("kvm-clock"); })},
    {"scaled clocks", "clock-scaled@n0", Severity::note,
     at_first([](Host& h) { h.machine.governors = {"ondemand"}; })},
    {"a virtual machine", "virtual@n0", Severity::note,
     at_first([](Host& h) { h.machine.is_virtual = true; })},
    {"containers of one machine", "one-machine@n0,n1", Severity::note,
     [](Facts& c) {
         c.hosts[1]->machine.boot = c.hosts[0]->machine.boot;
         c.hosts[1]->machine.net_namespace = 7;
     }},
    {"no querier in three seconds", "no-query-received", Severity::note,
     everywhere([](Host& h) { h.querier.received = std::string(); })},
    {"no querier at all", "querier-missing", Severity::limits, everywhere([](Host& h) {
         h.querier.received = std::string();
         h.querier.waited_s = 130;
     })},
    {"no querier, where one would query often", "querier-missing", Severity::limits,
     [](Facts& c) {
         c.query_interval_s = 2;
         for (auto& host : c.hosts) host->querier.received = std::string();
     }},
    {"no querier, where one would query seldom", "no-query-received", Severity::note,
     [](Facts& c) {
         c.query_interval_s = 250;
         for (auto& host : c.hosts) host->querier.received = std::string(), host->querier.waited_s = 130;
     }},
    {"no group", "group-failed@n0", Severity::broken,
     at_first([](Host& h) { h.end_to_end->error = "the join: Connection timed out"; })},
    {"a group without multicast", "group-without-multicast", Severity::limits,
     everywhere([](Host& h) { h.end_to_end->multicast_sent = 0; })},
    {"a host that does not answer", "host-missing@n3", Severity::broken,
     [](Facts& c) {
         c.hosts[3].reset();
         c.gone[3] = "did not join within 30 s";
     }},
};

const Case kReceptionCases[] = {
    {"a host that does not receive", "not-receiving@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned from : {0, 1, 3}) cut(c, from, 2);
     }},
    {"a host that does not receive, with a firewall", "firewall@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned from : {0, 1, 3}) cut(c, from, 2);
         set_rule(c, 2, false);
     }},
    {"a host that does not receive, with a firewall the other way", "not-receiving@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned from : {0, 1, 3}) cut(c, from, 2);
         set_rule(c, 2, true);
     }},
    {"a host that is not received", "not-received@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned to : {0, 1, 3}) cut(c, 2, to);
     }},
    {"a host that is not received, with a firewall", "firewall@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned to : {0, 1, 3}) cut(c, 2, to);
         set_rule(c, 2, true);
     }},
    {"one host does not receive, one is not received", "not-receiving@n1 not-received@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned from : {0, 2, 3}) cut(c, from, 1);
         for (const unsigned to : {0, 1, 3}) cut(c, 2, to);
     }},
    {"a pair", "path-broken", Severity::limits, [](Facts& c) { cut(c, 0, 1); }},
    {"two islands", "path-broken", Severity::limits,
     [](Facts& c) {
         for (const unsigned a : {0, 1})
             for (const unsigned b : {2, 3}) cut(c, a, b), cut(c, b, a);
     }},
    {"none receives", "none-receives", Severity::limits, silence},
    {"none receives, and no group was tried", "none-receives", Severity::broken,
     [](Facts& c) {
         silence(c);
         for (auto& host : c.hosts) host->end_to_end.reset();
     }},
    {"one address on all hosts", "address-shared", Severity::broken,
     [](Facts& c) {
         silence(c);
         for (auto& host : c.hosts) {
             host->network.address = "172.17.0.1";
             host->end_to_end->error = "the join: Connection timed out";
             host->end_to_end->multicast_sent = 0;
         }
     }},
    {"one address on two hosts", "address-shared@n1,n3", Severity::broken,
     [](Facts& c) { c.hosts[3]->network.address = c.hosts[1]->network.address; }},
    {"containers with one network", "one-machine@n0,n1", Severity::note,
     [](Facts& c) {
         c.hosts[1]->network.address = c.hosts[0]->network.address;
         c.hosts[1]->machine.boot = c.hosts[0]->machine.boot;
     }},
    {"a link-local address", "link-local@n0", Severity::note,
     [](Facts& c) { c.hosts[0]->network.address = "fe80::1"; }},
    {"a rule that lets all pass", "", Severity::note, [](Facts& c) { set_rule(c, 2, false); }},
    {"long datagrams to one", "full-size-lost@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned from : {0, 1, 3})
             change(c, from, 2, {Phase::full, Phase::slow, Phase::medium, Phase::fast, Phase::burst},
                    [](ReceivedStream& received) { received.datagrams = 0; });
     }},
    {"forgotten", "cut-off@n2", Severity::limits, [](Facts& c) { lose(c, 2, {Phase::again}, 100); }},
    {"losses at any rate", "loss@n2", Severity::limits,
     [](Facts& c) {
         lose(c, 2, {Phase::small, Phase::full}, 3);
     }},
    {"losses by a firewall", "firewall@n2", Severity::limits,
     [](Facts& c) {
         lose(c, 2, {Phase::small, Phase::full}, 3);
         set_rule(c, 2, false);
     }},
    {"one lost", "", Severity::note,
     [](Facts& c) {
         change(c, 0, 1, {Phase::small}, [](ReceivedStream& received) { --received.datagrams; });
     }},
    {"losses at a rate", "loss-at-rate@n2", Severity::limits,
     [](Facts& c) { lose(c, 2, {Phase::fast}, 20); }},
    {"losses at a rate that a firewall limits", "firewall@n2", Severity::limits,
     [](Facts& c) {
         lose(c, 2, {Phase::fast}, 20);
         set_rule(c, 2, false);
     }},
    {"a host that is not received, and whose kernel refuses", "not-received@n2", Severity::limits,
     [](Facts& c) {
         for (const unsigned to : {0, 1, 3}) cut(c, 2, to);
         for (Stream& stream : c.hosts[2]->sent)
             stream.datagrams = 0, stream.error = "Operation not permitted";
     }},
    {"a full buffer", "overflow@n2", Severity::limits,
     [](Facts& c) {
         lose(c, 2, {Phase::burst}, 20);
         c.hosts[2]->overflows = 9;
     }},
    {"a full buffer at any rate", "overflow@n2", Severity::limits,
     [](Facts& c) {
         lose(c, 2, {Phase::small, Phase::full}, 3);
         c.hosts[2]->overflows = 9;
     }},
    {"a full buffer on a shared machine", "overflow@n2 one-machine", Severity::note,
     [](Facts& c) {
         lose(c, 2, {Phase::burst}, 20);
         c.hosts[2]->overflows = 9;
         for (auto& host : c.hosts) host->machine.boot = "one";
     }},
    {"copies", "duplicates@n2", Severity::limits,
     [](Facts& c) {
         change(c, 0, 2, {Phase::fast}, [](ReceivedStream& received) { received.duplicates = 100; });
     }},
    {"out of order", "reordered@n2", Severity::note,
     [](Facts& c) { change(c, 0, 2, {Phase::fast}, [](ReceivedStream& received) { received.late = 90; }); }},
    {"a pair in one of two subnets", "subnets-differ path-broken", Severity::limits,
     [](Facts& c) {
         for (const unsigned i : {0, 1}) c.hosts[i]->network.subnet = "10.0.1.0/24";
         cut(c, 0, 1);
     }},
    {"a subnet for each", "subnets-differ", Severity::limits,
     [](Facts& c) {
         silence(c);
         for (unsigned i = 0; i < 4; ++i) c.hosts[i]->network.subnet = fmt::format("10.0.{}.0/24", i);
     }},
    {"subnets whose routers are to pass multicasts on", "subnets-differ path-broken", Severity::limits,
     [](Facts& c) {
         for (auto& host : c.hosts) host->network.ttl = 8;
         c.hosts[0]->network.subnet = "10.0.1.0/24";
         cut(c, 0, 1);
     }},
    {"subnets", "subnets-differ", Severity::limits,
     [](Facts& c) {
         for (const unsigned i : {2, 3}) c.hosts[i]->network.subnet = "10.0.1.0/24";
         for (const unsigned a : {0, 1})
             for (const unsigned b : {2, 3}) cut(c, a, b), cut(c, b, a);
     }},
};

void check(const Case& one) {
    Facts facts = healthy_facts(4);
    one.spoil(facts);
    const Diagnosis diagnosis = judge(facts);
    const std::string found = ids(diagnosis);
    cr_assert(found == one.ids, "%s: %s", one.what, found.c_str());
    cr_assert(diagnosis.worst == one.severity, "%s: severity %d", one.what,
              static_cast<int>(diagnosis.worst));
    for (const Finding& finding : diagnosis.findings)
        for (const std::string* text : {&finding.title, &finding.cause, &finding.cost, &finding.mend}) {
            cr_assert_not(text->empty(), "%s: %s lacks a sentence", one.what, finding.id.c_str());
            cr_assert(text == &finding.mend || text->ends_with('.'), "%s: %s", one.what, text->c_str());
            cr_assert_not(holds(*text, ".."), "%s: %s", one.what, text->c_str());
        }
}

}  // namespace

Test(doctor, healthy_hosts_have_no_findings) {
    for (const unsigned size : {1U, 2U, 3U, 40U}) {
        const Diagnosis diagnosis = judge(healthy_facts(size));
        cr_assert(ids(diagnosis) == "");
        cr_assert(diagnosis.worst == Severity::note && diagnosis.unseen.empty());
        cr_assert(diagnosis.fine.size() >= 8);
        cr_assert(holds(diagnosis.sentence, "mcastcoll will work"), "%s", diagnosis.sentence.c_str());
    }
}

Test(doctor, each_fault_of_a_host_is_one_finding) {
    for (const Case& one : kHostCases) check(one);
}

Test(doctor, each_fault_of_the_network_is_one_finding) {
    for (const Case& one : kReceptionCases) check(one);
}

Test(doctor, a_group_without_multicast_is_slower_and_works) {
    Facts facts = healthy_facts(4);
    silence(facts);
    cr_assert(
        holds(judge(facts).sentence, "slower here: a group of these 4 hosts works, but without multicast"));
    facts.hosts[2]->end_to_end->error = "the join: Connection timed out";
    facts.hosts[2]->end_to_end->warning = "join failed: no answer of rank 0";
    const Diagnosis diagnosis = judge(facts);
    cr_assert(holds(diagnosis.sentence, "will not work here"));
    cr_assert(std::ranges::any_of(diagnosis.findings, [](const Finding& one) {
        return one.id == "group-failed" &&
               one.cause == "the join: Connection timed out. The provider: join failed: no answer of rank 0.";
    }));
}

Test(doctor, a_host_behind_a_smaller_mtu_may_be_missing) {
    Facts facts = healthy_facts(4);
    facts.hosts[3].reset();
    cr_assert_not(holds(judge(facts).findings[0].cause, "MTU"));
    for (unsigned i = 0; i < 3; ++i) facts.hosts[i]->network.mtu = 9000;
    const Diagnosis diagnosis = judge(facts);
    cr_assert(ids(diagnosis) == "host-missing@n3");
    cr_assert(holds(diagnosis.findings[0].cause, "MTU of 9000 bytes"));
    cr_assert(holds(diagnosis.findings[0].mend, "ping -M do -s 8972 n3"));
}

Test(doctor, a_host_alone_receives_its_own_multicasts) {
    Facts facts = healthy_facts(1);
    set_rule(facts, 0, false);
    cr_assert(ids(judge(facts)) == "firewall-suspected");
    cut(facts, 0, 0);
    cr_assert(ids(judge(facts)) == "firewall");
    facts.hosts[0]->firewall.rules.clear();
    const Diagnosis diagnosis = judge(facts);
    cr_assert(ids(diagnosis) == "own-not-received");
    cr_assert(diagnosis.worst == Severity::broken);
}

Test(doctor, a_host_alone_may_be_refused_by_its_kernel) {
    Facts facts = healthy_facts(1);
    cut(facts, 0, 0);
    for (Stream& stream : facts.hosts[0]->sent)
        stream.datagrams = 0, stream.error = "Operation not permitted";
    const Diagnosis diagnosis = judge(facts);
    cr_assert(ids(diagnosis) == "own-not-received");
    cr_assert(holds(diagnosis.findings[0].cause, "Operation not permitted"));
    set_rule(facts, 0, true);
    cr_assert(ids(judge(facts)) == "firewall");
}

Test(doctor, a_head_that_only_leads_is_not_missed) {
    Facts facts = healthy_facts(3);
    facts.hosts[0].reset();
    facts.names[0].clear();
    for (auto& host : facts.hosts)
        if (host)
            std::erase_if(host->received, [](const ReceivedStream& received) { return received.from == 0; });
    cr_assert(ids(judge(facts)) == "");
}

Test(doctor, failed_observations_are_reported) {
    Facts facts = healthy_facts(2);
    for (auto& host : facts.hosts) {
        host->firewall.looked = Look<bool>::failed("nft shows the rules only to root");
        host->querier.received =
            Look<std::string>::failed("receiving IGMP and MLD queries needs root (CAP_NET_RAW)");
        host->memory.reads_neighbour = Look<bool>::failed("no process");
    }
    const Diagnosis diagnosis = judge(facts);
    cr_assert(ids(diagnosis) == "");
    cr_assert_eq(diagnosis.unseen.size(), 3);
}

Test(doctor, facts_travel_whole) {
    const Host host = healthy_host(3);
    const std::string text = to_json(host);
    const auto read = parse_host(text);
    cr_assert(read.ok());
    cr_assert(to_json(read.value()) == text);
    cr_assert_not(parse_host(text.substr(0, text.size() / 2)).ok());
    cr_assert_not(parse_host("[]").ok());
    cr_assert_not(parse_host("{\"machine\": 3}").ok());
}

Test(doctor, a_report_is_for_people_and_for_programs) {
    Facts facts = healthy_facts(4);
    cut(facts, 0, 1);
    lose(facts, 3, {Phase::fast}, 50);
    const Diagnosis diagnosis = judge(facts);
    const std::string plain = as_text(diagnosis, facts, false), coloured = as_text(diagnosis, facts, true);
    cr_assert_not(holds(plain, "\x1b"));
    cr_assert(holds(coloured, "\x1b[33;1m"));
    cr_assert(holds(plain, "[path-broken]") && holds(plain, "n1 does not receive from n0"), "%s",
              plain.c_str());
    // The matrix: n1 receives nothing from n0; n3 has lost 50 of 550 datagrams of each sender.
    cr_assert(holds(plain, " n1       -         .    ."), "%s", plain.c_str());
    cr_assert(holds(plain, "9.1"), "%s", plain.c_str());
    for (std::size_t at = 0, end = 0; at < plain.size(); at = end + 1) {
        end = std::min(plain.find('\n', at), plain.size());
        cr_assert_leq(end - at, 125);
    }
    const Facts large = healthy_facts(20);
    cr_assert(holds(as_text(judge(large), large, false), "Each of 20 hosts receives everything"));
    const std::string json = as_json(diagnosis, facts);
    cr_assert(holds(json, "\"id\": \"path-broken\"") && holds(json, "\"exit_code\": 1"));
}

Test(doctor_tally, counts_duplicates_late_datagrams_and_losses) {
    Tally tally;
    for (const std::uint32_t number : {0U, 1U, 4U, 3U, 4U, 9U}) tally.take(number);
    const ReceivedStream received = tally.result(2, Phase::fast, 12);
    cr_assert_eq(received.from, 2);
    cr_assert_eq(received.datagrams, 5);
    cr_assert_eq(received.duplicates, 1);
    cr_assert_eq(received.late, 1);
    cr_assert_eq(received.longest_gap, 4);  // 5 to 8
    cr_assert_eq(Tally().result(0, Phase::small, 50).longest_gap, 50);
    tally.take(UINT32_MAX);  // garbage does not count as a datagram, and takes no memory
    cr_assert_eq(tally.result(2, Phase::fast, 12).datagrams, 5);
}
