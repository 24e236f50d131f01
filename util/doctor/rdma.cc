#include <algorithm>
#include <filesystem>

#include "base/system.h"
#include "probes.h"
#include "transport/verbs_address.h"
#include "transport/verbs_transport.h"

namespace mcastcoll::doctor {

Rdma look_at_rdma(const provider::Settings& settings, const std::optional<ports::MulticastChoice>& choice) {
    Rdma rdma;
    std::error_code ignored;
    for (const auto& device : std::filesystem::directory_iterator(transport::kRdmaDevices, ignored))
        rdma.devices.push_back(device.path().filename().string());
    std::sort(rdma.devices.begin(), rdma.devices.end());
    const auto failed = Look<std::string>::failed;
    if (const std::string why = transport::why_no_rdma(); !why.empty()) {
        rdma.group = failed(why);
    } else if (!choice) {
        rdma.group = failed("there is no interface for multicast");
    } else {
        transport::VerbsOptions options{ports::multicast_options(settings, *choice)};
        options.receives = settings.receives;
        std::array<std::byte, transport::kGroupRandomBytes> random{};
        const auto opened =
            kernel_random(random) ? transport::open_verbs(options) : Error{EAGAIN, "no random bytes"};
        if (!opened) return rdma.group = failed(opened.error().message), rdma;
        transport::VerbsTransport& verbs = *opened.value();
        auto joined = verbs.join(ports::random_group(settings, choice->family, 0, random).with_port(0));
        if (!joined && !verbs.sends_anywhere()) joined = verbs.join_any();
        rdma.group = joined ? Look<std::string>(verbs.device()) : failed(joined.error().message);
    }
    return rdma;
}

}  // namespace mcastcoll::doctor
