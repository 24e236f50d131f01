// FI_MCASTCOLL_STATS=PREFIX: counters of an endpoint's groups as PREFIX.HOST.PID.json, when the endpoint
// closes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file_descriptor.h"
#include "ofi/station.h"
#include "provider/log.h"

namespace mcastcoll::ofi {

void Station::write_statistics() const {
    engine::Counters total;
    group::LevelCounters levels;
    groups_.sum_counters(total, levels);
    if (total.operations_submitted == 0 && total.probes_sent == 0 && levels.host_operations == 0) return;
    log_line(Level::info,
             "multicast {} datagrams, {} fragments heard, {} repaired, {} duplicates; {} messages, {} asks",
             total.datagrams_sent, total.fragments_by_multicast, total.fragments_repaired, total.duplicates,
             total.messages_sent, total.asks_sent);
    if (settings_.stats.empty()) return;
    const MulticastCounters wire = multicast_.counters();
    const VerbsTransport* const verbs = multicast_.verbs();
    std::string text;
    const auto add = [&](std::string_view name, std::uint64_t value) {
        text += fmt::format("{}\n  \"{}\": {}", text.empty() ? "{" : ",", name, value);
    };
    for (const engine::NamedCounter& counter : engine::kCounters) add(counter.name, total.*counter.member);
    for (const group::NamedLevelCounter& counter : group::kLevelCounters)
        add(counter.name, levels.*counter.member);
    add("socket_drops", wire.socket_drops);
    add("truncated", wire.truncated);
    add("send_errors", wire.send_errors);
    add("multicast_bytes_sent", wire.bytes_sent);
    add("verbs_datagrams_sent", verbs != nullptr ? verbs->counters().datagrams_sent : 0);
    add("verbs_revivals", verbs != nullptr ? verbs->counters().revivals : 0);
    add("foreign_messages", foreign_messages_);
    add("foreign_datagrams", joins_.foreign_datagrams());
    add("doubts", watch_.doubts());
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    text += "\n}\n";
    const std::string name = fmt::format("{}.{}.{}.json", settings_.stats, host, getpid());
    // The name can be guessed, and the folder may be everybody's: no link is followed.
    constexpr int kHow = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const FileDescriptor file(::open(name.c_str(), kHow, 0644));
    if (!file.valid() || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        log_line(Level::warn, "no statistics in {}: {}", name, std::strerror(errno));
}

}  // namespace mcastcoll::ofi
