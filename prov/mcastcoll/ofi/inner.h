// The provider underneath: which one, and how requests and answers are translated between it and the
// application.
//
// Fabric names carry the inner provider, because fi_fabric() is told nothing else: "mcastcoll:shm:shm" is the
// fabric "shm" of the provider shm. ofi_rxm cannot find a hidden core provider by itself (it calls
// fi_getinfo() again wherever an object is opened, and FI_PROVIDER=mcastcoll hides everybody else), so
// "tcp;ofi_rxm" is really ofi_rxm over us: we answer its requests for message endpoints with tcp's, under the
// name "mcastcoll-msg:tcp:FABRIC", and hand it tcp's own fabric. Only requests with such a name are answered,
// so that nobody layers over us uninvited.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "provider/owners.h"

namespace mcastcoll::ofi {

// A flag of libfabric's own for fi_getinfo(); the same number since 1.15, but in no public header.
constexpr std::uint64_t kCoreProvidersOnly = std::uint64_t{1} << 59;

struct Inner {
    std::string core;
    bool under_rxm = false;

    // The user's word for it: "shm", "tcp;ofi_rxm".
    std::string label() const;
    static std::optional<Inner> from_label(std::string_view label);
    // As hints and fi_fabric() want it. The excluded core name is for ofi_rxm, which looks for it to choose
    // settings.
    std::string provider_name() const;
};

// The inner provider and its fabric's name, from one of our fabric names.
struct FabricName {
    Inner inner;
    std::string fabric;
};
std::optional<FabricName> parse_fabric_name(std::string_view name);
// The same from the name of a request by ofi_rxm for message endpoints.
std::optional<FabricName> parse_message_name(std::string_view name);

// In the order of preference, for an application with these hints or none. Empty when the user names a
// provider that there is not.
std::vector<Inner> candidates(const std::string& wanted, const fi_info* hints);
// What the inner provider offers for a request, as the application shall see it.
Result<InfoOwner> offers(const Inner& inner, const InfoRequest& request);
// What ofi_rxm gets of the core provider underneath it.
Result<InfoOwner> message_offers(const FabricName& name, const InfoRequest& request);

// An info as the inner provider wants it back when an object is opened.
InfoOwner to_inner(const fi_info& info);
// For reliable messages of our own beside such an endpoint, at its address: of "tcp" or "net" where the
// application's is ofi_rxm over tcp. "net" only if they may differ: nobody has asked for ofi_rxm, which is
// there for tags. Never null, but for want of memory.
InfoOwner for_own_messages(const fi_info& inner_info, bool may_differ);
// The fabric a name of ours stands for.
int open_named_fabric(const fi_fabric_attr& attr, fid_fabric** fabric, void* context);

}  // namespace mcastcoll::ofi
