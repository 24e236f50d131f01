#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "base/system.h"
#include "gateway/gateway.h"

namespace mcastcoll::gateway {
namespace {

using Json = nlohmann::ordered_json;

double in_ms(std::int64_t us) {
    return static_cast<double>(us) / 1000;
}

Json stream_as_json(const Link& link, const trunk::Trunk& trunk) {
    Json stream{{"stream", link.stream()},
                {"up", link.is_up()},
                {"congestion", congestion_of(link.descriptor())},
                {"sent_bytes", link.counters().sent},
                {"received_bytes", link.counters().received},
                {"idle_restarts", link.counters().idle_restarts},
                {"in_flight_bytes", trunk.stream(link.stream()).in_flight()},
                {"unsent_bytes", link.unsent()},
                {"heartbeat_ms", static_cast<double>(trunk.stream(link.stream()).round_trip().value) * 1e-6},
                {"send_buffer_bytes", send_buffer_of(link.descriptor())}};
    const auto info = info_of(link.descriptor());
    if (!info) return stream;
    stream["round_trip_ms"] = in_ms(info->tcpi_rtt);
    stream["round_trip_variation_ms"] = in_ms(info->tcpi_rttvar);
    stream["timeout_ms"] = in_ms(info->tcpi_rto);
    stream["window_segments"] = info->tcpi_snd_cwnd;
    stream["retransmissions"] = info->tcpi_total_retrans;
    stream["duplicates_seen"] = info->tcpi_dsack_dups;
    stream["kernel_unsent_bytes"] = info->tcpi_notsent_bytes;
    stream["delivery_mbit_s"] = static_cast<double>(info->tcpi_delivery_rate) * 8e-6;
    return stream;
}

Json trunk_as_json(const Peer& peer) {
    const trunk::Trunk& trunk = peer.trunk();
    const trunk::Counters& counters = trunk.counters();
    Json object{{"site", peer.site().name},
                {"gateway", peer.site().wan.to_string()},
                {"state", peer.state()},
                {"connects", peer.connects()},
                {"last_failure", peer.last_failure()},
                {"connections", peer.connections()},
                {"channels", trunk.channels()},
                {"queued_frames", trunk.outbound().queued_frames()},
                {"held_bytes", trunk.outbound().memory_held()},
                {"undelivered_bytes", trunk.inbox_bytes()}};
    object["counters"] = {{"sent_frames", counters.sent_frames},
                          {"sent_bytes", counters.sent_bytes},
                          {"received_frames", counters.received_frames},
                          {"received_bytes", counters.received_bytes},
                          {"urgent_frames", counters.urgent_frames},
                          {"early_frames", counters.early_frames},
                          {"resent_frames", counters.resent_frames},
                          {"duplicate_frames", counters.duplicate_frames},
                          {"opened", counters.channels_opened},
                          {"accepted", counters.channels_accepted},
                          {"resets", counters.resets},
                          {"streams_up", counters.streams_up},
                          {"streams_lost", counters.streams_lost},
                          {"sessions_lost", counters.sessions_lost},
                          {"violations", counters.violations},
                          {"heartbeats", counters.heartbeats},
                          {"acknowledgements", counters.acks}};
    object["streams"] = Json::array();
    for (const auto& link : peer.links())
        if (link != nullptr) object["streams"].push_back(stream_as_json(*link, trunk));
    return object;
}

Json counters_as_json(const GatewayCounters& counters) {
    return {{"accepted", counters.accepted},
            {"connections", counters.connections},
            {"targets", counters.targets},
            {"targets_failed", counters.targets_failed},
            {"lan_resets", counters.lan_resets},
            {"lan_retransmissions", counters.lan_retransmissions},
            {"lan_idle_restarts", counters.lan_idle_restarts},
            {"no_route", counters.no_route},
            {"over_limit", counters.over_limit},
            {"trunk_down", counters.trunk_down},
            {"strangers", counters.strangers},
            {"garbage", counters.garbage},
            {"greeting_timeouts", counters.greeting_timeouts},
            {"crowded_out", counters.crowded_out},
            {"refused_hellos", counters.refused_hellos},
            {"foreign_hellos", counters.foreign_hellos},
            {"wrong_keys", counters.wrong_keys},
            {"forged_records", counters.forged_records},
            {"status_pages", counters.status_pages}};
}

Json as_object(const Gateway& gateway) {
    Json object{{"site", gateway.settings().own_site().name},
                {"listen", gateway.settings().listen.to_string()},
                {"seconds", (gateway.now() - gateway.started()).value / 1'000'000'000},
                {"draining", gateway.draining()},
                {"encrypted", gateway.settings().key.has_value()},
                {"connections", gateway.connections()},
                {"newcomers", gateway.newcomers()},
                {"counters", counters_as_json(gateway.counters())},
                {"trunks", Json::array()}};
    for (const auto& peer : gateway.peers()) object["trunks"].push_back(trunk_as_json(*peer));
    return object;
}

std::string line_of(const Json& counters) {
    std::string line;
    for (const auto& [name, value] : counters.items())
        if (value != 0) line += fmt::format(" {}={}", name, value.dump());
    return line.empty() ? " all zero" : line;
}

}  // namespace

std::string status_as_json(const Gateway& gateway) {
    return as_object(gateway).dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string status_as_text(const Gateway& gateway) {
    const Json all = as_object(gateway);
    std::string text = fmt::format(
        "site {} at {}, up for {} s, {}{}\n{} connections, {} newcomers;{}\n", all["site"].get<std::string>(),
        all["listen"].get<std::string>(), all["seconds"].get<std::int64_t>(),
        all["encrypted"].get<bool>() ? "encrypted" : "not encrypted",
        all["draining"].get<bool>() ? ", about to end" : "", all["connections"].get<std::size_t>(),
        all["newcomers"].get<std::size_t>(), line_of(all["counters"]));
    for (const Json& one : all["trunks"]) {
        const auto failure = one["last_failure"].get<std::string>();
        text += fmt::format(
            "\ntrunk to {} ({}): {}{}\n  {} connections, {} frames queued, {} bytes held, {} undelivered\n "
            "{}\n",
            one["site"].get<std::string>(), one["gateway"].get<std::string>(),
            one["state"].get<std::string>(), failure.empty() ? "" : " (" + failure + ")",
            one["connections"].get<std::size_t>(), one["queued_frames"].get<std::size_t>(),
            one["held_bytes"].get<std::size_t>(), one["undelivered_bytes"].get<std::size_t>(),
            line_of(one["counters"]));
        if (one["streams"].empty()) continue;
        text += fmt::format("  {:>6} {:>5} {:>9} {:>9} {:>7} {:>8} {:>6} {:>10} {:>14} {:>14}  {}\n",
                            "stream", "state", "rtt ms", "rto ms", "window", "resent", "idle", "in flight",
                            "sent", "received", "congestion");
        for (const Json& stream : one["streams"])
            text += fmt::format(
                "  {:>6} {:>5} {:>9.3f} {:>9.1f} {:>7} {:>8} {:>6} {:>10} {:>14} {:>14}  {}\n",
                stream["stream"].get<unsigned>(), stream["up"].get<bool>() ? "up" : "-",
                stream.value("round_trip_ms", 0.0), stream.value("timeout_ms", 0.0),
                stream.value("window_segments", 0U), stream.value("retransmissions", 0U),
                stream["idle_restarts"].get<std::uint64_t>(), stream["in_flight_bytes"].get<std::size_t>(),
                stream["sent_bytes"].get<std::uint64_t>(), stream["received_bytes"].get<std::uint64_t>(),
                stream["congestion"].get<std::string>());
    }
    return text;
}

Result<std::string> ask_status(const relay::Endpoint& gateway, bool json) {
    constexpr int kPatienceMs = 3000;
    constexpr std::size_t kMost = 16 << 20;
    auto socket = connect_to(gateway);
    if (!socket) return socket.error();
    const int descriptor = socket.value().get();
    const auto failed = [&](int code) { return system_error(code, "no status from " + gateway.to_string()); };
    const auto wait_for = [&](short events) {
        pollfd one{descriptor, events, 0};
        return poll(&one, 1, kPatienceMs) == 1;
    };
    if (!wait_for(POLLOUT)) return failed(ETIMEDOUT);
    if (const int error = pending_error(descriptor); error != 0) return failed(error);
    const std::string_view question = json ? "GET /json HTTP/1.0\r\n\r\n" : "GET / HTTP/1.0\r\n\r\n";
    if (send(descriptor, question.data(), question.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(question.size()))
        return failed(errno);
    std::string answer;
    while (answer.size() < kMost) {
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
