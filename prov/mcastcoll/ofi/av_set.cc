#include "ofi/av_set.h"

#include <algorithm>
#include <iterator>

namespace mcastcoll::ofi {
namespace {

// The intended operations of a set. The flags are hints; FI_UNIVERSE is the only flag that requests more than
// hints.
constexpr std::uint64_t kHintFlags = FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET | FI_ALLREDUCE_SET |
                                     FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET | FI_REDUCE_SET |
                                     FI_SCATTER_SET | FI_GATHER_SET;
// No application has more members in one address vector. A larger range is a mistake and must not exhaust the
// memory.
constexpr std::uint64_t kMaxMembers = 1 << 20;

}  // namespace

template <typename Change>
int AvSet::combine(fid_av_set* to, const fid_av_set* other, Change change) noexcept {
    return provider::guard([&] {
        const AvSet* source = find(other);
        if (source == nullptr || find(to) == nullptr || source->av() != from(*to).av()) return -FI_EINVAL;
        // Copied, because a set may be combined with itself and no call holds two locks.
        const std::vector<fi_addr_t> members = source->members();
        const std::lock_guard lock(from(*to).mutex_);
        change(from(*to).members_, members, std::unordered_set<fi_addr_t>(members.begin(), members.end()));
        return 0;
    });
}

fi_ops_av_set& AvSet::operations() {
    static fi_ops_av_set operations = [] {
        fi_ops_av_set ops{};
        ops.size = sizeof ops;
        ops.set_union = [](fid_av_set* to, const fid_av_set* other) noexcept {
            return combine(to, other, [](auto& mine, const auto& list, const auto&) {
                const std::unordered_set<fi_addr_t> had(mine.begin(), mine.end());
                std::copy_if(list.begin(), list.end(), std::back_inserter(mine),
                             [&](fi_addr_t one) { return had.count(one) == 0; });
            });
        };
        ops.intersect = [](fid_av_set* to, const fid_av_set* other) noexcept {
            return combine(to, other, [](auto& mine, const auto&, const auto& theirs) {
                std::erase_if(mine, [&](fi_addr_t one) { return theirs.count(one) == 0; });
            });
        };
        ops.diff = [](fid_av_set* to, const fid_av_set* other) noexcept {
            return combine(to, other, [](auto& mine, const auto&, const auto& theirs) {
                std::erase_if(mine, [&](fi_addr_t one) { return theirs.count(one) > 0; });
            });
        };
        ops.insert = [](fid_av_set* set, fi_addr_t address) noexcept {
            return provider::guard([&] {
                AvSet& self = from(*set);
                if (!self.av_.has(address)) return -FI_EINVAL;
                const std::lock_guard lock(self.mutex_);
                auto& members = self.members_;
                if (std::find(members.begin(), members.end(), address) != members.end()) return -FI_EINVAL;
                members.push_back(address);
                return 0;
            });
        };
        ops.remove = [](fid_av_set* set, fi_addr_t address) noexcept {
            return provider::guard([&] {
                AvSet& self = from(*set);
                const std::lock_guard lock(self.mutex_);
                return std::erase(self.members_, address) > 0 ? 0 : -FI_EINVAL;
            });
        };
        ops.addr = [](fid_av_set* set, fi_addr_t* address) noexcept {
            if (address == nullptr) return -FI_EINVAL;
            *address = from(*set).address();
            return 0;
        };
        return ops;
    }();
    return operations;
}

template <typename Change>
int AvSet::set_if(bool good, fid_av_set* set, Change change) noexcept {
    if (!good || find(set) == nullptr) return -FI_EINVAL;
    const std::lock_guard lock(from(*set).mutex_);
    change(from(*set));
    return 0;
}

fi_mcastcoll_set_ops& AvSet::extension() {
    static_assert(static_cast<int>(engine::Repair::automatic) == FI_MCASTCOLL_REPAIR_AUTO &&
                  static_cast<int>(engine::Repair::sync) == FI_MCASTCOLL_REPAIR_SYNC &&
                  static_cast<int>(engine::Repair::push) == FI_MCASTCOLL_REPAIR_PUSH);
    static_assert(static_cast<int>(engine::RootSync::delay) == FI_MCASTCOLL_ROOT_SYNC_DELAY &&
                  static_cast<int>(engine::RootSync::random) == FI_MCASTCOLL_ROOT_SYNC_RANDOM &&
                  static_cast<int>(engine::RootSync::adaptive) == FI_MCASTCOLL_ROOT_SYNC_ADAPTIVE);
    static fi_mcastcoll_set_ops operations = {
        sizeof(fi_mcastcoll_set_ops),
        [](fid_av_set* set, int repair) noexcept {
            return set_if(repair >= 0 && repair < engine::kRepairCount, set,
                          [&](AvSet& self) { self.repair_ = static_cast<engine::Repair>(repair); });
        },
        [](fid_av_set* set, unsigned channels) noexcept {
            return set_if(channels >= 1 && channels <= group::kMaxChannels, set,
                          [&](AvSet& self) { self.channels_ = channels; });
        },
        [](fid_av_set* set, int sync, unsigned delay_us) noexcept {
            const bool delays = sync == FI_MCASTCOLL_ROOT_SYNC_DELAY;
            const bool good = sync >= 0 && sync < engine::kRootSyncCount;
            return set_if(good && (!delays || delay_us <= group::kMaxRootDelayUs), set, [&](AvSet& self) {
                self.root_sync_ = static_cast<engine::RootSync>(sync);
                self.root_delay_us_ = delays ? delay_us : 0;
            });
        }};
    return operations;
}

group::GroupSettings AvSet::settings(group::GroupSettings otherwise) const {
    group::GroupSettings result = otherwise;
    const std::lock_guard lock(mutex_);
    result.repair = repair_.value_or(result.repair);
    result.channels = channels_.value_or(result.channels);
    if (root_sync_) {
        result.root_sync = *root_sync_;
        result.root_delay_us = root_delay_us_;
    }
    return result;
}

Result<fid_av_set*> AvSet::make(Av& av, const fi_av_set_attr& attr, void* context) {
    if ((attr.flags & ~(kHintFlags | FI_UNIVERSE)) != 0)
        return Error{FI_EINVAL, fmt::format("unknown flags {:#x}", attr.flags)};
    if (attr.comm_key_size != 0 && attr.comm_key == nullptr)
        return Error{FI_EINVAL, "comm_key_size without a comm_key"};
    std::unique_ptr<AvSet, void (*)(AvSet*)> set(new AvSet(av), [](AvSet* dead) { delete dead; });
    if (auto filled = set->fill(attr); !filled) return filled.error();
    const auto* key = reinterpret_cast<const std::byte*>(attr.comm_key);
    if (attr.comm_key_size != 0) set->key_.assign(key, key + attr.comm_key_size);
    static fi_ops object_operations = own_operations(
        [](struct fid* object) noexcept {
            AvSet& closed = from(*reinterpret_cast<fid_av_set*>(object));
            closed.av_.on_set_closed();
            delete &closed;
            return 0;
        },
        [](struct fid*, const char* name, std::uint64_t flags, void** operations, void*) noexcept {
            return hand_out(&extension(), FI_MCASTCOLL_SET_OPS, name, flags, operations);
        });
    set->fid = {FI_CLASS_AV_SET, context, &object_operations};
    set->ops = &operations();
    return set.release();
}

Result<void> AvSet::fill(const fi_av_set_attr& attr) {
    if (attr.start_addr == FI_ADDR_NOTAVAIL && attr.end_addr == FI_ADDR_NOTAVAIL) return {};
    if (attr.start_addr == FI_ADDR_NOTAVAIL || attr.end_addr == FI_ADDR_NOTAVAIL)
        return Error{FI_EINVAL, "a range needs both start_addr and end_addr, or neither"};
    // A range that ends before it starts is empty.
    if (attr.end_addr < attr.start_addr) return {};
    const std::uint64_t stride = std::max<std::uint64_t>(attr.stride, 1);
    const std::uint64_t count = (attr.end_addr - attr.start_addr) / stride + 1;
    if (count > kMaxMembers)
        return Error{FI_EINVAL,
                     fmt::format("the range has {} addresses, the maximum is {}", count, kMaxMembers)};
    members_.reserve(std::max<std::uint64_t>(count, std::min<std::uint64_t>(attr.count, 4096)));
    for (std::uint64_t i = 0; i < count; ++i) {
        const fi_addr_t address = attr.start_addr + i * stride;
        if (!av_.has(address))
            return Error{FI_EINVAL, fmt::format("address {} is not in the address vector", address)};
        members_.push_back(address);
    }
    return {};
}

const AvSet* AvSet::find(const fid_av_set* set) {
    return set != nullptr && set->fid.fclass == FI_CLASS_AV_SET && set->ops == &operations() ? &from(*set)
                                                                                             : nullptr;
}

}  // namespace mcastcoll::ofi
