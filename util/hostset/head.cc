#include "hostset/head.h"

#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>

#include "base/system.h"
#include "gateway/sockets.h"
#include "hostset/encoding.h"
#include "hostset/invitation.h"
#include "topology/discover.h"
#include "transport/interface.h"

namespace mcastcoll::hostset {
namespace {

constexpr int kProof_ms = 10'000;  // time limit for a new connection to prove the token
constexpr std::size_t kMaxPending = 1024;
constexpr int kWaitStep_ms = 100;

std::string tool(const std::string& program) {
    return program.substr(0, program.find(' '));
}

// Environment variables to pass to processes on other hosts.
std::vector<std::string> settings() {
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable)
        if (const std::string_view one = *variable; one.starts_with("FI_") || one.starts_with("MCASTCOLL_"))
            all.emplace_back(one);
    return all;
}

std::vector<sites::Endpoint> own_endpoints(std::uint16_t port) {
    std::vector<sites::Endpoint> real, loops;
    const auto interfaces = transport::list_interfaces();
    if (!interfaces) return {};
    for (const transport::Interface& interface : interfaces.value()) {
        if (!interface.up) continue;
        for (const transport::SocketAddress& address : interface.addresses) {
            const transport::SocketAddress named = address.with_port(port);
            const auto* v6 = reinterpret_cast<const sockaddr_in6*>(named.data());
            if (named.family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
            (interface.loopback ? loops : real).push_back(sites::Endpoint::of(named.data(), named.size()));
        }
    }
    return real.empty() ? loops : real;
}

}  // namespace

Hello own_hello(const std::string& program, std::uint32_t rank) {
    const auto identity = topology::read_host_identity();
    return {program, rank, identity ? topology::host_id(identity.value()) : 0, topology::host_name()};
}

bool is_own_host(std::string_view name) {
    name.remove_prefix(name.find('@') == std::string_view::npos ? 0 : name.find('@') + 1);
    char full[256] = {};
    (void)::gethostname(full, sizeof full - 1);
    if (name == "localhost" || name == full || name == topology::host_name()) return true;
    const auto address = sites::Endpoint::parse(name);
    if (!address) return false;
    const auto own = own_endpoints(0);
    return std::any_of(own.begin(), own.end(),
                       [&](const auto& one) { return one.same_host(address.value()); });
}

Head::Head(std::string program, const Options& options)
    : program_(std::move(program)), options_(options), host_set_(new HostSet) {}

Result<std::vector<sites::Endpoint>> Head::listen() {
    if (const auto drawn = kernel_random(host_set_->token_); !drawn) return drawn.error();
    auto any = sites::Endpoint{sites::Family::v6, 0, {}};
    auto listener = gateway::listen_at(any);
    if (!listener) {  // no IPv6 here
        any.family = sites::Family::v4;
        listener = gateway::listen_at(any);
    }
    if (!listener) return listener.error();
    listener_ = std::move(listener).value();
    endpoints_ = own_endpoints(gateway::name_of(listener_.get()).port);
    if (endpoints_.empty()) return Error{EADDRNOTAVAIL, "this host has no address"};
    return endpoints_;
}

Result<std::unique_ptr<HostSet>> Head::form_launched(std::uint32_t size) {
    launched_ = true;
    host_set_->hosts_.resize(size);
    for (std::uint32_t rank = 1; rank < size; ++rank) host_set_->hosts_[rank] = fmt::format("rank {}", rank);
    host_set_->hosts_[0] = topology::host_name();
    return await_members();
}

Result<std::unique_ptr<HostSet>> Head::form_with_agents(const std::vector<std::string>& named) {
    list_members(named);
    start_agents();
    return await_members();
}

void Head::list_members(const std::vector<std::string>& named) {
    const auto own = std::find_if(named.begin(), named.end(), is_own_host);
    host_set_->head_works_ = own != named.end();
    host_set_->hosts_.push_back(host_set_->head_works_ ? *own : topology::host_name());
    for (auto name = named.begin(); name != named.end(); ++name)
        if (name != own) host_set_->hosts_.push_back(*name);
}

void Head::start_agents() {
    host_set_->agents_ = std::make_unique<Agents>();
    const std::vector<std::string> environment = settings();
    for (std::uint32_t rank = 1; rank < host_set_->size(); ++rank) {
        const std::string& host = host_set_->hosts_[rank];
        std::vector<std::string> command;
        for (std::size_t at = 0; at < options_.rsh.size();) {
            const std::size_t end = std::min(options_.rsh.find(' ', at), options_.rsh.size());
            if (end > at) command.push_back(options_.rsh.substr(at, end - at));
            at = end + 1;
        }
        command.push_back(host);
        command.push_back(as_shell_word(std::filesystem::read_symlink("/proc/self/exe").string()));
        command.insert(command.end(), {"--join", as_shell_word(to_string(endpoints_)), "--wait",
                                       std::to_string(options_.wait_s)});
        const auto started = host_set_->agents_->start(rank, host, command,
                                                       as_bytes_of(Invitation{token(), rank, environment}));
        host_set_->loss_reasons_.resize(host_set_->size());
        if (!started) report_lost(rank, started.error().message);
    }
    host_set_->agents_->listen();
}

void Head::report_lost(std::uint32_t rank, const std::string& why) {
    host_set_->loss_reasons_[rank] = why;
    // A closed standard error must not stop the other members.
    (void)attempt([&] { fmt::print(stderr, "{}: {}: {}\n", tool(program_), host_set_->hosts_[rank], why); });
}

std::vector<std::uint32_t> Head::missing() const {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 1; rank < host_set_->size(); ++rank)
        if (host_set_->links_[rank] == nullptr && !host_set_->is_lost(rank)) ranks.push_back(rank);
    return ranks;
}

