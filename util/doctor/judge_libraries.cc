#include <fmt/format.h>

#include <algorithm>

#include "judging.h"

namespace mcastcoll::doctor {
namespace {

std::string setting_of(const Host& host, std::string_view name) {
    for (const std::string& setting : host.libraries.settings)
        if (setting.starts_with(name) && setting.size() > name.size() && setting[name.size()] == '=')
            return setting.substr(name.size() + 1);
    return {};
}

Finding no_provider(const Host& host) {
    const std::string only = setting_of(host, "FI_PROVIDER");
    const std::string path = setting_of(host, "FI_PROVIDER_PATH");
    const bool kept_out = !only.empty() && only.find("mcastcoll") == std::string::npos;
    const std::string cause =
        kept_out ? fmt::format("FI_PROVIDER={} is set, so libfabric ignores all other providers.", only)
                 : fmt::format("libfabric {} reports: {}. It searches for libmcastcoll-fi.so in {}.",
                               host.libraries.libfabric, host.libraries.provider.why_not,
                               path.empty() ? "its own folder of providers" : path);
    return {"provider-missing",
            Severity::broken,
            "libfabric does not find a working provider mcastcoll.",
            cause,
            "No program will use mcastcoll: collectives run without it.",
            kept_out ? "unset FI_PROVIDER"
                     : "Install the package libfabric-mcastcoll, or in a build that is not installed: "
                       ". build/env",
            {}};
}

void find_differences(Judging& judging, const char* what,
                      const std::function<std::string(const Host&)>& version) {
    std::vector<std::string> versions;
    for (const unsigned i : judging.present()) {
        const std::string one = version(judging.host(i));
        if (!one.empty() && std::find(versions.begin(), versions.end(), one) == versions.end())
            versions.push_back(one);
    }
    if (versions.size() < 2) return;
    judging.find({"versions-differ",
                  Severity::limits,
                  fmt::format("Hosts have different versions of {}: {}.", what, fmt::join(versions, ", ")),
                  "They were not installed or updated together.",
                  "Processes with different versions may refuse each other; then no group forms.",
                  "Install the same packages on all hosts.",
                  {}});
}

void judge_provider(Judging& judging) {
    judging.find_where([](const Host& host) { return !host.libraries.settings_error.empty(); },
                       [](const Host& host) {
                           return Finding{"settings-wrong",
                                          Severity::broken,
                                          "A setting is invalid.",
                                          host.libraries.settings_error + ".",
                                          "libfabric does not offer mcastcoll to any program.",
                                          "Correct or unset it; `man fi_mcastcoll` describes all settings.",
                                          {}};
                       });
    judging.find_where(
        [](const Host& host) { return !host.libraries.provider && host.libraries.settings_error.empty(); },
        no_provider);
    judging.find_where([](const Host& host) { return !host.libraries.multicast; },
                       [](const Host&) {
                           return Finding{"multicast-off",
                                          Severity::limits,
                                          "Multicast is switched off.",
                                          "FI_MCASTCOLL_MULTICAST=off is set.",
                                          "Collectives between hosts use point-to-point messages.",
                                          "unset FI_MCASTCOLL_MULTICAST",
                                          {}};
                       });
}

void judge_mpi(Judging& judging) {
    judging.find_where(
        [](const Host& host) {
            return host.libraries.openmpi && host.libraries.component && !*host.libraries.component;
        },
        [](const Host& host) {
            return Finding{
                "component-missing",
                Severity::limits,
                fmt::format("Open MPI {} does not find the component mcastcoll.", *host.libraries.openmpi),
                "ompi_info lists no component coll/mcastcoll: it is not in Open MPI's folder, or was built "
                "for another release of Open MPI.",
                "Collectives of Open MPI programs run without mcastcoll.",
                "Install the package openmpi-mcastcoll, or in a build that is not installed: "
                ". build/env",
                {}};
        });
    judging.find_where(
        [](const Host& host) {
            return host.libraries.mpich && host.libraries.interposer && !*host.libraries.interposer;
        },
        [](const Host& host) {
            return Finding{
                "interposer-missing",
                Severity::note,
                fmt::format(
                    "MPICH {} is installed, but the loader does not find libmcastcoll-pmpi.so by its name.",
                    *host.libraries.mpich),
                "It is not installed in a folder that the loader searches.",
                "MPICH programs need the full path of the library in LD_PRELOAD to use mcastcoll.",
                "Install the package libmcastcoll-pmpi, or in a build that is not installed: "
                ". build/env",
                {}};
        });
}

void report_correct(Judging& judging) {
    if (judging.present().empty()) return;
    const Libraries& first = judging.host(judging.present().front()).libraries;
    if (!judging.found("provider-missing") && !judging.found("settings-wrong"))
        judging.fine(fmt::format("libfabric {} loads mcastcoll {} ({}), over {}", first.libfabric,
                                 first.mcastcoll, first.provider.seen.value_or(""), first.inner));
    if (first.openmpi && first.component && *first.component && !judging.found("component-missing"))
        judging.fine(fmt::format("Open MPI {} has its component coll/mcastcoll", *first.openmpi));
    if (first.mpich && first.interposer && *first.interposer && !judging.found("interposer-missing"))
        judging.fine(fmt::format("MPICH {}: libmcastcoll-pmpi.so is found", *first.mpich));
    if (!first.openmpi)
        judging.unseen("Open MPI", first.openmpi.why_not);
    else if (!first.component)
        judging.unseen("Open MPI's component", first.component.why_not);
}

}  // namespace

void judge_libraries(Judging& judging) {
    judge_provider(judging);
    judge_mpi(judging);
    find_differences(judging, "mcastcoll", [](const Host& host) { return host.libraries.mcastcoll; });
    find_differences(judging, "libfabric", [](const Host& host) { return host.libraries.libfabric; });
    find_differences(judging, "Open MPI",
                     [](const Host& host) { return host.libraries.openmpi.seen.value_or(""); });
    report_correct(judging);
}

}  // namespace mcastcoll::doctor
