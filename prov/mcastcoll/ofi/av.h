// The provider's part of an address vector. Makes address vector sets. Records the inserted addresses,
// because the inner providers do not check addresses in a lookup.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>

#include <mutex>
#include <unordered_set>

#include "ofi/graft.h"
#include "ofi/grafted.h"

namespace mcastcoll::ofi {

class Av final : public Grafted<Av, fid_av, fi_ops_av> {
  public:
    // Closes the inner address vector if an exception is thrown.
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
    // False when insertions complete asynchronously or when other processes fill the address vector.
    bool all_known_ = true;
    std::size_t sets_ = 0;
};

}  // namespace mcastcoll::ofi
