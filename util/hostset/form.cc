// The three ways to form a host set, and how a member finds its head.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "gateway/sockets.h"
#include "hostset/encoding.h"
#include "hostset/head.h"
#include "hostset/invitation.h"
#include "hostset/launcher.h"
#include "hostset/reader.h"
#include "hostset/writer.h"

namespace mcastcoll::hostset {
namespace {

constexpr int kAttempt_ms = 3000;  // time limit to connect to one address of the head
constexpr int kPause_ms = 200;     // after all addresses have failed
constexpr std::size_t kMaxInvitation = std::size_t{1} << 20;

// Sends the hello, and waits until the head has admitted all members.
Result<std::string> send_hello(Link& link, const Hello& hello, Deadline deadline) {
    pollfd one{link.descriptor(), POLLOUT, 0};
    if (::poll(&one, 1, std::min(kAttempt_ms, deadline.left_ms())) != 1)
        return Error{ETIMEDOUT, "no connection"};
    if (const auto error = gateway::option_of<int>(link.descriptor(), SOL_SOCKET, SO_ERROR).value_or(0);
        error != 0)
        return Error{error, std::strerror(error)};
    link.send(as_bytes_of(hello));
    link.allow_long_messages();
    return await_message(link, deadline);
}

}  // namespace

Result<std::unique_ptr<HostSet>> join(const std::string& program, const Options& options,
                                      const wire::Key& token, std::uint32_t rank,
                                      const std::vector<sites::Endpoint>& endpoints) {
    const Hello hello = own_hello(program, rank);
    const Deadline deadline(static_cast<int>(options.wait_s) * 2000);
    std::string why;
    for (std::size_t next = 0;; ++next) {
        if (deadline.over()) break;
        if (next > 0 && next % endpoints.size() == 0) ::poll(nullptr, 0, kPause_ms);
        const sites::Endpoint& endpoint = endpoints[next % endpoints.size()];
        auto socket = gateway::connect_to(endpoint);
        if (!socket) {
            why = socket.error().message;
            continue;
        }
        auto link = std::make_unique<Link>(std::move(socket).value(), token, Link::Side::member);
        const auto message = send_hello(*link, hello, deadline);
        if (!message) {
            why = fmt::format("{}: {}", endpoint.to_string(), message.error().message);
            continue;
        }
        if (message.value().starts_with(kRefused))
            return Error{ECANCELED,
                         fmt::format("the head refuses this host: it {}", message.value().substr(1))};
        std::unique_ptr<HostSet> host_set(new HostSet);
        Reader reader(std::string_view(message.value()).substr(1));
        host_set->rank_ = rank;
        host_set->token_ = token;
        host_set->head_works_ = reader.number() != 0;
        for (std::uint64_t left = reader.number(); left > 0 && reader.ok(); --left) {
            host_set->hosts_.emplace_back(reader.text());
            host_set->loss_reasons_.emplace_back(reader.text());
        }
        if (!message.value().starts_with(kWelcome) || !reader.at_end() || host_set->size() <= rank)
            return Error{EBADMSG, "cannot parse the welcome of the head"};
        host_set->address_ = gateway::name_of(link->descriptor());
        host_set->address_->port = 0;
        host_set->links_.push_back(std::move(link));
        return host_set;
    }
    return Error{ETIMEDOUT, fmt::format("cannot reach the head within {} s; {}", 2 * options.wait_s, why)};
}

namespace {

Result<std::string> read_invitation(Deadline deadline) {
    std::string bytes;
    std::array<char, 4096> buffer;
    for (;;) {
        pollfd one{STDIN_FILENO, POLLIN, 0};
        if (::poll(&one, 1, deadline.left_ms()) == 0)
            return Error{ETIMEDOUT, "standard input did not end in time"};
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got <= 0 || bytes.size() > kMaxInvitation) return bytes;
        bytes.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

Result<std::unique_ptr<HostSet>> join_invited(const std::string& program, const Options& options) {
    const auto endpoints = parse_endpoints(options.join);
    if (!endpoints) return Error{EINVAL, "--join " + endpoints.error().message};
    const auto bytes = read_invitation(Deadline(static_cast<int>(options.wait_s) * 1000));
    if (!bytes) return bytes.error();
    const auto invitation = parse_invitation(bytes.value());
    if (!invitation) return invitation.error();
    for (const std::string& variable : invitation.value().environment)
        if (const std::size_t equals = variable.find('='); equals != std::string::npos)
            ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    return join(program, options, invitation.value().token, invitation.value().rank, endpoints.value());
}

Result<std::unique_ptr<HostSet>> form_with_hosts(const std::string& program, const Options& options) {
    const bool in_file = options.hosts.starts_with('@');
    std::string text = options.hosts;
    if (in_file) {
        std::ifstream file(options.hosts.substr(1));
        text.assign(std::istreambuf_iterator<char>(file), {});
        if (!file) return Error{ENOENT, fmt::format("--hosts: cannot read {}", options.hosts.substr(1))};
    }
    const auto hosts = parse_hosts(text, in_file ? '\n' : ',');
    if (!hosts) return Error{EINVAL, fmt::format("--hosts: {}", hosts.error().message)};
    if (options.rsh.find_first_not_of(' ') == std::string::npos) return Error{EINVAL, "--rsh is empty"};
    Head head(program, options);
    if (const auto listening = head.listen(); !listening) return listening.error();
    return head.form_with_agents(hosts.value());
}

Result<std::unique_ptr<HostSet>> form_launched(const std::string& program, const Options& options) {
    const auto launched = connect_launcher(options.wait_s);
    if (!launched) return launched.error();
    Head head(program, options);
    Writer mine;
    if (launched.value().rank == 0) {
        const auto endpoints = head.listen();
        if (!endpoints) return endpoints.error();
        mine.text(as_bytes_of(Invitation{head.token(), 0, {}})).text(to_string(endpoints.value()));
    }
    const auto published = publish_from_head(launched.value(), mine.take());
    if (!published) return published.error();
    if (launched.value().rank == 0) return head.form_launched(launched.value().size);
    Reader reader(published.value());
    const auto invitation = parse_invitation(reader.text());
    const auto endpoints = parse_endpoints(reader.text());
    if (!invitation || !endpoints) return Error{EBADMSG, "cannot parse the data that rank 0 has published"};
    return join(program, options, invitation.value().token, launched.value().rank, endpoints.value());
}

}  // namespace

Result<std::unique_ptr<HostSet>> HostSet::form(const std::string& program, const Options& options) {
    if (int{options.here} + int{!options.hosts.empty()} + int{!options.join.empty()} > 1)
        return Error{EINVAL, "--here, --hosts and --join exclude each other"};
    if (!options.join.empty()) return join_invited(program, options);
    if (!options.hosts.empty()) return form_with_hosts(program, options);
    if (options.here) {
        Head head(program, options);
        if (const auto listening = head.listen(); !listening) return listening.error();
        return head.form_with_agents({"localhost"});
    }
    if (is_launched()) return form_launched(program, options);
    const bool slurm = std::getenv("SLURM_PROCID") != nullptr,
               ompi = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
    return Error{EINVAL, slurm  ? "srun does not provide PMIx: add --mpi=pmix, or give --hosts"
                         : ompi ? "this was built without PMIx: start it by hand with --hosts HOST,HOST,..."
                                : "start it with mpirun -N 1, or with --hosts HOST,HOST,..., or --here"};
}

}  // namespace mcastcoll::hostset
