// The entry point. libfabric calls fi_prov_ini() once, under a lock, so the function only registers the
// provider. Queries and fabrics follow later.
#include "provider/provider.h"

#include <rdma/fi_errno.h>

#include "datagram/entry.h"
#include "datagram/info.h"
#include "ofi/fabric.h"
#include "ofi/info_order.h"
#include "ofi/inner.h"
#include "provider/guard.h"
#include "provider/log.h"
#include "provider/settings.h"

namespace mcastcoll::ofi {
namespace {

int answer(Result<provider::InfoOwner> found, fi_info** info) {
    if (!found) return -found.error().code;
    *info = std::move(found).value().release();
    return 0;
}

Result<provider::InfoOwner> ordered(Result<provider::InfoOwner> found, const provider::InfoRequest& request,
                                    const provider::Settings& settings) {
    if (!found) return found;
    return order_infos(std::move(found).value(), request, settings.iface);
}

int query(const provider::InfoRequest& request, fi_info** info) {
    const fi_fabric_attr* fabric = request.hints != nullptr ? request.hints->fabric_attr : nullptr;
    const char* name = fabric != nullptr ? fabric->name : nullptr;
    if ((request.flags & kCoreProvidersOnly) != 0) {
        const auto message = name != nullptr ? parse_message_name(name) : std::nullopt;
        return message ? answer(message_offers(*message, request), info) : -FI_ENODATA;
    }
    auto settings = provider::read_settings();
    if (!settings) {
        provider::write_log(provider::Level::warn, settings.error().message);
        return -FI_EINVAL;
    }
    if (request.hints != nullptr && (request.hints->caps & FI_MULTICAST) != 0) {
        auto found = datagram::offers(request);
        if (!found)
            provider::log_line(provider::Level::info, "fi_getinfo: no endpoints for FI_MULTICAST: {}",
                               found.error().message);
        return answer(std::move(found), info);
    }
    if (name != nullptr) {
        const auto ours = parse_fabric_name(name);
        return ours ? answer(ordered(offers(ours->inner, request), request, settings.value()), info)
                    : -FI_ENODATA;
    }
    const std::vector<Inner> inners = candidates(settings.value().inner, request.hints);
    if (inners.empty())
        provider::log_line(
            provider::Level::warn,
            "FI_MCASTCOLL_INNER={} is not the name of a provider: fi_getinfo offers no endpoints",
            settings.value().inner);
    for (const Inner& inner : inners) {
        auto found = offers(inner, request);
        if (found) {
            provider::log_line(provider::Level::debug, "fi_getinfo: uses inner provider {}", inner.label());
            return answer(ordered(std::move(found), request, settings.value()), info);
        }
        // A user who names a provider must learn that it cannot be used.
        const bool named = !settings.value().inner.empty();
        provider::log_line(named ? provider::Level::warn : provider::Level::info,
                           "fi_getinfo: inner provider {} is not used: {}", inner.label(),
                           found.error().message);
    }
    return -FI_ENODATA;
}

int getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
            const fi_info* hints, fi_info** info) noexcept {
    return provider::guard([&] { return query({version, node, service, flags, hints}, info); });
}

int open_fabric(fi_fabric_attr* attr, fid_fabric** fabric, void* context) noexcept {
    return provider::guard([&] {
        if (attr == nullptr || attr->name == nullptr || fabric == nullptr) return -FI_EINVAL;
        if (attr->name == datagram::kFabricName) return datagram::open_fabric(*attr, fabric, context);
        if (const int rc = open_named_fabric(*attr, fabric, context); rc != 0) return rc;
        // ofi_rxm gets the core provider's own fabric.
        if (parse_message_name(attr->name)) return 0;
        Fabric::graft(**fabric);
        return 0;
    });
}

}  // namespace

}  // namespace mcastcoll::ofi

fi_provider& mcastcoll::provider::provider() {
    static fi_provider instance = [] {
        fi_provider made{};
        made.version = FI_VERSION(0, 9);
        made.fi_version = fi_version();
        made.name = kProviderName;
        made.getinfo = ofi::getinfo;
        made.fabric = ofi::open_fabric;
        // Nothing to do: the inner provider may be unloaded already.
        made.cleanup = [] {};
        return made;
    }();
    return instance;
}

extern "C" FI_EXT_INI {
    mcastcoll::provider::define_params();
    return &mcastcoll::provider::provider();
}
