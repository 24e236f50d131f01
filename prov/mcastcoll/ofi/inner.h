// The inner provider: its choice, and the translation of requests and answers between it and the application.
//
// Fabric names contain the inner provider, because fi_fabric() receives nothing else: "mcastcoll:shm:shm" is
// the fabric "shm" of the provider shm. ofi_rxm cannot find a hidden core provider by itself: ofi_rxm calls
// fi_getinfo() again wherever an object is opened, and FI_PROVIDER=mcastcoll hides all other providers. So
// "tcp;ofi_rxm" is in fact ofi_rxm layered over mcastcoll: mcastcoll answers ofi_rxm's requests for message
// endpoints with tcp's infos, under the name "mcastcoll-msg:tcp:FABRIC", and opens tcp's own fabric. Only
// requests with such a name are answered, so that utility providers do not layer over mcastcoll by accident.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "provider/info_owner.h"

namespace mcastcoll::ofi {

// libfabric's internal flag for fi_getinfo(). The value is the same since 1.15, but is in no public header.
constexpr std::uint64_t kCoreProvidersOnly = std::uint64_t{1} << 59;

struct Inner {
    std::string core;
    bool under_rxm = false;

    // The user's name for the inner provider: "shm", "tcp;ofi_rxm".
    std::string label() const;
    static std::optional<Inner> from_label(std::string_view label);
    // The name in hints and in fi_fabric(). The excluded core name is for ofi_rxm, which looks for that name
    // to choose its settings.
    std::string provider_name() const;
};

struct FabricName {
    Inner inner;
    std::string fabric;
};
// Splits a fabric name of mcastcoll into the inner provider and its fabric's name.
std::optional<FabricName> parse_fabric_name(std::string_view name);
// Parses the fabric name in ofi_rxm's requests for message endpoints.
std::optional<FabricName> parse_message_name(std::string_view name);

// Inner providers in order of preference for these hints (may be null). Empty if the user names an invalid
// provider.
std::vector<Inner> candidates(const std::string& wanted, const fi_info* hints);
// The inner provider's offers for a request, in the form for the application.
Result<provider::InfoOwner> offers(const Inner& inner, const provider::InfoRequest& request);
// The core provider's offers, in the form for ofi_rxm.
Result<provider::InfoOwner> message_offers(const FabricName& name, const provider::InfoRequest& request);

// Converts an info back to the inner provider's form, for opening an object.
provider::InfoOwner to_inner(const fi_info& info);
// The info of the private endpoint for the provider's own reliable messages, at the address of the
// application's endpoint. If the application's endpoint is ofi_rxm over tcp, the private endpoint is of "tcp"
// if possible, or of "net" if may_differ is set, that is, if the user did not request ofi_rxm. Null only when
// out of memory.
provider::InfoOwner for_own_messages(const fi_info& inner_info, bool may_differ);
// Opens the fabric behind a name of mcastcoll.
int open_named_fabric(const fi_fabric_attr& attr, fid_fabric** fabric, void* context);

}  // namespace mcastcoll::ofi
