// Grafting: an object of the inner provider remains in use, but one of its operation tables is replaced by a
// copy in which the provider overrides some operations.
//
// A copy is as large as the larger of the inner provider's table and the provider's, because either may have
// been built with newer headers. A pointer to the owner of the operations is stored directly before the copy,
// so that an operation finds its owner from the libfabric object alone.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace mcastcoll::ofi {

template <typename Ops>
class Graft {
  public:
    Graft() = default;
    Graft(const Graft&) = delete;
    Graft& operator=(const Graft&) = delete;

    // Allocates the memory for install(), which then cannot fail.
    void prepare(const Ops* slot) {
        const std::size_t size = std::max(sizeof(Ops), slot != nullptr ? slot->size : 0);
        if (memory_ != nullptr && prepared_ >= size) return;
        memory_ = std::make_unique<std::max_align_t[]>((kOffset + size + sizeof(std::max_align_t) - 1) /
                                                       sizeof(std::max_align_t));
        prepared_ = size;
    }
    // Copies the table in `slot` (if any) and stores the copy in `slot`. owner_of() will return `owner`.
    Ops& install(Ops*& slot, void* owner) {
        const std::size_t size = std::max(sizeof(Ops), slot != nullptr ? slot->size : 0);
        prepare(slot);
        auto* bytes = reinterpret_cast<std::byte*>(memory_.get());
        std::memcpy(bytes, &owner, sizeof owner);
        table_ = reinterpret_cast<Ops*>(bytes + kOffset);
        if (slot != nullptr) std::memcpy(table_, slot, slot->size);
        table_->size = size;
        slot_ = &slot;
        inner_ = slot;
        slot = table_;
        return *table_;
    }
    // Restores the inner table, before the inner provider closes the object.
    void take_off() {
        if (slot_ != nullptr && *slot_ == table_) *slot_ = inner_;
    }
    // Installs the copy again, if the inner provider has refused to close the object.
    void put_on() {
        if (slot_ != nullptr && *slot_ == inner_) *slot_ = table_;
    }
    bool is_on() const { return slot_ != nullptr && *slot_ == table_; }

    // The inner provider's own table; null if there was none.
    Ops* inner() const { return inner_; }

    template <typename Owner>
    static Owner& owner_of(const Ops* table) {
        void* owner;
        std::memcpy(&owner, reinterpret_cast<const std::byte*>(table) - kOffset, sizeof owner);
        return *static_cast<Owner*>(owner);
    }

  private:
    static constexpr std::size_t kOffset = sizeof(std::max_align_t);
    std::unique_ptr<std::max_align_t[]> memory_;
    std::size_t prepared_ = 0;
    Ops* table_ = nullptr;
    Ops* inner_ = nullptr;
    Ops** slot_ = nullptr;
};

// Closes an object with the inner provider's tables restored. Installs the copies again if the inner provider
// refuses to close. Returns 0 or -FI_E*.
template <typename... Ops>
int close_inner(fid* object, Graft<Ops>&... grafts) {
    (grafts.take_off(), ...);
    const int rc = fi_close(object);
    if (rc != 0) (grafts.put_on(), ...);
    return rc;
}

// The table of an object without an inner counterpart. Every pointer is set, because libfabric calls the
// pointers without a check.
inline fi_ops own_operations(int (*close)(fid*),
                             int (*ops_open)(fid*, const char*, std::uint64_t, void**, void*)) {
    fi_ops operations{};
    operations.size = sizeof operations;
    operations.close = close;
    operations.bind = [](fid*, fid*, std::uint64_t) { return -FI_ENOSYS; };
    operations.control = [](fid*, int, void*) { return -FI_ENOSYS; };
    operations.ops_open = ops_open;
    return operations;
}
// Answers fi_open_ops() for an object with one extension of this name.
inline int hand_out(void* extension, const char* its_name, const char* name, std::uint64_t flags,
                    void** operations) {
    if (name == nullptr || operations == nullptr || flags != 0) return -FI_EINVAL;
    if (std::strcmp(name, its_name) != 0) return -FI_ENOSYS;
    *operations = extension;
    return 0;
}

// True if the inner table is large enough to contain this operation and the operation is not null.
template <typename Ops, typename Operation>
bool has(const Ops* table, Operation Ops::*operation) {
    if (table == nullptr) return false;
    const auto* at = reinterpret_cast<const std::byte*>(&(table->*operation));
    const auto offset = static_cast<std::size_t>(at - reinterpret_cast<const std::byte*>(table));
    return table->size > offset && table->*operation != nullptr;
}

}  // namespace mcastcoll::ofi
