// A host set: one process per host of one program, each connected to a head, rank 0. A program
// needs a host set before it has a group, and after its group has lost a member: to list the participants,
// and to exchange bytes among all of them.
//
// A rank is a position in the list of hosts, or comes from the launcher; ranks do not change when a member is
// lost.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hostset/options.h"
#include "sites/endpoint.h"
#include "wire/crypto.h"

namespace mcastcoll::hostset {

class Agents;
class Link;

class HostSet {
  public:
    // `program` is the program's name and version, equal in all processes. Errors of single hosts go to
    // standard error, on the head. Returns an error, with the reason, if no host set was formed.
    static Result<std::unique_ptr<HostSet>> form(const std::string& program, const Options& options);
    ~HostSet();
    HostSet(const HostSet&) = delete;
    HostSet& operator=(const HostSet&) = delete;

    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(hosts_.size()); }
    bool is_head() const { return rank_ == 0; }
    // With --hosts the head leads even if its own host is not in the list; then the head does no work.
    bool head_works() const { return head_works_; }
    // Names as given by the user, or as reported by the hosts.
    const std::vector<std::string>& hosts() const { return hosts_; }
    // The address under which other members reach this host; empty if the host is alone.
    const std::optional<sites::Endpoint>& address() const { return address_; }
    // Whether a member was lost by the end of the last exchange; the same on all members.
    bool is_lost(std::uint32_t rank) const { return !loss_reasons_[rank].empty(); }
    // The reason of a member's loss; only the head has details.
    const std::string& loss_reason(std::uint32_t rank) const { return loss_reasons_[rank]; }
    std::vector<std::uint32_t> present() const;

    using Gathered = std::vector<std::optional<std::string>>;  // by rank; empty for lost members
    // Exchanges bytes among all remaining members. Each must call within `wait_s` seconds, or counts as lost.
    // Returns the bytes of all members, equal on all members. Returns an error if the head is lost, or has
    // continued without this process.
    Result<Gathered> exchange(std::string mine, unsigned wait_s);

    // Derives a key for one purpose from the secret of this host set.
    wire::Key key(std::string_view purpose) const { return wire::derive(token_, purpose); }
    // Key for fi_av_set_attr of the n-th group. The key is the group's secret, unless the user has chosen one
    // (FI_MCASTCOLL_KEY_FILE) or none (FI_MCASTCOLL_SECURITY=off); then the key only distinguishes groups.
    std::string comm_key(std::uint32_t group) const;

  private:
    friend class Head;
    friend Result<std::unique_ptr<HostSet>> join(const std::string&, const Options&, const wire::Key&,
                                                 std::uint32_t, const std::vector<sites::Endpoint>&);
    HostSet();
    Result<Gathered> gather(std::string mine, unsigned wait_s);
    void send_to_all(const std::string& everything, unsigned wait_s);
    Result<Gathered> contribute(const std::string& mine, unsigned wait_s);
    void mark_lost(std::uint32_t rank, const std::string& why);

    std::uint32_t rank_ = 0;
    std::vector<std::string> hosts_, loss_reasons_;
    bool head_works_ = true;
    std::optional<sites::Endpoint> address_;
    wire::Key token_{};
    std::vector<std::unique_ptr<Link>> links_;  // on the head: by rank; elsewhere: one, to the head
    std::unique_ptr<Agents> agents_;
};

}  // namespace mcastcoll::hostset
