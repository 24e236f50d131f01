// One collective with its buffers, from filling the buffers to checking every element of the result and every
// byte around it. Both ways of starting are supported: with a completion, or blocking.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mcastcoll/mcastcoll.h"
#include "support/member.h"
#include "support/reduction.h"

namespace mcastcoll::fabtest {

struct Job {
    fi_collective_op collective = FI_ALLREDUCE;
    fi_datatype type = FI_UINT8;
    fi_op op = FI_SUM;
    Values values = Values::exact;
    std::size_t count = 0;  // elements in one member's part; reduce_scatter: in the whole vector
    unsigned root = 0;
    bool in_place = false;
    std::size_t offset = 0;  // of the buffers, relative to an aligned address
    std::uint64_t seed = 0;
    bool message = false;  // use the message form
};

// Draws any collective with suitable parameters from the seed; every member draws the same.
Job draw_any_job(unsigned members, std::uint64_t seed, std::size_t largest_bytes);

// The opened extension (fi_mcastcoll_group_ops) of a group.
class Extension {
  public:
    explicit Extension(const Join& group);
    ssize_t run(const fi_mcastcoll_request& request, int (*meanwhile)(void*) = nullptr,
                void* argument = nullptr) const {
        return ops_->run(mc_, &request, meanwhile, argument);
    }
    const fi_mcastcoll_group_ops& ops() const { return *ops_; }

  private:
    fid_mc* mc_;
    fi_mcastcoll_group_ops* ops_ = nullptr;
};

class Exercise {
  public:
    // For a group of all members of the test, with the same ranks.
    Exercise(const Member& me, const Job& job) : Exercise(job, me.rank(), me.size()) {}
    Exercise(const Job& job, unsigned self, unsigned members);

    Ticket& post(Member& me, const Join& group) const;
    // Calls the provider once and returns its result.
    ssize_t post(fid_ep* ep, fi_addr_t group, void* context) const;
    fi_mcastcoll_request request() const;

    // Checks the result and the bytes around it; throws Failure if a byte is wrong.
    void check() const;
    // Digest of the result on a member with a result.
    std::uint64_t digest() const;
    std::string describe() const;

  private:
    std::uint64_t seed_of(unsigned member) const;
    std::uint64_t seed_of(unsigned from, unsigned to) const;
    void fill_part(std::byte* to, std::uint64_t seed) const;
    void fill_input(std::byte* to) const;
    ssize_t post_message(fid_ep* ep, fi_addr_t group, void* context) const;
    void check_reduction() const;
    void check_parts() const;

    Job job_;
    const Datatype& type_;
    unsigned self_, members_;
    std::size_t part_bytes_, input_bytes_ = 0, result_bytes_ = 0;
    bool gives_ = false, gets_ = false;
    std::unique_ptr<Buffer> input_, result_;
    std::byte* result_place_ = nullptr;
    const void* input_at_ = nullptr;  // as passed to the provider
    void* result_at_ = nullptr;
    std::vector<std::byte> input_before_, result_before_;
};

}  // namespace mcastcoll::fabtest
