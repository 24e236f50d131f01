// Forms a host set as its head: listens, starts processes through agents, and admits connections that prove
// the token.
#pragma once

#include "base/deadline.h"
#include "hostset/agents.h"
#include "hostset/host_set.h"
#include "hostset/link.h"
#include "hostset/messages.h"
#include "hostset/options.h"

namespace mcastcoll::hostset {

// The hello of this process.
Hello own_hello(const std::string& program, std::uint32_t rank);
// Whether a name or address in the user's list is this host's, without a name look-up.
bool is_own_host(std::string_view name);

class Head {
  public:
    Head(std::string program, const Options& options);

    // Opens the socket for members, before form_launched() or form_with_agents(). Returns its addresses.
    Result<std::vector<sites::Endpoint>> listen();
    // Admits the processes that a launcher has started.
    Result<std::unique_ptr<HostSet>> form_launched(std::uint32_t size);
    // Starts a process on each named host through an agent, and admits the processes.
    Result<std::unique_ptr<HostSet>> form_with_agents(const std::vector<std::string>& named);
    const wire::Key& token() const { return host_set_->token_; }

  private:
    struct PendingConnection {
        std::unique_ptr<Link> link;
        Deadline until;
    };

    void list_members(const std::vector<std::string>& named);
    void start_agents();
    Result<std::unique_ptr<HostSet>> await_members();
    void accept_connections();
    // Returns true when the connection is no longer pending: admitted, refused or failed.
    bool serve(PendingConnection& pending);
    void admit(std::unique_ptr<Link> link, const Hello& hello);
    void report_lost(std::uint32_t rank, const std::string& why);
    std::vector<std::uint32_t> missing() const;
    void wait_for_events() const;

    std::string program_;
    const Options& options_;
    std::unique_ptr<HostSet> host_set_;
    std::vector<sites::Endpoint> endpoints_;
    FileDescriptor listener_;
    std::vector<PendingConnection> pending_;
    std::vector<std::uint64_t> host_ids_;
    bool launched_ = false;
    std::string failed_;
};

}  // namespace mcastcoll::hostset
