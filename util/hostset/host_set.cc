#include "hostset/host_set.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstdlib>

#include "hostset/agents.h"
#include "hostset/link.h"
#include "hostset/messages.h"
#include "hostset/reader.h"
#include "hostset/writer.h"

namespace mcastcoll::hostset {

HostSet::HostSet() = default;
HostSet::~HostSet() {
    links_.clear();  // so that the members end before their agents are waited for
}

std::vector<std::uint32_t> HostSet::present() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < size(); ++rank)
        if (!is_lost(rank)) ranks.push_back(rank);
    return ranks;
}

void HostSet::mark_lost(std::uint32_t rank, const std::string& why) {
    loss_reasons_[rank] = why;
    links_[rank].reset();
}

// Sends `everything` to each member; members that do not take it before the deadline are lost.
void HostSet::send_to_all(const std::string& everything, unsigned wait_s) {
    for (const auto& link : links_)
        if (link != nullptr) link->send(everything);
    const Deadline deadline(static_cast<int>(wait_s) * 1000);
    for (;;) {
        std::vector<pollfd> waiting;
        for (std::uint32_t rank = 1; rank < links_.size(); ++rank) {
            if (links_[rank] == nullptr) continue;
            if (!links_[rank]->progress() && !links_[rank]->all_sent())
                mark_lost(rank, kConnectionEnded);
            else if (!links_[rank]->all_sent() && deadline.over())
                mark_lost(rank, fmt::format("accepted no data for {} s", wait_s));
            else if (!links_[rank]->all_sent())
                waiting.push_back({links_[rank]->descriptor(), POLLOUT, 0});
        }
        if (waiting.empty()) return;
        ::poll(waiting.data(), waiting.size(), deadline.left_ms());
    }
}

Result<HostSet::Gathered> HostSet::gather(std::string mine, unsigned wait_s) {
    Gathered gathered(size());
    gathered[0] = std::move(mine);
    const Deadline deadline(static_cast<int>(wait_s) * 1000);
    for (;;) {
        std::vector<pollfd> waiting;
        for (std::uint32_t rank = 1; rank < size(); ++rank) {
            if (links_[rank] == nullptr || gathered[rank]) continue;
            Link& link = *links_[rank];
            const bool connected = link.progress();
            auto message = link.next();
            if (!message) {
                mark_lost(rank, message.error().message);
            } else if (message.value()) {
                gathered[rank] = message.value()->substr(1);
            } else if (!connected) {
                mark_lost(rank, kConnectionEnded);
            } else if (deadline.over()) {
                const std::string why = fmt::format("did not answer within {} s", wait_s);
                link.send(kExcluded + why);
                link.progress();
                mark_lost(rank, why);
            } else {
                waiting.push_back({link.descriptor(), link.events(), 0});
            }
        }
        if (waiting.empty()) break;
        ::poll(waiting.data(), waiting.size(), deadline.left_ms());
    }
    Writer everything;
    for (std::uint32_t rank = 0; rank < size(); ++rank)
        everything.text(loss_reasons_[rank]).text(gathered[rank].value_or(""));
    send_to_all(kAllContributions + everything.take(), wait_s);
    return gathered;
}

Result<HostSet::Gathered> HostSet::contribute(const std::string& mine, unsigned wait_s) {
    Link& link = *links_[0];
    link.send(kContribution + mine);
    // The head may begin up to wait_s later than this process, and then waits up to wait_s for other members.
    const auto message = await_message(link, Deadline(static_cast<int>(wait_s) * 2000));
    if (!message && message.error().code == ETIMEDOUT)
        return Error{ETIMEDOUT,
                     fmt::format("the head, {}, did not respond within {} s", hosts_[0], 2 * wait_s)};
    if (!message)
        return Error{message.error().code,
                     fmt::format("the head, {}, is gone: {}", hosts_[0], message.error().message)};
    if (message.value().starts_with(kExcluded))
        return Error{ECANCELED, fmt::format("the other hosts continue without this host: it {}",
                                            message.value().substr(1))};
    Gathered gathered(size());
    Reader reader(std::string_view(message.value()).substr(1));
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
        loss_reasons_[rank] = reader.text();
        gathered[rank] = reader.text();
        if (is_lost(rank)) gathered[rank].reset();
    }
    if (!reader.at_end()) return Error{EBADMSG, "cannot parse the answer of the head"};
    return gathered;
}

Result<HostSet::Gathered> HostSet::exchange(std::string mine, unsigned wait_s) {
    if (mine.size() > kMaxMessage / size())
        return Error{EMSGSIZE, fmt::format("{} bytes are too many to be sent to all hosts", mine.size())};
    return is_head() ? gather(std::move(mine), wait_s) : contribute(mine, wait_s);
}

std::string HostSet::comm_key(std::uint32_t group) const {
    // A name, which the provider takes for no secret, because a secret has at least 16 bytes.
    const std::string name = fmt::format("crew{:08}", group);
    const auto variable = [](const char* name_of_it) {
        const char* value = std::getenv(name_of_it);
        return std::string(value != nullptr ? value : "");
    };
    if (!variable("FI_MCASTCOLL_KEY_FILE").empty() || variable("FI_MCASTCOLL_SECURITY") == "off") return name;
    const wire::Key secret = key(name);
    return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

}  // namespace mcastcoll::hostset
