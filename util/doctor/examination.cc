#include "examination.h"

#include <fmt/format.h>
#include <poll.h>
#include <stdio.h>

#include <algorithm>
#include <set>

#include "experiment.h"
#include "group_process.h"
#include "probes.h"
#include "querier_watch.h"
#include "wire/bytes.h"

namespace mcastcoll::doctor {
namespace {

constexpr unsigned kLook_s = 90, kTurn_s = 30, kGroup_s = 90;
constexpr int kSettle_ms = 500;  // for switches to learn the members of the group
constexpr std::uint64_t kUnknownSpeed_mbit = 1000, kMaxTop_mbit = 1000;

class Examination {
  public:
    Examination(const Wanted& wanted, hostset::HostSet& host_set)
        : wanted_(wanted), host_set_(host_set), works_(!host_set.is_head() || host_set.head_works()) {}

    Result<Facts> run() {
        if (auto agreed = agree(); !agreed) return agreed.error();
        if (works_) look();
        if (auto exchanged = exchange_facts(); !exchanged) return exchanged.error();
        choose_senders();
        if (auto done = experiment(); !done) return done.error();
        if (wanted_.group)
            if (auto done = form_group(); !done) return done.error();
        if (auto exchanged = exchange_facts(); !exchanged) return exchanged.error();
        facts_.wait_s = wanted_.listen_s;
        facts_.query_interval_s = wanted_.query_interval_s;
        for (unsigned i = 0; i < host_set_.size(); ++i) facts_.gone.push_back(host_set_.loss_reason(i));
        return std::move(facts_);
    }

  private:
    Result<void> agree() {
        const auto all = host_set_.exchange(
            fmt::format("{} {} {}", wanted_.listen_s, wanted_.share, int{wanted_.group}), kTurn_s);
        if (!all) return all.error();
        int group = 0;
        if (!all.value()[0] ||
            ::sscanf(all.value()[0]->c_str(), "%u %lf %d", &wanted_.listen_s, &wanted_.share, &group) != 3)
            return Error{EBADMSG, "cannot parse the request of the head"};
        wanted_.group = group != 0;
        return {};
    }

    void look() {
        own_.machine = look_at_machine();
        own_.libraries = look_at_libraries();
        own_.memory = look_at_memory();
        if (auto group_process = GroupProcess::start())
            group_process_ = std::move(group_process).value();
        else
            opened_.provider = Look<std::string>::failed(group_process.error().message);
        if (group_process_) opened_ = group_process_->opened();
        own_.libraries.provider = opened_.provider;
        own_.libraries.inner = opened_.inner;
        auto settings = provider::read_settings();
        if (!settings) return;  // the facts have the error
        settings_ = std::move(settings).value();
        OpenedNetwork network = look_at_network(settings_, std::as_bytes(std::span(opened_.address)));
        own_.network = std::move(network.facts);
        choice_ = std::move(network.choice);
        own_.rdma = look_at_rdma(settings_, choice_);
        own_.firewall = look_at_firewall(own_.network.interface, settings_.port, own_.network.family);
    }

    Result<void> exchange_facts() {
        auto all = host_set_.exchange(works_ ? to_json(own_) : std::string(), kLook_s);
        if (!all) return all.error();
        facts_.hosts.assign(host_set_.size(), std::nullopt);
        facts_.names = host_set_.hosts();
        if (!host_set_.head_works()) facts_.names[0].clear();
        for (unsigned i = 0; i < host_set_.size(); ++i) {
            const auto& text = all.value()[i];
            if (!text || text->empty()) continue;
            auto host = parse_host(*text);
            if (!host) return Error{EBADMSG, fmt::format("facts of member {}: {}", i, host.error().message)};
            facts_.hosts[i] = std::move(host).value();
        }
        return {};
    }

