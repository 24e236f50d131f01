// A crew: one process per host of one program, and a head, rank 0, to which all of them are connected. It is
// what a program needs before it has a group, and when a group has lost a member: who takes part, and bytes
// from everybody to everybody.
//
// A rank is a place in the list of hosts, or what the launcher gave; it stays what it is when others go.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "relay/endpoint.h"
#include "wire/crypto.h"

namespace mcastcoll {
class Arguments;
}

namespace mcastcoll::crew {

class Agents;
class Link;

// How to form one: what the user says.
struct Options {
    std::string hosts;  // "a,b,c", or "@FILE" with one a line
    std::string rsh = "ssh -o BatchMode=yes";
    std::string join;  // of processes that a head has started: where it is
    bool here = false;
    unsigned wait_s = 30;

    // --hosts, --rsh, --join, --here and --wait.
    void add_to(Arguments& arguments);
};

class Crew {
  public:
    // `program` is its name, with its version: all must have the same. Complaints about single hosts go to
    // standard error, on the head. An error: there is no crew, for the reason given.
    static Result<std::unique_ptr<Crew>> form(const std::string& program, const Options& options);
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    std::uint32_t rank() const { return rank_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(hosts_.size()); }
    bool is_head() const { return rank_ == 0; }
    // With --hosts the head leads even if its own host is not in the list; then it has no part in the work.
    bool head_works() const { return head_works_; }
    // As the user has named them, or as they call themselves.
    const std::vector<std::string>& hosts() const { return hosts_; }
    // By which the others reach this host; none, if it is alone.
    const std::optional<relay::Endpoint>& address() const { return address_; }
    // As of the last exchange. All members agree on it.
    bool is_gone(std::uint32_t rank) const { return !gone_[rank].empty(); }
    // Why; only the head knows more than that.
    const std::string& why_gone(std::uint32_t rank) const { return gone_[rank]; }
    std::vector<std::uint32_t> present() const;

    // Everybody that is left calls it, within `wait_s` seconds; who does not is gone. What all have given, in
    // the order of ranks, the same for all; nothing from those that are gone. An error: the head is gone, or
    // has gone on without this process.
    using Gathered = std::vector<std::optional<std::string>>;
    Result<Gathered> exchange(std::string mine, unsigned wait_s);

    // A key for one purpose, which nobody else has.
    wire::Key key(std::string_view purpose) const { return wire::derive(token_, purpose); }
    // For fi_av_set_attr of the crew's n-th group: its secret, unless the user has chosen one
    // (FI_MCASTCOLL_KEY_FILE), or none (FI_MCASTCOLL_SECURITY=off); then it only tells groups apart.
    std::string comm_key(std::uint32_t group) const;

  private:
    friend class Head;
    friend Result<std::unique_ptr<Crew>> join(const std::string&, const Options&, const wire::Key&,
                                              std::uint32_t, const std::vector<relay::Endpoint>&);
    Crew();
    Result<Gathered> gather(std::string mine, unsigned wait_s);
    void hand_out(const std::string& everything, unsigned wait_s);
    Result<Gathered> take_part(const std::string& mine, unsigned wait_s);
    void lose(std::uint32_t rank, const std::string& why);

    std::uint32_t rank_ = 0;
    std::vector<std::string> hosts_, gone_;
    bool head_works_ = true;
    std::optional<relay::Endpoint> address_;
    wire::Key token_{};
    std::vector<std::unique_ptr<Link>> links_;  // of the head: by rank; of others: the one to the head
    std::unique_ptr<Agents> agents_;
};

}  // namespace mcastcoll::crew
