#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/system.h"
#include "gateway/gateway.h"

namespace mcastcoll::gateway::session {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Counters, sent_frames, sent_bytes, received_frames, received_bytes,
                                   urgent_frames, early_frames, resent_frames, duplicate_frames, opened,
                                   accepted, resets, streams_up, streams_lost, sessions_lost, violations,
                                   heartbeats, acknowledgements)

}  // namespace mcastcoll::gateway::session

namespace mcastcoll::gateway {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GatewayCounters, accepted, connections, targets, targets_failed,
                                   lan_resets, lan_retransmissions, lan_idle_restarts, no_route, over_limit,
                                   session_down, foreign_connections, garbage, hello_timeouts, evicted,
                                   refused_hellos, foreign_hellos, wrong_keys, forged_records, false_sources,
                                   out_of_reach, status_pages)

namespace {

using Json = nlohmann::ordered_json;

Json stream_as_json(const Link& link, const session::Session& session) {
    const int descriptor = link.descriptor();
    const auto congestion = option_of<std::array<char, 17>>(descriptor, IPPROTO_TCP, TCP_CONGESTION);
    Json stream{
        {"stream", link.stream()},
        {"up", link.is_up()},
        {"congestion", congestion ? congestion->data() : "?"},
        {"sent_bytes", link.counters().sent},
        {"received_bytes", link.counters().received},
        {"idle_restarts", link.counters().idle_restarts},
        {"in_flight_bytes", session.stream(link.stream()).in_flight()},
        {"unsent_bytes", link.unsent()},
        {"heartbeat_ms", static_cast<double>(session.stream(link.stream()).round_trip().value) * 1e-6},
        {"send_buffer_bytes", option_of<int>(descriptor, SOL_SOCKET, SO_SNDBUF).value_or(0)}};
    const auto info = option_of<tcp_info>(descriptor, IPPROTO_TCP, TCP_INFO);
    if (!info) return stream;
    stream["round_trip_ms"] = info->tcpi_rtt / 1000.0;
    stream["round_trip_variation_ms"] = info->tcpi_rttvar / 1000.0;
    stream["timeout_ms"] = info->tcpi_rto / 1000.0;
    stream["window_segments"] = info->tcpi_snd_cwnd;
    stream["retransmissions"] = info->tcpi_total_retrans;
    stream["duplicates_seen"] = info->tcpi_dsack_dups;
    stream["kernel_unsent_bytes"] = info->tcpi_notsent_bytes;
    stream["delivery_mbit_s"] = static_cast<double>(info->tcpi_delivery_rate) * 8e-6;
    return stream;
}

// streams: the configured number.
Json session_as_json(const Peer& peer, unsigned streams) {
    const session::Session& session = peer.session();
    const unsigned up = session.streams_up();
    Json object{{"site", peer.site().name},
                {"gateway", peer.site().wan.to_string()},
                {"state", up == 0                           ? "down"
                          : up < streams && peer.connects() ? "degraded"
                                                            : "up"},
                {"connects", peer.connects()},
                {"last_failure", peer.last_failure()},
                {"connections", peer.connections()},
                {"channels", session.channels()},
                {"queued_frames", session.outbound().queued_frames()},
                {"held_bytes", session.outbound().memory_held()},
                {"undelivered_bytes", session.inbox_bytes()}};
    object["counters"] = nlohmann::json(session.counters());
    object["streams"] = Json::array();
    for (const auto& link : peer.links())
        if (link != nullptr) object["streams"].push_back(stream_as_json(*link, session));
    return object;
}

Json as_object(const Gateway& gateway) {
    const Shared& shared = gateway.shared();
    Json object{{"site", shared.settings.own_site().name},
                {"listen", shared.settings.listen.to_string()},
                {"seconds", (shared.now() - gateway.started()).value / 1'000'000'000},
                {"draining", shared.draining},
                {"encrypted", shared.settings.key.has_value()},
                {"connections", shared.connections},
                {"pending_connections", gateway.pending_connections()},
                {"counters", nlohmann::json(shared.counters)},
                {"sessions", Json::array()}};
    for (const auto& peer : gateway.peers())
        object["sessions"].push_back(session_as_json(*peer, shared.settings.sites.sessions.streams));
    return object;
}

std::string word_of(const Json& value) {
    if (value.is_boolean()) return value ? "up" : "-";
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string line_of(const Json& counters) {
    std::string line;
    for (const auto& [name, value] : counters.items())
        if (value != 0) line += fmt::format(" {}={}", name, value.dump());
    return line.empty() ? " all zero" : line;
}

// Columns of the table of streams.
constexpr struct {
    const char *name, *heading;
    int width;
} kColumns[] = {{"stream", "stream", 8},          {"up", "state", 5},
                {"round_trip_ms", "rtt ms", 9},   {"timeout_ms", "rto ms", 9},
                {"window_segments", "window", 7}, {"retransmissions", "resent", 8},
                {"idle_restarts", "idle", 6},     {"in_flight_bytes", "in flight", 10},
                {"sent_bytes", "sent", 14},       {"received_bytes", "received", 14},
                {"congestion", "congestion", 11}};

}  // namespace

std::string status_as_json(const Gateway& gateway) {
    return as_object(gateway).dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string status_as_text(const Gateway& gateway) {
    Json all = as_object(gateway);
    std::string text = fmt::format("site {} at {}, up for {} s, {}{}\n{} connections, {} pending;{}\n",
                                   word_of(all["site"]), word_of(all["listen"]), word_of(all["seconds"]),
                                   all["encrypted"] ? "encrypted" : "not encrypted",
                                   all["draining"] ? ", shutting down" : "", word_of(all["connections"]),
                                   word_of(all["pending_connections"]), line_of(all["counters"]));
    for (Json& one : all["sessions"]) {
        const auto failure = word_of(one["last_failure"]);
        text += fmt::format(
            "\nsession to {} ({}): {}{}\n  {} connections, {} frames queued, {} bytes held, {} undelivered\n "
            "{}\n",
            word_of(one["site"]), word_of(one["gateway"]), word_of(one["state"]),
            failure.empty() ? "" : " (" + failure + ")", word_of(one["connections"]),
            word_of(one["queued_frames"]), word_of(one["held_bytes"]), word_of(one["undelivered_bytes"]),
            line_of(one["counters"]));
        if (one["streams"].empty()) continue;
        for (const auto& column : kColumns) text += fmt::format(" {:>{}}", column.heading, column.width);
        for (Json& stream : one["streams"]) {
            text += '\n';
            for (const auto& column : kColumns)
                text +=
                    fmt::format(" {:>{}}", stream.contains(column.name) ? word_of(stream[column.name]) : "-",
                                column.width);
        }
        text += '\n';
    }
    return text;
}

const std::string& Gateway::status(bool json) {
    constexpr int kPauses = 7;
    const auto worked = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    StatusPage& page = pages_[json ? 1 : 0];
    if (!page.text.empty() && monotonic_now() < page.good_until) return page.text;
    const std::int64_t begin = worked();
    page.text = json ? status_as_json(*this) : status_as_text(*this);
    page.good_until = monotonic_now() + Nanoseconds{kPauses * (worked() - begin)};
    return page.text;
}

Result<std::string> request_status(const sites::Endpoint& gateway, bool json) {
    constexpr int kTimeoutMs = 3000;
    constexpr std::size_t kMax = 16 << 20;
    auto socket = connect_to(gateway);
    if (!socket) return socket.error();
    const int descriptor = socket.value().get();
    const auto failed = [&](int code) { return system_error(code, "no status from " + gateway.to_string()); };
    const auto wait_for = [&](short events) {
        pollfd one{descriptor, events, 0};
        return poll(&one, 1, kTimeoutMs) == 1;
    };
    if (!wait_for(POLLOUT)) return failed(ETIMEDOUT);
    if (const auto error = option_of<int>(descriptor, SOL_SOCKET, SO_ERROR); error != 0)
        return failed(error.value_or(EIO));
    const std::string_view request = json ? "GET /json HTTP/1.0\r\n\r\n" : "GET / HTTP/1.0\r\n\r\n";
    if (send(descriptor, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
        return failed(errno);
    std::string answer;
    while (answer.size() < kMax) {
        if (!wait_for(POLLIN)) return failed(ETIMEDOUT);
        char block[16384];
        const ssize_t size = recv(descriptor, block, sizeof block, 0);
        if (size < 0) return failed(errno);
        if (size == 0) break;
        answer.append(block, static_cast<std::size_t>(size));
    }
    const std::size_t body = answer.find("\r\n\r\n");
    if (!answer.starts_with("HTTP/1.0 200") || body == std::string::npos) return failed(EPROTO);
    return answer.substr(body + 4);
}

}  // namespace mcastcoll::gateway