    // Selects the members with an interface for multicast.
    void choose_senders() {
        for (unsigned i = 0; i < host_set_.size(); ++i)
            if (facts_.hosts[i] && facts_.hosts[i]->network.datagram_bytes != 0) senders_.push_back(i);
        own_.sends = choice_.has_value();
        std::uint64_t slowest = UINT64_MAX;
        for (const unsigned i : senders_) {
            const Network& network = facts_.hosts[i]->network;
            slowest = std::min(slowest, network.speed_mbit ? *network.speed_mbit : kUnknownSpeed_mbit);
            bytes_ = std::min<std::size_t>(bytes_, network.datagram_bytes);
            window_ = std::min(window_, network.window);
        }
        const double top = static_cast<double>(slowest) * wanted_.share / 100;
        facts_.top_mbit = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(top), 16, kMaxTop_mbit);
    }

    Result<std::unique_ptr<Experiment>> open() {
        const wire::Key place = host_set_.key("doctor: who hears whom");
        const transport::SocketAddress group =
            ports::random_group(settings_, choice_->family, 0,
                                std::span<const std::byte, transport::kGroupRandomBytes>(
                                    place.data(), transport::kGroupRandomBytes));
        const auto key = wire::get<std::uint64_t>(place.data() + transport::kGroupRandomBytes);
        return Experiment::open(ports::udp_options(settings_, *choice_), group, key, host_set_.rank(),
                                host_set_.size());
    }

    // Members without a part in the experiment take part in the exchanges.
    Result<void> experiment() {
        const bool alone = senders_.size() == 1;
        std::unique_ptr<Experiment> started;
        std::optional<QuerierWatch> watch;
        if (own_.sends) {
            auto opened = open();
            if (opened)
                started = std::move(opened).value();
            else
                own_.network.socket_error = opened.error().message;
            watch.emplace(choice_->interface, choice_->family);
        }
        ::poll(nullptr, 0, kSettle_ms);
        if (auto exchanged = host_set_.exchange("", kTurn_s); !exchanged) return exchanged.error();
        for (const unsigned turn : senders_) {
            if (turn == host_set_.rank() && started)
                own_.sent = started->send(
                    loads_of_turn(bytes_, window_, facts_.top_mbit, static_cast<unsigned>(senders_.size())),
                    alone);
            if (auto exchanged = host_set_.exchange("", kTurn_s); !exchanged) return exchanged.error();
        }
        if (watch) own_.querier = watch->wait(wanted_.listen_s);
        const auto waited = wanted_.listen_s + kTurn_s;
        if (auto exchanged = host_set_.exchange("", waited); !exchanged) return exchanged.error();
        if (started)
            for (Stream& stream : started->send(repeated_loads(), alone))
                own_.sent.push_back(std::move(stream));
        // The facts now have the numbers of datagrams sent.
        if (auto exchanged = exchange_facts(); !exchanged) return exchanged.error();
        if (started) {
            std::vector<std::vector<Stream>> sent;
            for (const auto& host : facts_.hosts) sent.push_back(host ? host->sent : std::vector<Stream>());
            own_.received = started->received(sent);
            own_.overflows = started->overflows();
        }
        return {};
    }

    Result<void> form_group() {
        auto all = host_set_.exchange(opened_.address, kTurn_s);
        if (!all) return all.error();
        std::vector<std::string> addresses;
        unsigned self = 0;
        for (unsigned i = 0; i < host_set_.size(); ++i) {
            const auto& address = all.value()[i];
            if (!address || address->empty()) continue;
            if (i == host_set_.rank()) self = static_cast<unsigned>(addresses.size());
            addresses.push_back(*address);
        }
        if (!opened_.address.empty())
            own_.end_to_end = group_process_->run(addresses, self, host_set_.comm_key(0));
        auto exchanged = host_set_.exchange("", kGroup_s);
        return exchanged ? Result<void>() : Result<void>(exchanged.error());
    }

    Wanted wanted_;
    hostset::HostSet& host_set_;
    const bool works_;
    std::optional<GroupProcess> group_process_;
    provider::Settings settings_;
    GroupProcess::Opened opened_;
    std::optional<ports::MulticastChoice> choice_;
    Host own_;
    Facts facts_;
    std::vector<unsigned> senders_;
    std::size_t bytes_ = SIZE_MAX;
    std::uint64_t window_ = UINT64_MAX;
};

}  // namespace

Result<Facts> examine(Wanted wanted, hostset::HostSet& host_set) {
    return Examination(wanted, host_set).run();
}

}  // namespace mcastcoll::doctor
