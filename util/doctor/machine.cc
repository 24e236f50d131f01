#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "probes.h"
#include "topology/discover.h"

namespace mcastcoll::doctor {
namespace {

namespace fs = std::filesystem;

bool has_hypervisor() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("flags") || line.starts_with("Features"))
            return (line + ' ').find(" hypervisor ") != std::string::npos;
    // Other processors lack this flag; firmware of virtual machines has an entry for the hypervisor.
    const auto firmware = first_line("/sys/firmware/devicetree/base/hypervisor/compatible");
    return firmware && !(*firmware).empty();
}

std::string container_sign() {
    std::error_code ignored;
    for (const char* file : {"/.dockerenv", "/run/.containerenv"})
        if (fs::exists(file, ignored)) return file;
    if (const auto name = first_line("/run/systemd/container"); name && !(*name).empty())
        return "/run/systemd/container";
    for (const char* variable : {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"})
        if (std::getenv(variable) != nullptr) return variable;
    return {};
}

std::vector<std::string> governors() {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& cpu : fs::directory_iterator("/sys/devices/system/cpu/cpufreq", ignored)) {
        const auto governor = first_line((cpu.path() / "scaling_governor").string());
        if (governor && std::find(found.begin(), found.end(), *governor) == found.end())
            found.push_back(*governor);
    }
    return found;
}

}  // namespace

Machine look_at_machine() {
    Machine machine;
    utsname system{};
    ::uname(&system);
    machine.name = topology::host_name();
    machine.kernel = system.release;
    if (const auto identity = topology::read_host_identity()) {
        const topology::HostIdentity& found = identity.value();
        machine.boot = found.boot;
        machine.host = topology::host_id(found);
        machine.net_namespace = found.net_namespace;
        machine.pid_namespace = found.pid_namespace;
        machine.user_namespace = found.user_namespace;
        machine.shm = fmt::format("{}:{}", found.shm_device, found.shm_inode);
        machine.user = found.user;
    }
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (::sched_getaffinity(0, sizeof cores, &cores) == 0)
        machine.cores = static_cast<unsigned>(CPU_COUNT(&cores));
    machine.is_virtual = has_hypervisor();
    machine.container = container_sign();
    machine.clock_source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    machine.governors = governors();
    return machine;
}

}  // namespace mcastcoll::doctor
