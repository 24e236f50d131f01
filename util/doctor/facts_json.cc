// Facts as JSON, for exchanges between hosts and for --json.
#include <nlohmann/json.hpp>

#include "facts.h"
#include "look.h"

namespace nlohmann {

template <typename T>
struct adl_serializer<mcastcoll::doctor::Look<T>> {
    using Look = mcastcoll::doctor::Look<T>;
    template <typename Json>
    static void to_json(Json& json, const Look& look) {
        if (look)
            json = Json{{"seen", *look}};
        else
            json = Json{{"why_not", look.why_not}};
    }
    template <typename Json>
    static void from_json(const Json& json, Look& look) {
        look = {};
        if (json.contains("seen")) look.seen = json.at("seen").template get<T>();
        look.why_not = json.value("why_not", "");
    }
};

template <typename T>
struct adl_serializer<std::optional<T>> {
    template <typename Json>
    static void to_json(Json& json, const std::optional<T>& value) {
        if (value)
            json = *value;
        else
            json = nullptr;
    }
    template <typename Json>
    static void from_json(const Json& json, std::optional<T>& value) {
        value.reset();
        if (!json.is_null()) value = json.template get<T>();
    }
};

}  // namespace nlohmann

namespace mcastcoll::doctor {

NLOHMANN_JSON_SERIALIZE_ENUM(Phase, {{Phase::small, "small"},
                                     {Phase::full, "full"},
                                     {Phase::slow, "slow"},
                                     {Phase::medium, "medium"},
                                     {Phase::fast, "fast"},
                                     {Phase::burst, "burst"},
                                     {Phase::again, "again"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Machine, name, kernel, boot, host, net_namespace, pid_namespace,
                                   user_namespace, shm, user, cores, is_virtual, container, clock_source,
                                   governors)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Libraries, mcastcoll, libfabric, provider, inner, openmpi, component,
                                   mpich, interposer, settings, settings_error, multicast, wants_verbs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Network, error, interface, address, subnet, family, ttl, mtu, up,
                                   multicast, loopback, driver, speed_mbit, segmentation, coalescing,
                                   reverse_path, rmem_max, buffer_wanted, buffer_granted, buffer_forced,
                                   datagram_bytes, window, socket_error, member, group)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Memory, shm_bytes, shm_free, locked, files, ptrace_scope, reads_neighbour)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Rdma, devices, group)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Firewall::Rule, text, removal, names_multicast, outgoing)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Firewall, looked, rules)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Querier, received, waited_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EndToEnd, error, members, multicast_sent, multicast_received, repaired,
                                   warning)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Stream, phase, datagrams, bytes, mbit, error)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReceivedStream, from, phase, datagrams, duplicates, late, longest_gap)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Host, machine, libraries, network, memory, rdma, firewall, querier,
                                   end_to_end, sends, sent, received, overflows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Facts, hosts, names, gone, top_mbit, wait_s, query_interval_s)

namespace {

std::string dump(const nlohmann::json& json, int indent) {
    return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Host& host) {
    return dump(nlohmann::json(host), -1);
}

std::string to_json(const Facts& facts) {
    return dump(nlohmann::json(facts), 2);
}

Result<Host> parse_host(const std::string& text) {
    try {
        return nlohmann::json::parse(text).get<Host>();
    } catch (const std::exception& error) {
        return Error{EBADMSG, error.what()};
    }
}

}  // namespace mcastcoll::doctor
