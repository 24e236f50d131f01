// Our share of an address vector: it makes address vector sets, and remembers which addresses were inserted,
// because the inner providers do not check the ones they are asked about.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>

#include <mutex>
#include <unordered_set>

#include "mcastcoll/mcastcoll.h"
#include "ofi/graft.h"
#include "provider/settings.h"

namespace mcastcoll::ofi {

class Av final : public Grafted<Av, fid_av, fi_ops_av> {
  public:
    // If anything is thrown the inner vector has been closed.
    static void graft(fid_av& inner, const fi_av_attr& attr);
    explicit Av(fid_av& inner) : Grafted(inner) {}

    bool has(fi_addr_t address) const;
    void on_set_closed() {
        const std::lock_guard lock(mutex_);
        --sets_;
    }

  private:
    friend Grafted;
    int open_set(fi_av_set_attr* attr, fid_av_set** set, void* context);
    template <typename Insert>
    int insert_any(std::size_t count, fi_addr_t* addresses, Insert insert) noexcept;
    bool in_use() const {
        const std::lock_guard lock(mutex_);
        return sets_ > 0;
    }

    mutable std::mutex mutex_;
    std::unordered_set<fi_addr_t> known_;
    bool all_known_ = true;  // not when insertions end later or others fill the vector
    std::size_t sets_ = 0;
};

// An address vector set: an ordered list of an address vector's addresses without repetition, entirely ours.
// A member's place in it is its rank in the groups that are joined with it.
//
// The application owns it through its fid_av_set; closing that deletes it. A lock of its own: several threads
// may change it, combine it with others and join with it at once (each call sees all of another's change or
// none).
class AvSet final : public fid_av_set {
  public:
    static Result<fid_av_set*> make(Av& av, const fi_av_set_attr& attr, void* context);
    // Null when it is another provider's.
    static const AvSet* find(const fid_av_set* set);
    // Only for what find() has found.
    static const AvSet& from(const fid_av_set& set) { return static_cast<const AvSet&>(set); }

    fid_av* av() const { return &av_.inner(); }
    // How a group that is joined with this set is to work, where the set does not say otherwise as given.
    GroupSettings settings(GroupSettings otherwise) const;
    std::vector<fi_addr_t> members() const {
        const std::lock_guard lock(mutex_);
        return members_;
    }
    // The application's communication key: joins of the same members with another key are another group's,
    // whatever their order. Empty when there is none.
    const wire::ByteString& key() const { return key_; }
    // What stands for the set where a group's address is expected; never FI_ADDR_NOTAVAIL.
    fi_addr_t address() const { return reinterpret_cast<fi_addr_t>(this); }

  private:
    explicit AvSet(Av& av) : fid_av_set{}, av_(av) {}
    ~AvSet() { wire::wipe(key_); }
    static AvSet& from(fid_av_set& set) { return static_cast<AvSet&>(set); }
    // The tables of every set; the second is the public extension, mcastcoll/mcastcoll.h.
    static fi_ops_av_set& operations();
    static fi_mcastcoll_set_ops& extension();
    Result<void> fill(const fi_av_set_attr& attr);
    template <typename Change>
    static int combine(fid_av_set* to, const fid_av_set* other, Change change) noexcept;
    template <typename Change>
    static int set_if(bool good, fid_av_set* set, Change change) noexcept;

    Av& av_;
    wire::ByteString key_;  // never changes
    mutable std::mutex mutex_;
    std::vector<fi_addr_t> members_;
    std::optional<engine::Repair> repair_;
    std::optional<unsigned> channels_;
    std::optional<engine::RootSync> root_sync_;
    unsigned root_delay_us_ = 0;
};

}  // namespace mcastcoll::ofi
