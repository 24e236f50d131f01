// An address vector set: an ordered list of addresses of an address vector without repetition. The inner
// provider is not involved. A member's position in the set is its rank in groups joined with the set.
//
// The application owns the set through its fid_av_set; closing the fid_av_set deletes the set. The set has a
// lock of its own: several threads may change it, combine it with other sets and join with it at the same
// time. Each call sees the changes of another call completely or not at all.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>

#include <mutex>

#include "mcastcoll/mcastcoll.h"
#include "ofi/av.h"
#include "provider/settings.h"

namespace mcastcoll::ofi {

class AvSet final : public fid_av_set {
  public:
    static Result<fid_av_set*> make(Av& av, const fi_av_set_attr& attr, void* context);
    // Returns null for a set of another provider.
    static const AvSet* find(const fid_av_set* set);
    // Call only for sets that find() accepts.
    static const AvSet& from(const fid_av_set& set) { return static_cast<const AvSet&>(set); }

    fid_av* av() const { return &av_.inner(); }
    // Settings of a group joined with this set: the values set on this set, and `otherwise` for the rest.
    group::GroupSettings settings(group::GroupSettings otherwise) const;
    std::vector<fi_addr_t> members() const {
        const std::lock_guard lock(mutex_);
        return members_;
    }
    // The application's communication key (comm_key), empty if none. Joins of the same members with different
    // keys form different groups, in any order of the calls.
    const wire::ByteString& key() const { return key_; }
    // Stands for the set where libfabric expects the address of a group; never FI_ADDR_NOTAVAIL.
    fi_addr_t address() const { return reinterpret_cast<fi_addr_t>(this); }

  private:
    explicit AvSet(Av& av) : fid_av_set{}, av_(av) {}
    ~AvSet() { wire::wipe(key_); }
    static AvSet& from(fid_av_set& set) { return static_cast<AvSet&>(set); }
    // The operation tables shared by all sets; the second one is the public extension, mcastcoll/mcastcoll.h.
    static fi_ops_av_set& operations();
    static fi_mcastcoll_set_ops& extension();
    Result<void> fill(const fi_av_set_attr& attr);
    template <typename Change>
    static int combine(fid_av_set* to, const fid_av_set* other, Change change) noexcept;
    template <typename Change>
    static int set_if(bool good, fid_av_set* set, Change change) noexcept;

    Av& av_;
    wire::ByteString key_;  // never changed after make()
    mutable std::mutex mutex_;
    std::vector<fi_addr_t> members_;
    std::optional<engine::Repair> repair_;
    std::optional<unsigned> channels_;
    std::optional<engine::RootSync> root_sync_;
    unsigned root_delay_us_ = 0;
};

}  // namespace mcastcoll::ofi
