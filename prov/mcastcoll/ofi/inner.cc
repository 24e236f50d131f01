#include "ofi/inner.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>
#include <strings.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "provider/provider.h"

namespace mcastcoll::ofi {
namespace {

// An internal flag of libfabric, like kCoreProvidersOnly, that also shows hidden providers.
constexpr std::uint64_t kHiddenToo = std::uint64_t{1} << 60;

constexpr std::string_view kOuterPrefix = "mcastcoll:";
constexpr std::string_view kMessagePrefix = "mcastcoll-msg:";
constexpr std::string_view kRxm = ";ofi_rxm";
constexpr std::uint64_t kOurCaps = FI_COLLECTIVE | FI_MULTICAST;
// Collectives copy and combine data in the buffers, and the CPU cannot access device memory.
constexpr std::uint64_t kNotWithCollectives = FI_HMEM;
// An inner endpoint needs at least one of these. An application that uses only collectives may request none.
constexpr std::uint64_t kTransferCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

std::optional<FabricName> split_name(std::string_view name, std::string_view prefix) {
    if (!name.starts_with(prefix)) return {};
    name.remove_prefix(prefix.size());
    const auto colon = name.find(':');
    if (colon == std::string_view::npos) return {};
    auto inner = Inner::from_label(name.substr(0, colon));
    if (!inner) return {};
    return FabricName{*inner, std::string(name.substr(colon + 1))};
}

void assign(char*& slot, const std::string& text) {
    char* const copy = strdup(text.c_str());
    if (copy == nullptr) throw std::bad_alloc();
    std::free(slot);
    slot = copy;
}

void clear(char*& slot) {
    std::free(slot);
    slot = nullptr;
}

// Writes the name of the inner provider, and of its fabric if known.
void name_inner(fi_fabric_attr& attr, const Inner& inner, const std::string& fabric) {
    clear(attr.name);
    if (inner.under_rxm)
        assign(attr.name, fmt::format("{}{}:{}", kMessagePrefix, inner.core, fabric));
    else if (!fabric.empty())
        assign(attr.name, fabric);
    assign(attr.prov_name, inner.provider_name());
    attr.prov_version = 0;
}

// Renames a result to a fabric name of mcastcoll. libfabric fills in the provider's name.
void name_ours(fi_fabric_attr& attr, std::string_view prefix, const Inner& inner) {
    std::string fabric = attr.name != nullptr ? attr.name : "";
    // Below ofi_rxm the name already has mcastcoll's prefix, which is not repeated.
    if (auto parts = split_name(fabric, kMessagePrefix)) fabric = parts->fabric;
    assign(attr.name, fmt::format("{}{}:{}", prefix, inner.label(), fabric));
    clear(attr.prov_name);
}

void strip_caps(fi_info& info, std::uint64_t caps) {
    info.caps &= ~caps;
    if (info.tx_attr != nullptr) info.tx_attr->caps &= ~caps;
    if (info.rx_attr != nullptr) info.rx_attr->caps &= ~caps;
    if (info.domain_attr != nullptr) info.domain_attr->caps &= ~caps;
}

void add_caps(fi_info& info, std::uint64_t caps) {
    info.caps |= caps;
    // Attributes without capabilities stand for all capabilities of the info.
    if (info.tx_attr != nullptr && info.tx_attr->caps != 0) info.tx_attr->caps |= caps;
    if (info.rx_attr != nullptr && info.rx_attr->caps != 0) info.rx_attr->caps |= caps;
}

void set_progress(fi_domain_attr& attr, fi_progress control, fi_progress data) {
    attr.control_progress = control;
    attr.data_progress = data;
}

// Progress is manual unless automatic progress is requested, because automatic progress of collectives needs
// a thread.
fi_progress offered(fi_progress wanted) {
    return wanted == FI_PROGRESS_AUTO ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
}

// Copies the hints. Adds fabric attributes if the hints have none, which fi_dupinfo() does not.
provider::InfoOwner copy_hints(const fi_info* hints) {
    provider::InfoOwner copy(hints != nullptr ? fi_dupinfo(hints) : fi_allocinfo());
    if (!copy || copy->fabric_attr != nullptr) return copy;
    provider::InfoOwner donor(fi_allocinfo());
    if (!donor) return nullptr;
    copy->fabric_attr = donor->fabric_attr;
    donor->fabric_attr = nullptr;
    return copy;
}

// Removes the infos for which `keep` is false: a request for "net", for example, also yields "net;ofi_rxm".
template <typename Keep>
provider::InfoOwner filter(provider::InfoOwner list, Keep keep) {
    fi_info* rest = list.release();
    provider::InfoOwner kept;
    fi_info** tail = nullptr;
    while (rest != nullptr) {
        provider::InfoOwner one(rest);
        rest = one->next;
        one->next = nullptr;
        if (!keep(*one)) continue;
        fi_info* raw = one.release();
        if (tail == nullptr)
            kept.reset(raw);
        else
            *tail = raw;
        tail = &raw->next;
    }
    return kept;
}

Result<provider::InfoOwner> query(const provider::InfoRequest& request, const fi_info* hints,
                                  std::uint64_t flags) {
    fi_info* list = nullptr;
    if (const int rc =
            fi_getinfo(request.version, request.node, request.service, flags | kHiddenToo, hints, &list);
        rc != 0)
        return Error{-rc, fi_strerror(-rc)};
    return provider::InfoOwner(list);
}

// The offers of exactly this provider; null: none.
provider::InfoOwner infos_of(const std::string& core, const fi_info& hints) {
    auto list = query({fi_version(), nullptr, nullptr, 0, nullptr}, &hints, 0);
    if (!list) return nullptr;
    return filter(std::move(list).value(), [&](const fi_info& info) {
        return strcasecmp(info.fabric_attr->prov_name, core.c_str()) == 0;
    });
}

// True if a provider has endpoints of this type at all, regardless of the application's request.
bool has_endpoints(const std::string& core, fi_ep_type type) {
    provider::InfoOwner hints(fi_allocinfo());
    if (!hints) return false;
    hints->mode = ~std::uint64_t{0};
    hints->domain_attr->mode = ~std::uint64_t{0};
    // All bits except FI_MR_BASIC and FI_MR_SCALABLE, which exclude all other bits and cause a warning in
    // 2.x.
    hints->domain_attr->mr_mode = 0xfffc;
    hints->ep_attr->type = type;
    assign(hints->fabric_attr->prov_name, core);
    return infos_of(core, *hints) != nullptr;
}

// True if the application exchanges only untagged messages.
bool only_messages(const fi_info* hints) {
    constexpr std::uint64_t kOthers = FI_TAGGED | FI_RMA | FI_ATOMIC;
    return hints != nullptr && hints->caps != 0 && (hints->caps & kOthers) == 0;
}

// Reliable datagrams over TCP: "tcp" itself since 1.18, "net" in the last versions before, otherwise ofi_rxm.
//
// In "net", a message without a waiting receive blocks the stream from its sender, with all later messages
// (except four messages of up to 128 bytes, which are kept aside). Two messages received in an order other
// than the sending order would therefore never arrive. Untagged messages have a single order, so they use
// "net", which is faster.
std::vector<Inner> reliable_tcp(const fi_info* hints) {
    const Inner tcp{"tcp", false}, net{"net", false}, rxm{"tcp", true};
    if (has_endpoints("tcp", FI_EP_RDM)) return {tcp, rxm};  // tcp has atomics as well
    if (!has_endpoints("net", FI_EP_RDM)) return {rxm};
    return only_messages(hints) ? std::vector{net, rxm} : std::vector{rxm, net};
}

}  // namespace

std::string Inner::label() const {
    return under_rxm ? core + std::string(kRxm) : core;
}

std::optional<Inner> Inner::from_label(std::string_view label) {
    Inner inner;
    if (label.ends_with(kRxm)) {
        inner.under_rxm = true;
        label.remove_suffix(kRxm.size());
    }
    inner.core = label;
    if (inner.core.empty() || inner.core.find_first_of(";:^") != std::string::npos) return {};
    return inner;
}

std::string Inner::provider_name() const {
    return under_rxm ? fmt::format("{};^{}{}", provider::kProviderName, core, kRxm) : core;
}

std::optional<FabricName> parse_fabric_name(std::string_view name) {
    return split_name(name, kOuterPrefix);
}

std::optional<FabricName> parse_message_name(std::string_view name) {
    auto parts = split_name(name, kMessagePrefix);
    return parts && !parts->inner.under_rxm ? parts : std::nullopt;
}

std::vector<Inner> candidates(const std::string& wanted, const fi_info* hints) {
    if (wanted == "tcp") return reliable_tcp(hints);
    if (!wanted.empty()) {
        auto inner = Inner::from_label(wanted);
        return inner ? std::vector{*inner} : std::vector<Inner>{};
    }
    std::vector<Inner> all = reliable_tcp(hints);
    if (has_endpoints("verbs", FI_EP_MSG)) all.insert(all.begin(), {"verbs", true});
    return all;
}

Result<provider::InfoOwner> offers(const Inner& inner, const provider::InfoRequest& request) {
    const provider::InfoOwner hints = copy_hints(request.hints);
    if (!hints) return Error{FI_ENOMEM, "no memory for hints"};
    const std::uint64_t wanted_caps = hints->caps;
    strip_caps(*hints, kOurCaps);
    const bool must = (wanted_caps & FI_COLLECTIVE) != 0;
    if (must && (wanted_caps & kNotWithCollectives) != 0)
        return Error{FI_ENODATA, "FI_HMEM is not offered together with FI_COLLECTIVE"};
    const bool bare = must && (wanted_caps & kTransferCaps) == 0;
    if (bare) add_caps(*hints, FI_MSG);
    fi_progress control = FI_PROGRESS_UNSPEC, data = FI_PROGRESS_UNSPEC;
    if (hints->domain_attr != nullptr) {
        control = hints->domain_attr->control_progress;
        data = hints->domain_attr->data_progress;
        // The progress of collectives does not depend on the inner provider's progress.
        if (bare) set_progress(*hints->domain_attr, FI_PROGRESS_UNSPEC, FI_PROGRESS_UNSPEC);
    }
    std::string fabric;
    if (hints->fabric_attr->name != nullptr)
        if (auto name = parse_fabric_name(hints->fabric_attr->name)) fabric = name->fabric;
    name_inner(*hints->fabric_attr, inner, fabric);

    auto found = query(request, hints.get(), request.flags);
    if (!found) return found.error();
    const std::string reported = inner.under_rxm ? provider::kProviderName + std::string(kRxm) : inner.core;
    provider::InfoOwner list = filter(std::move(found).value(), [&](const fi_info& info) {
        const char* name = info.fabric_attr->prov_name;
        return name != nullptr && strcasecmp(name, reported.c_str()) == 0 &&
               (!must || info.ep_attr->type == FI_EP_RDM);
    });
    if (!list)
        return Error{FI_ENODATA,
                     fmt::format("provider {} has no endpoint that fits the hints", inner.label())};
    for (fi_info* info = list.get(); info != nullptr; info = info->next) {
        strip_caps(*info, bare ? kOurCaps | FI_MSG : kOurCaps);
        if (info->ep_attr->type == FI_EP_RDM && (must || wanted_caps == 0)) {
            strip_caps(*info, kNotWithCollectives);
            add_caps(*info, FI_COLLECTIVE);
            set_progress(*info->domain_attr, offered(control), offered(data));
        }
        name_ours(*info->fabric_attr, kOuterPrefix, inner);
    }
    return list;
}

Result<provider::InfoOwner> message_offers(const FabricName& name, const provider::InfoRequest& request) {
    const provider::InfoOwner hints = copy_hints(request.hints);
    if (!hints) return Error{FI_ENOMEM, "no memory for hints"};
    name_inner(*hints->fabric_attr, name.inner, name.fabric);
    auto found = query(request, hints.get(), request.flags | kCoreProvidersOnly);
    if (!found) return found.error();
    provider::InfoOwner list = std::move(found).value();
    for (fi_info* info = list.get(); info != nullptr; info = info->next)
        name_ours(*info->fabric_attr, kMessagePrefix, name.inner);
    return list;
}

provider::InfoOwner to_inner(const fi_info& info) {
    provider::InfoOwner copy(fi_dupinfo(&info));
    if (!copy) return copy;
    strip_caps(*copy, kOurCaps);
    if ((copy->caps & kTransferCaps) == 0) {
        add_caps(*copy, FI_MSG);
        if (copy->domain_attr != nullptr)
            set_progress(*copy->domain_attr, FI_PROGRESS_UNSPEC, FI_PROGRESS_UNSPEC);
    }
    // A connection request carries an info of the inner provider.
    if (copy->fabric_attr == nullptr || copy->fabric_attr->name == nullptr) return copy;
    const auto name = parse_fabric_name(copy->fabric_attr->name);
    if (!name) return copy;
    name_inner(*copy->fabric_attr, name->inner, name->fabric);
    // With FI_THREAD_COMPLETION, tcp of libfabric 2 uses another kind of domain, identified by the address of
    // an operation table. The graft replaces this table.
    fi_domain_attr* const domain = copy->domain_attr;
    if (name->inner.label() == "tcp" && domain != nullptr && domain->threading == FI_THREAD_COMPLETION)
        domain->threading = FI_THREAD_SAFE;
    return copy;
}

provider::InfoOwner for_own_messages(const fi_info& inner_info, bool may_differ) {
    const Inner rxm{"tcp", true};
    const auto name = parse_message_name(inner_info.fabric_attr->name);
    // "net" is faster. ofi_rxm of libfabric 2.0 and later confuses two pointers when closing a connection on
    // which a message of 16 to 128 KiB has arrived in part, as after the sender's death. So the provider's
    // own messages avoid ofi_rxm if "tcp" can replace it.
    const bool alone = has_endpoints("tcp", FI_EP_RDM);
    const Inner better{alone ? "tcp" : "net", false};
    if (!name || inner_info.fabric_attr->prov_name != rxm.provider_name() ||
        !(alone || (may_differ && has_endpoints("net", FI_EP_RDM))))
        return provider::InfoOwner(fi_dupinfo(&inner_info));
    provider::InfoOwner hints(fi_allocinfo());
    const provider::InfoOwner donor(fi_dupinfo(&inner_info));
    if (!hints || !donor) return nullptr;
    hints->caps = FI_MSG;
    hints->mode = inner_info.mode;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = inner_info.domain_attr->mr_mode;
    hints->addr_format = inner_info.addr_format;
    std::swap(hints->src_addr, donor->src_addr);
    std::swap(hints->src_addrlen, donor->src_addrlen);
    std::swap(hints->domain_attr->name, donor->domain_attr->name);
    name_inner(*hints->fabric_attr, better, name->fabric);
    const provider::InfoOwner list = infos_of(better.core, *hints);
    return provider::InfoOwner(fi_dupinfo(list ? list.get() : &inner_info));
}

int open_named_fabric(const fi_fabric_attr& attr, fid_fabric** fabric, void* context) {
    // Allocated by libfabric, so that fabric_attr has the size of this version.
    provider::InfoOwner info(fi_allocinfo());
    if (!info) return -FI_ENOMEM;
    info->fabric_attr->api_version = attr.api_version;
    auto name = parse_message_name(attr.name);
    if (!name) name = parse_fabric_name(attr.name);
    if (!name) return -FI_ENODEV;
    name_inner(*info->fabric_attr, name->inner, name->fabric);
    return fi_fabric(info->fabric_attr, fabric, context);
}

}  // namespace mcastcoll::ofi
