// Base of the provider's part of an inner object. The operations find it through the grafted tables, and
// closing the inner object deletes it.
#pragma once

#include "ofi/graft.h"
#include "provider/fid_owner.h"
#include "provider/guard.h"

namespace mcastcoll::ofi {

template <typename Self, typename Fid, typename Ops>
class Grafted {
  public:
    static Self& of(Fid& object) { return Graft<Ops>::template owner_of<Self>(object.ops); }
    // The inner provider's object and original table.
    Fid& inner() { return inner_; }
    Ops& inner_ops() const { return *graft_.inner(); }
    Grafted(const Grafted&) = delete;
    Grafted& operator=(const Grafted&) = delete;

  protected:
    explicit Grafted(Fid& inner) : inner_(inner) {}
    ~Grafted() = default;

    // Makes the provider's part and installs its tables. Closes the inner object if an exception is thrown.
    template <typename... Arguments>
    static Self& take(Fid& inner, Arguments&&... arguments) {
        provider::FidOwner<Fid> opened(&inner);
        auto self = std::make_unique<Self>(std::forward<Arguments>(arguments)..., inner);
        self->prepare();
        opened.release();
        self->install();
        return *self.release();  // close() deletes it
    }
    // Allocates the memory for install(), which then cannot fail.
    void prepare() {
        object_graft_.prepare(inner_.fid.ops);
        graft_.prepare(inner_.ops);
    }
    void install() {
        object_graft_.install(inner_.fid.ops, static_cast<Self*>(this)).close = &Grafted::close;
        graft_.install(inner_.ops, static_cast<Self*>(this));
    }
    // True while the object must not be closed.
    bool in_use() const { return false; }
    static Self& of_object(fid& object) { return Graft<fi_ops>::owner_of<Self>(object.ops); }
    static int close(fid* object) noexcept {
        return provider::guard([&] {
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

}  // namespace mcastcoll::ofi
