#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/system.h"
#include "topology/discover.h"

namespace mcastcoll::topo {
namespace {

using nlohmann::json;
using topology::Place;
using topology::ReportedGroup;
using topology::ReportedLevel;

constexpr std::size_t kMaxReportBytes = 256UL << 20;

std::optional<std::vector<std::byte>> unhex(const std::string& text) {
    std::vector<std::byte> bytes;
    if (text.size() % 2 != 0) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        unsigned value = 0;
        const char* from = text.data() + i;
        const auto [end, error] = std::from_chars(from, from + 2, value, 16);
        if (error != std::errc() || end != from + 2) return std::nullopt;
        bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
}

// JSON numbers may have any size, and fractions.
template <typename Number>
Number number_from(const json& value) {
    const auto* const number = value.get_ptr<const json::number_unsigned_t*>();
    if (number == nullptr || *number > std::numeric_limits<Number>::max())
        throw std::runtime_error("an invalid number");
    return static_cast<Number>(*number);
}

topology::Counts counts_from(const json& object) {
    topology::Counts counts;
    for (const auto& [name, value] : object.items())
        counts.emplace_back(name, number_from<std::uint64_t>(value));
    return counts;
}

ReportedLevel level_from(const json& object) {
    ReportedLevel level;
    const auto named = topology::level_named(object.at("level").get<std::string>());
    if (!named) throw std::runtime_error("an unknown level");
    level.level = *named;
    level.connects = object.at("connects").get<bool>();
    level.transport = object.at("transport").get<std::string>();
    level.algorithm = object.at("algorithm").get<std::string>();
    level.why = object.at("why").get<std::string>();
    return level;
}

ReportedGroup group_from(const json& object) {
    ReportedGroup group;
    const auto key = object.at("key").get<std::string>();
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), group.key, 16);
    if (error != std::errc() || end != key.data() + key.size()) throw std::runtime_error("an invalid key");
    group.rank = static_cast<Rank>(number_from<std::uint32_t>(object.at("rank")));
    group.members = number_from<std::uint32_t>(object.at("members"));
    group.state = object.at("state").get<std::string>();
    if (const json& awaited = object.at("awaited"); !awaited.is_null())
        group.awaited = rank_of(number_from<std::uint32_t>(awaited));
    group.counters = counts_from(object.at("counters"));
    const auto policy_bytes = unhex(object.at("policy").get<std::string>());
    const auto policy = policy_bytes ? topology::decode_policy(*policy_bytes) : std::nullopt;
    if (!policy) throw std::runtime_error("an invalid policy");
    group.policy = *policy;
    for (const json& level : object.at("levels")) group.levels.push_back(level_from(level));
    for (const json& text : object.at("places")) {
        const auto bytes = unhex(text.get<std::string>());
        const auto place = bytes ? topology::decode_place(*bytes) : std::nullopt;
        if (!place) throw std::runtime_error("an invalid place");
        group.places.push_back(*place);
    }
    if (index_of(group.rank) >= group.members) throw std::runtime_error("a rank beyond its group");
    if (!group.places.empty() && group.places.size() != group.members)
        throw std::runtime_error("places of other members than the group's");
    return group;
}

Result<ReportFile> read_report(int folder, const std::string& name) {
    const FileDescriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    auto text = topology::read_text(file, name, kMaxReportBytes);
    if (!text && text.error().code == EFBIG) return Error{EFBIG, "too long"};
    if (!text) return text.error();
    struct stat found = {};
    if (::fstat(file.get(), &found) != 0) return system_error(errno, name);
    const auto nanoseconds = static_cast<double>(found.st_mtim.tv_nsec);
    return ReportFile{name, std::move(text).value(),
                      static_cast<double>(found.st_mtim.tv_sec) + nanoseconds / 1e9};
}

}  // namespace

Result<LoadedReport> parse_report(const std::string& text) {
    try {
        const json object = json::parse(text);
        if (number_from<std::uint32_t>(object.at("version")) != 3)
            return Error{EINVAL, "its version is unknown"};
        LoadedReport loaded;
        loaded.pid = number_from<std::uint64_t>(object.at("pid"));
        loaded.host = object.at("host").get<std::string>();
        loaded.program = object.at("program").get<std::string>();
        for (const json& group : object.at("groups")) loaded.report.groups.push_back(group_from(group));
        loaded.report.counters = counts_from(object.at("counters"));
        return loaded;
    } catch (const std::exception& error) {
        return Error{EINVAL, error.what()};
    }
}

ReadReports read_reports(const std::vector<std::string>& folders) {
    ReadReports read;
    for (const std::string& folder : folders) {
        auto opened = topology::open_report_folder(folder, false);
        if (!opened) {
            if (opened.error().code != ENOENT) read.complaints.push_back(opened.error().message);
            continue;
        }
        for (const std::string& name : topology::list_reports(opened.value())) {
            auto file = read_report(opened.value().get(), name);
            if (!file && file.error().code == ENOENT) continue;  // removed after the listing
            const std::string path = fmt::format("{}/{}", folder, name);
            if (!file) {
                read.complaints.push_back(fmt::format("{}: {}", path, file.error().message));
                continue;
            }
            file.value().path = path;
            read.files.push_back(std::move(file).value());
        }
    }
    return read;
}

LoadedReports parse_reports(const ReadReports& read) {
    LoadedReports loaded{{}, read.complaints};
    for (const ReportFile& file : read.files) {
        auto parsed = parse_report(file.text);
        if (!parsed) {
            loaded.complaints.push_back(fmt::format("{}: {}", file.path, parsed.error().message));
            continue;
        }
        loaded.reports.push_back(std::move(parsed).value());
        loaded.reports.back().path = file.path;
        loaded.reports.back().written = file.written;
    }
    std::stable_sort(loaded.reports.begin(), loaded.reports.end(),
                     [](const LoadedReport& a, const LoadedReport& b) { return a.pid < b.pid; });
    return loaded;
}

LoadedReports load_reports(const std::vector<std::string>& folders) {
    return parse_reports(read_reports(folders));
}

std::vector<JobGroup> groups_of(const LoadedReports& loaded) {
    std::vector<JobGroup> groups;
    for (const LoadedReport& one : loaded.reports) {
        for (const ReportedGroup& group : one.report.groups) {
            auto found = std::find_if(groups.begin(), groups.end(), [&group](const JobGroup& known) {
                return known.group.key == group.key && known.group.members == group.members;
            });
            if (found == groups.end()) found = groups.insert(groups.end(), JobGroup{group, one.program, {}});
            const auto trust = [](const ReportedGroup& word) {
                return std::pair(word.places.empty(), word.rank);
            };
            if (trust(group) < trust(found->group)) {
                found->group = group;
                found->program = one.program;
            }
            found->reporting.push_back(group.rank);
        }
    }
    std::erase_if(groups, [](const JobGroup& job) { return job.group.places.empty(); });
    for (JobGroup& job : groups) std::sort(job.reporting.begin(), job.reporting.end());
    return groups;
}

void keep_only(std::uint64_t pid, LoadedReports& loaded, std::vector<JobGroup>& groups) {
    std::erase_if(loaded.reports, [&](const LoadedReport& one) { return one.pid != pid; });
    for (JobGroup& job : groups) {
        job.reporting.clear();
        for (const LoadedReport& one : loaded.reports)
            for (const ReportedGroup& group : one.report.groups)
                if (group.key == job.group.key) job.reporting.push_back(group.rank);
    }
    std::erase_if(groups, [](const JobGroup& job) { return job.reporting.empty(); });
}

}  // namespace mcastcoll::topo
