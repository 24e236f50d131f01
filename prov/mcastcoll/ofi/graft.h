// Grafting: an object of the inner provider stays what it is, but one of its operation tables is replaced by
// a copy in which some operations are ours.
//
// A copy is as large as the larger of the inner provider's table and ours, since either may have been built
// with newer headers. The object that the operations belong to stands right before the copy, so that an
// operation finds it from the libfabric object alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "provider/guard.h"
#include "provider/owners.h"

namespace mcastcoll::ofi {

template <typename Ops>
class Graft {
  public:
    Graft() = default;
    Graft(const Graft&) = delete;
    Graft& operator=(const Graft&) = delete;

    // Takes the memory that install() needs, which then cannot fail.
    void prepare(const Ops* slot) {
        const std::size_t size = std::max(sizeof(Ops), slot != nullptr ? slot->size : 0);
        if (memory_ != nullptr && prepared_ >= size) return;
        memory_ = std::make_unique<std::max_align_t[]>((kOffset + size + sizeof(std::max_align_t) - 1) /
                                                       sizeof(std::max_align_t));
        prepared_ = size;
    }
    // Copies what is in `slot` (nothing when it is null), and puts the copy there. `owner` is what owner_of()
    // will return.
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
    // Before the inner provider tears the object down, and after it refused to.
    void take_off() {
        if (slot_ != nullptr && *slot_ == table_) *slot_ = inner_;
    }
    void put_on() {
        if (slot_ != nullptr && *slot_ == inner_) *slot_ = table_;
    }
    bool is_on() const { return slot_ != nullptr && *slot_ == table_; }

    // The inner provider's own table; null when it had none.
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

// Closes an object with our tables off; they are on again if the inner provider refuses. 0 or -FI_E*.
template <typename... Ops>
int close_inner(fid* object, Graft<Ops>&... grafts) {
    (grafts.take_off(), ...);
    const int rc = fi_close(object);
    if (rc != 0) (grafts.put_on(), ...);
    return rc;
}

// Our share of an object of the inner provider's: it hangs on that one's tables, and goes with its close.
template <typename Self, typename Fid, typename Ops>
class Grafted {
  public:
    static Self& of(Fid& object) { return Graft<Ops>::template owner_of<Self>(object.ops); }
    // The inner provider's object and its own table.
    Fid& inner() { return inner_; }
    Ops& inner_ops() const { return *graft_.inner(); }
    Grafted(const Grafted&) = delete;
    Grafted& operator=(const Grafted&) = delete;

  protected:
    explicit Grafted(Fid& inner) : inner_(inner) {}
    ~Grafted() = default;

    // Puts our tables on. If anything is thrown the inner object has been closed.
    template <typename... Arguments>
    static Self& take(Fid& inner, Arguments&&... arguments) {
        FidOwner<Fid> opened(&inner);
        auto self = std::make_unique<Self>(std::forward<Arguments>(arguments)..., inner);
        self->prepare();
        opened.release();
        self->install();
        return *self.release();  // close() deletes it
    }
    // Takes the memory that install() needs, which then cannot fail.
    void prepare() {
        object_graft_.prepare(inner_.fid.ops);
        graft_.prepare(inner_.ops);
    }
    void install() {
        object_graft_.install(inner_.fid.ops, static_cast<Self*>(this)).close = &Grafted::close;
        graft_.install(inner_.ops, static_cast<Self*>(this));
    }
    // It may not be closed now.
    bool in_use() const { return false; }
    static Self& of_object(fid& object) { return Graft<fi_ops>::owner_of<Self>(object.ops); }
    static int close(fid* object) noexcept {
        return guard([&] {
            Self& self = of_object(*object);
            if (self.in_use()) return -FI_EBUSY;
            Grafted& grafted = self;
            const int rc = close_inner(object, grafted.object_graft_, grafted.graft_);
            if (rc == 0) delete &self;
            return rc;
        });
    }

    Fid& inner_;
    Graft<fi_ops> object_graft_;
    Graft<Ops> graft_;
};

// The table of an object that is ours alone. libfabric calls through every pointer it finds.
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
// Answers its fi_open_ops(): an extension of this name is there.
inline int hand_out(void* extension, const char* its_name, const char* name, std::uint64_t flags,
                    void** operations) {
    if (name == nullptr || operations == nullptr || flags != 0) return -FI_EINVAL;
    if (std::strcmp(name, its_name) != 0) return -FI_ENOSYS;
    *operations = extension;
    return 0;
}

// True when the inner table is large enough to have this operation, and has it.
template <typename Ops, typename Operation>
bool has(const Ops* table, Operation Ops::*operation) {
    if (table == nullptr) return false;
    const auto* at = reinterpret_cast<const std::byte*>(&(table->*operation));
    const auto offset = static_cast<std::size_t>(at - reinterpret_cast<const std::byte*>(table));
    return table->size > offset && table->*operation != nullptr;
}

}  // namespace mcastcoll::ofi
