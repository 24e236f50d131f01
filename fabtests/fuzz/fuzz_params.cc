// The provider's variables, as a user may set them: any text for any variable.  Variables that name files are
// left out.
#include <cstdlib>
#include <string>

#include "fuzz.h"
#include "provider/provider.h"
#include "provider/settings.h"

using namespace mcastcoll;

// libfabric defines no variables for this provider here.
fi_provider& provider::provider() {
    static fi_provider none{};
    return none;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr const char* kVariables[] = {"INNER=",
                                          "MULTICAST=",
                                          "IFACE=",
                                          "TTL=",
                                          "RCVBUF=",
                                          "JOIN_TIMEOUT=",
                                          "HOST_TIMEOUT=",
                                          "STALL_TIMEOUT=",
                                          "SECURITY=",
                                          "FAULT=",
                                          "STATS=",
                                          "EXPERIMENT=",
                                          "EXPERIMENT=repair=",
                                          "EXPERIMENT=redundancy=",
                                          "EXPERIMENT=channels=",
                                          "EXPERIMENT=root_sync=",
                                          "EXPERIMENT=window=",
                                          "EXPERIMENT=address_scheme=",
                                          "EXPERIMENT=memberships=",
                                          "EXPERIMENT=ip=",
                                          "EXPERIMENT=port=",
                                          "EXPERIMENT=receives=",
                                          "EXPERIMENT=sndbuf=",
                                          "EXPERIMENT=linger=",
                                          "EXPERIMENT=peer_timeout=",
                                          "REPAIR="};  // a former name
    if (size == 0) return 0;
    const std::string given = std::string("FI_MCASTCOLL_") + kVariables[data[0] % std::size(kVariables)];
    const std::string name = given.substr(0, given.find('='));
    // putenv() uses this string, because setenv() would keep each value for good.
    static std::string variable;
    variable = given + std::string(reinterpret_cast<const char*>(data + 1), size - 1);
    ::putenv(variable.data());
    if (const auto settings = provider::read_settings()) {
        const provider::Settings& read = settings.value();
        fuzz::check(read.group.channels >= 1 && read.group.channels <= group::kMaxChannels, "channels");
        fuzz::check(read.group.root_delay_us <= group::kMaxRootDelayUs, "a root's delay");
        fuzz::check(read.receives >= 1 && read.memberships >= 1, "as many as there have to be");
        fuzz::check(read.join_timeout_ms >= 1 && read.peer_timeout_ms >= 1 && read.host_timeout_ms >= 1 &&
                        read.stall_timeout_s >= 0,
                    "times");
    } else {
        fuzz::check(!settings.error().message.empty(), "an error states the reason");
    }
    ::unsetenv(name.c_str());
    return 0;
}
