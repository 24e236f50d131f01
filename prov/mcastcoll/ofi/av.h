// Our share of an address vector: it makes address vector sets, and remembers which addresses were inserted,
// because the inner providers do not check the ones they are asked about.
#pragma once

#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>

#include <mutex>
#include <unordered_set>

#include "ofi/graft.h"

namespace mcastcoll::ofi {

class Av {
  public:
    // 0 or -FI_E*, in which case the inner vector has been closed.
    static int graft(fid_av& inner, const fi_av_attr& attr);
    static Av& of(fid_av& av) { return Graft<fi_ops_av>::owner_of<Av>(av.ops); }
    // False for the vectors of other providers.
    static bool is_ours(const fid_av& av) { return av.ops->av_set == &Av::open_set; }

    explicit Av(fid_av& inner) : inner_(inner) {}
    Av(const Av&) = delete;
    Av& operator=(const Av&) = delete;

    fid_av& inner() { return inner_; }
    bool has(fi_addr_t address) const;
    void on_set_closed();

  private:
    static int close(fid* object) noexcept;
    static int insert(fid_av* av, const void* raw, std::size_t count, fi_addr_t* addresses,
                      std::uint64_t flags, void* context) noexcept;
    static int insertsvc(fid_av* av, const char* node, const char* service, fi_addr_t* address,
                         std::uint64_t flags, void* context) noexcept;
    static int insertsym(fid_av* av, const char* node, std::size_t nodes, const char* service,
                         std::size_t services, fi_addr_t* addresses, std::uint64_t flags,
                         void* context) noexcept;
    static int remove(fid_av* av, fi_addr_t* addresses, std::size_t count, std::uint64_t flags) noexcept;
    static int open_set(fid_av* av, fi_av_set_attr* attr, fid_av_set** set, void* context) noexcept;
    template <typename Insert>
    int insert_any(std::size_t count, fi_addr_t* addresses, Insert insert);

    fid_av& inner_;
    Graft<fi_ops> object_graft_;
    Graft<fi_ops_av> av_graft_;
    mutable std::mutex mutex_;
    std::unordered_set<fi_addr_t> known_;
    bool all_known_ = true;  // not when insertions end later or others fill the vector
    std::size_t sets_ = 0;
};

}  // namespace mcastcoll::ofi
