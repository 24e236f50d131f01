#include <fmt/format.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>

#include "probes.h"
#include "provider/provider.h"

namespace mcastcoll::provider {

// libfabric reads settings per provider.
fi_provider& provider() {
    static fi_provider ours = [] {
        fi_provider fresh{};
        fresh.name = kProviderName;
        return fresh;
    }();
    return ours;
}

}  // namespace mcastcoll::provider

namespace mcastcoll::doctor {
namespace {

constexpr unsigned kSeconds = 20;  // time limit of a program that only lists components

// Returns the last word of the first nonempty line: the version in "Open MPI v4.1.4" and in
// "MPICH Version:           4.0.2".
std::string last_field(const std::string& text) {
    const auto begin = text.find_first_not_of(" \n");
    if (begin == std::string::npos) return {};
    std::string line = text.substr(begin, text.find('\n', begin) - begin);
    const auto blank = line.find_last_of(" \t");
    if (blank != std::string::npos) line.erase(0, blank + 1);
    return line.starts_with('v') ? line.substr(1) : line;
}

void look_at_openmpi(Libraries& libraries) {
    const Ran version = run_program({"ompi_info", "--version"}, kSeconds);
    if (version.code != 0) {
        libraries.openmpi = Look<std::string>::failed(version.complaint);
        libraries.component = Look<bool>::failed("Open MPI is not in the PATH");
        return;
    }
    libraries.openmpi = last_field(version.output);
    const Ran listed =
        run_program({"ompi_info", "--param", "coll", "mcastcoll", "--level", "1", "--parsable"}, kSeconds);
    if (listed.code == 0)
        libraries.component = listed.output.find("mca:coll:mcastcoll:") != std::string::npos;
    else
        libraries.component = Look<bool>::failed(listed.complaint);
}

void look_at_mpich(Libraries& libraries) {
    const Ran version = run_program({"mpichversion"}, kSeconds);
    if (version.code != 0) {
        libraries.mpich = Look<std::string>::failed(version.complaint);
        libraries.interposer = Look<bool>::failed("MPICH is not in the PATH");
        return;
    }
    libraries.mpich = last_field(version.output);
    // The loader prints a message about a missing library and continues.
    const Ran loaded = run_program({"true"}, kSeconds, {"LD_PRELOAD=libmcastcoll-pmpi.so"});
    libraries.interposer = loaded.code == 0 && loaded.complaint.empty();
}

}  // namespace

Libraries look_at_libraries() {
    Libraries libraries;
    libraries.mcastcoll = MCC_VERSION;
    const std::uint32_t version = ::fi_version();
    libraries.libfabric = fmt::format("{}.{}", FI_MAJOR(version), FI_MINOR(version));
    look_at_openmpi(libraries);
    look_at_mpich(libraries);
    for (char** at = environ; *at != nullptr; ++at) {
        const std::string_view variable = *at;
        if (variable.starts_with("FI_MCASTCOLL_") || variable.starts_with("FI_PROVIDER"))
            libraries.settings.emplace_back(variable);
    }
    std::sort(libraries.settings.begin(), libraries.settings.end());
    const auto settings = provider::read_settings();
    if (!settings) {
        libraries.settings_error = settings.error().message;
        return libraries;
    }
    libraries.multicast = settings.value().multicast;
    libraries.wants_verbs = settings.value().transport == provider::Carrier::verbs ||
                            settings.value().inner.find("verbs") != std::string::npos;
    return libraries;
}

}  // namespace mcastcoll::doctor
