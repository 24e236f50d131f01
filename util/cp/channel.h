// Broadcasts through libfabric's provider mcastcoll: one endpoint, and a new group of the remaining hosts
// after each failure.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace mcastcoll::cp {

class Channel {
  public:
    // A broadcast in progress; the address of the ticket is the operation's context.
    struct Ticket {
        fi_context2 space{};  // for the provider; must come first
        bool done = false;
        int error = 0;  // an errno value
    };

    // `address` is this host's IP address, as text.
    static Result<std::unique_ptr<Channel>> open(const std::string& address);
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    // The endpoint's name, which peers need to form a group.
    const std::string& name() const { return name_; }
    bool is_group_of(const std::vector<std::string>& names) const {
        return group_ != nullptr && names == names_;
    }
    // Forms a group of the endpoints with these names, the same list on all hosts; the first endpoint is the
    // root of every broadcast. The new group replaces an earlier group. `comm_key` is
    // HostSet::comm_key(attempts()): each attempt has its own key.
    Result<void> form(const std::vector<std::string>& names, const std::string& comm_key);
    std::uint32_t attempts() const { return attempts_; }
    Result<void> start(void* buffer, std::size_t size, Ticket& ticket);
    void wait(Ticket& ticket);
    static Error failure(const Ticket& ticket);

  private:
    struct Close {
        template <typename T>
        void operator()(T* object) const {
            fi_close(&object->fid);
        }
    };
    template <typename T>
    using Fid = std::unique_ptr<T, Close>;

    Channel() = default;
    Result<void> open_fabric(const std::string& address);
    Result<void> open_endpoint();
    Result<void> await_join();
    void take_completions(int timeout_ms);

    std::string name_;
    std::vector<std::string> names_;
    std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_{nullptr, &fi_freeinfo};
    Fid<fid_fabric> fabric_;
    Fid<fid_eq> eq_;
    Fid<fid_domain> domain_;
    Fid<fid_av> av_;
    Fid<fid_cq> cq_;
    Fid<fid_ep> ep_;
    Fid<fid_av_set> set_;
    std::deque<fi_context2> joins_;  // one context per join, to distinguish the events of two joins
    Fid<fid_mc> group_;
    fi_addr_t root_ = FI_ADDR_UNSPEC;
    std::uint32_t attempts_ = 0;
};

}  // namespace mcastcoll::cp
