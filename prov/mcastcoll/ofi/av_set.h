// An address vector set: an ordered list of an address vector's addresses without repetition, entirely ours.
// A member's place in it is its rank in the groups that are joined with it.
//
// The application owns it through its fid_av_set; closing that deletes it.
#pragma once

#include <rdma/fi_collective.h>

#include <mutex>
#include <vector>

#include "ofi/av.h"
#include "wire/result.h"

namespace mcastcoll::ofi {

class AvSet {
  public:
    static Result<fid_av_set*> make(Av& av, const fi_av_set_attr& attr, void* context);
    // Null when it is another provider's.
    static const AvSet* find(const fid_av_set* set);
    // Only for what find() has found.
    static const AvSet& from(const fid_av_set& set) { return *reinterpret_cast<const Handle&>(set).self; }

    fid_av* av() const { return &av_.inner(); }
    const std::vector<fi_addr_t>& members() const { return members_; }
    // What stands for the set where a group's address is expected; never FI_ADDR_NOTAVAIL.
    fi_addr_t address() const { return reinterpret_cast<fi_addr_t>(&handle_); }

  private:
    struct Handle {
        fid_av_set fid{};
        AvSet* self = nullptr;
    };

    explicit AvSet(Av& av) : av_(av) {}
    ~AvSet() = default;
    static AvSet& from(fid_av_set& set) { return *reinterpret_cast<Handle&>(set).self; }
    static int close(fid* object) noexcept;
    static int set_union(fid_av_set* to, const fid_av_set* from_set) noexcept;
    static int intersect(fid_av_set* to, const fid_av_set* from_set) noexcept;
    static int diff(fid_av_set* to, const fid_av_set* from_set) noexcept;
    static int insert(fid_av_set* set, fi_addr_t address) noexcept;
    static int remove(fid_av_set* set, fi_addr_t address) noexcept;
    static int get_address(fid_av_set* set, fi_addr_t* address) noexcept;
    static fi_ops* object_operations();
    static fi_ops_av_set* operations();
    bool contains(fi_addr_t address) const;
    Result<void> fill(const fi_av_set_attr& attr);
    template <typename Change>
    static int combine(fid_av_set* to, const fid_av_set* other, Change change) noexcept;

    Av& av_;
    Handle handle_;
    std::vector<fi_addr_t> members_;
};

}  // namespace mcastcoll::ofi
