#include "support/statistics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/failure.h"

namespace mcastcoll::fabtest {

namespace fs = std::filesystem;

std::string statistics_prefix(const std::string& program) {
    return fmt::format("{}/{}-{}", fs::temp_directory_path().string(), program, getpid());
}

std::map<std::string, std::uint64_t> take_statistics(const std::string& prefix) {
    std::map<std::string, std::uint64_t> sum;
    for (const auto& entry : fs::directory_iterator(fs::path(prefix).parent_path())) {
        if (!entry.path().string().starts_with(prefix + ".")) continue;
        std::ifstream file(entry.path());
        const auto report = nlohmann::json::parse(file, nullptr, false);
        if (report.is_discarded()) fail("{} is no JSON", entry.path().string());
        for (const auto& [name, value] : report.items())
            if (value.is_number_unsigned()) sum[name] += value.get<std::uint64_t>();
        fs::remove(entry.path());
    }
    return sum;
}

}  // namespace mcastcoll::fabtest
