// A member of a test's group of processes: an endpoint with its related objects, the other members'
// addresses, and the waits needed by every test. A Member uses only libfabric's public interface and works
// over any provider with FI_COLLECTIVE.
//
// A Member owns its libfabric objects and closes them in order. Completions and events are matched with
// started operations: an unexpected completion or event is a failure, as for an application.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "support/board.h"
#include "support/buffer.h"
#include "support/failure.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

using Clock = std::chrono::steady_clock;

struct CloseFid {
    template <typename T>
    void operator()(T* object) const {
        fi_close(&object->fid);
    }
};
template <typename T>
using Fid = std::unique_ptr<T, CloseFid>;

// A started operation; the ticket's address is the operation's context.
struct Ticket {
    fi_context2 space{};  // used by the provider; must be the first field
    bool done = false;
    int error = 0;  // a positive errno value, as in fi_cq_err_entry
    std::uint64_t flags = 0;
};

// A started join, and the resulting group.
struct Join {
    fi_context2 space{};
    Fid<fid_mc> mc;
    bool done = false;
    int error = 0;

    fi_addr_t address() const { return fi_mc_addr(mc.get()); }
};

struct Opening {
    fi_wait_obj queue_wait = FI_WAIT_NONE;
    fi_wait_obj event_wait = FI_WAIT_NONE;
    fi_av_type av_type = FI_AV_TABLE;
    fi_threading threading = FI_THREAD_UNSPEC;
    fi_progress progress = FI_PROGRESS_UNSPEC;  // control and data progress
    std::uint64_t more_caps = 0;                // capabilities besides FI_MSG and FI_COLLECTIVE
    // Whether this process takes over the address of a dead member; the survivors do not wait for it.
    bool successor = false;
};

// An error that the event queue reported for a joined group.
struct GroupError {
    const Join* join = nullptr;
    int error = 0;
    std::uint64_t lost = 0;
};

class Member {
  public:
    // Opens the endpoint and exchanges addresses with the other members, which must do the same.
    Member(const Options& options, Board& board, unsigned rank, unsigned size, const Opening& opening);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    unsigned rank() const { return rank_; }
    unsigned size() const { return size_; }
    const Options& options() const { return options_; }
    Board& board() { return board_; }
    void stage(const char* literal);

    const fi_info& info() const { return *info_; }
    fid_fabric* fabric() { return fabric_.get(); }
    fid_domain* domain() { return domain_.get(); }
    fid_av* av() { return av_.get(); }
    fid_cq* cq() { return cq_.get(); }
    fid_eq* eq() { return eq_.get(); }
    fid_ep* ep() { return ep_.get(); }
    fi_addr_t address_of(unsigned rank) const { return addresses_.at(rank); }

    Fid<fid_av_set> all_members();  // an address vector set of all members
    Fid<fid_av_set> empty_set();    // an address vector set without members
    Fid<fid_av_set> set_of(const std::vector<unsigned>& ranks);

    std::unique_ptr<Join> start_join(const fid_av_set* set, fi_addr_t collective_address = FI_ADDR_NOTAVAIL);
    void finish(Join& join);
    std::unique_ptr<Join> join(const fid_av_set* set) {
        auto joining = start_join(set);
        finish(*joining);
        return joining;
    }

    // The functions from here to start() start an operation, and retry after progress on -FI_EAGAIN. The
    // ticket lives as long as the member.
    Ticket& broadcast(const Join& group, void* buffer, std::size_t bytes, fi_addr_t root);
    Ticket& broadcast(const Join& group, void* buffer, std::size_t count, fi_addr_t root,
                      fi_datatype datatype);
    Ticket& barrier(const Join& group, std::uint64_t flags = 0);
    Ticket& allreduce(const Join& group, const void* input, void* result, std::size_t count,
                      fi_datatype datatype, fi_op op);
    Ticket& reduce(const Join& group, const void* input, void* result, std::size_t count, fi_addr_t root,
                   fi_datatype datatype, fi_op op);
    Ticket& allgather(const Join& group, const void* input, void* result, std::size_t count,
                      fi_datatype datatype);
    // Starts an operation with any other call.
    Ticket& start(const char* what, const std::function<long(Ticket*)>& call);
    // Returns a ticket for a call that the test makes itself; the test drops the ticket if the call fails.
    Ticket& new_ticket();
    void drop(Ticket& ticket);

    // Waits until the operation is done, and fails if it has an error.
    void finish(Ticket& ticket);
    // Waits until the operation is done; the caller examines ticket.error.
    void settle(Ticket& ticket);
    bool settle(Ticket& ticket, std::chrono::milliseconds limit);

    // Reads the queues until they are empty. Returns true if there was an entry.
    bool progress();
    // Makes progress until the condition holds; fails after the time limit for one operation.
    void wait_until(const char* what, const std::function<bool()>& holds);
    bool wait_until(std::chrono::milliseconds limit, const std::function<bool()>& holds);
    // Makes progress for a while, so that unexpected completions and events are found.
    void idle(std::chrono::milliseconds time);
    // Takes over entries read from the queue in another way (fi_cq_sread).
    void take(const fi_cq_tagged_entry& entry);
    void take_error();
    bool read_event();
    const std::vector<GroupError>& group_errors() const { return group_errors_; }

    // Waits in a barrier of `count` processes (0: all members) on the board, without libfabric; makes
    // progress meanwhile.
    void meet(unsigned count = 0);

  private:
    void open_fabric(const Opening& opening);
    void open_endpoint(const Opening& opening);
    void exchange_addresses(const Opening& opening);
    bool read_queue();

    const Options& options_;
    Board& board_;
    const unsigned rank_, size_;
    std::unique_ptr<fi_info, decltype(&fi_freeinfo)> info_{nullptr, &fi_freeinfo};
    Fid<fid_fabric> fabric_;
    Fid<fid_eq> eq_;
    Fid<fid_domain> domain_;
    Fid<fid_av> av_;
    Fid<fid_cq> cq_;
    Fid<fid_ep> ep_;
    std::vector<fi_addr_t> addresses_;
    std::deque<Ticket> tickets_;
    std::unordered_set<Ticket*> open_tickets_;
    std::unordered_set<Join*> open_joins_, joined_;
    std::vector<GroupError> group_errors_;
};

}  // namespace mcastcoll::fabtest