Result<std::unique_ptr<HostSet>> Head::await_members() {
    host_set_->loss_reasons_.resize(host_set_->size());
    host_set_->links_.resize(host_set_->size());
    host_ids_.resize(host_set_->size());
    host_ids_[0] = own_hello(program_, 0).host_id;
    const Deadline deadline(static_cast<int>(options_.wait_s) * 1000);
    while (!missing().empty() && !deadline.over() && failed_.empty()) {
        wait_for_events();
        accept_connections();
        std::erase_if(pending_, [this](PendingConnection& one) { return serve(one); });
        for (const std::uint32_t rank : missing())
            if (host_set_->agents_ != nullptr && !host_set_->agents_->ended(rank).empty())
                report_lost(rank, fmt::format("{} {} before it had joined", options_.rsh,
                                              host_set_->agents_->ended(rank)));
    }
    if (!failed_.empty()) return Error{EINVAL, failed_};
    for (const std::uint32_t rank : missing())
        report_lost(rank, fmt::format("did not join within {} s", options_.wait_s));
    if (host_set_->size() > 1 && host_set_->present().size() == 1)
        return Error{EHOSTUNREACH, "no other host has joined"};
    Writer welcome;
    welcome.number(host_set_->head_works_).number(host_set_->size());
    for (std::uint32_t rank = 0; rank < host_set_->size(); ++rank)
        welcome.text(host_set_->hosts_[rank]).text(host_set_->loss_reasons_[rank]);
    host_set_->send_to_all(kWelcome + welcome.take(), options_.wait_s);
    for (const auto& link : host_set_->links_)
        if (link != nullptr && !host_set_->address_)
            host_set_->address_ = gateway::name_of(link->descriptor());
    if (host_set_->address_) host_set_->address_->port = 0;
    return std::move(host_set_);
}

void Head::wait_for_events() const {
    std::vector<pollfd> waiting{{listener_.get(), POLLIN, 0}};
    for (const PendingConnection& one : pending_)
        waiting.push_back({one.link->descriptor(), one.link->events(), 0});
    ::poll(waiting.data(), waiting.size(), kWaitStep_ms);
}

void Head::accept_connections() {
    for (;;) {
        FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket.valid()) return;
        // The oldest connection makes room for the new one.
        if (pending_.size() >= kMaxPending) pending_.erase(pending_.begin());
        pending_.push_back(
            {std::make_unique<Link>(std::move(socket), token(), Link::Side::head), Deadline(kProof_ms)});
    }
}

bool Head::serve(PendingConnection& pending) {
    const bool connected = pending.link->progress();
    const auto message = pending.link->next();
    if (!message) return true;
    if (!message.value()) return !connected || pending.until.over();
    if (const auto hello = parse_hello(*message.value())) admit(std::move(pending.link), hello.value());
    return true;
}

void Head::admit(std::unique_ptr<Link> link, const Hello& hello) {
    const std::uint32_t rank = hello.rank;
    if (rank == 0 || rank >= host_set_->size() || host_set_->links_[rank] != nullptr ||
        host_set_->is_lost(rank))
        return;
    std::string wrong;
    if (launched_) host_set_->hosts_[rank] = hello.host;
    if (hello.program != program_) {
        wrong = fmt::format("has {}, but the head has {}", hello.program, program_);
    } else if (hello.host_id != 0) {
        const auto same = std::find(host_ids_.begin(), host_ids_.end(), hello.host_id);
        host_ids_[rank] = hello.host_id;
        if (same != host_ids_.end() && launched_)
            failed_ = wrong = fmt::format(
                "ranks {} and {} are both on host {}: start one process per host, as "
                "mpirun -N 1 does",
                same - host_ids_.begin(), rank, hello.host);
        else if (same != host_ids_.end())
            wrong = fmt::format("is the same host as {}",
                                host_set_->hosts_[static_cast<std::size_t>(same - host_ids_.begin())]);
    }
    if (wrong.empty()) {
        link->allow_long_messages();
        host_set_->links_[rank] = std::move(link);
        return;
    }
    link->send(kRefused + wrong);
    link->progress();
    if (failed_.empty()) report_lost(rank, wrong);
}

}  // namespace mcastcoll::hostset
