#include "look.h"

#include <fmt/format.h>

#include <algorithm>

#include "hostset/encoding.h"

namespace mcastcoll::topo {
namespace {

// Requests of the head, sent before each exchange of reports.
const std::string kNews = "news", kReports = "reports", kOver = "over";
constexpr unsigned kAnswer_s = 10;
// Between two requests of the head; a user may look once an hour.
constexpr unsigned kPatience_s = 4000;

std::string as_bytes_of(const ReadReports& read) {
    hostset::Writer writer;
    writer.number(read.files.size());
    for (const ReportFile& file : read.files)
        writer.text(file.path).number(static_cast<std::uint64_t>(file.written * 1e6)).text(file.text);
    writer.number(read.complaints.size());
    for (const std::string& complaint : read.complaints) writer.text(complaint);
    return writer.take();
}

// The host is part of the path, since files on different hosts may have the same name.
void add_from(const std::string& host, std::string_view bytes, ReadReports& all) {
    hostset::Reader reader(bytes);
    for (std::uint64_t left = reader.number(); left > 0 && reader.ok(); --left) {
        std::string path = fmt::format("{}: {}", host, reader.text());
        const double written = static_cast<double>(reader.number()) / 1e6;
        all.files.push_back({std::move(path), std::string(reader.text()), written});
    }
    for (std::uint64_t left = reader.number(); left > 0 && reader.ok(); --left)
        all.complaints.push_back(fmt::format("{}: {}", host, reader.text()));
    if (!reader.ok()) all.complaints.push_back(fmt::format("{}: cannot parse its answer", host));
}

void ask_here(const std::vector<std::string>& folders) {
    for (const std::string& folder : folders)
        if (const auto opened = topology::open_report_folder(folder, false))
            topology::ask_for_news(opened.value());
}

}  // namespace

Look::Look(std::vector<std::string> folders, std::unique_ptr<hostset::HostSet> host_set)
    : folders_(std::move(folders)), host_set_(std::move(host_set)) {}

Look::~Look() {
    if (host_set_ != nullptr && host_set_->is_head()) (void)tell(kOver);
}

Result<void> Look::tell(const std::string& word) {
    if (host_set_ == nullptr) return {};
    const auto told = host_set_->exchange(word, kAnswer_s);
    return told ? Result<void>() : told.error();
}

Result<void> Look::ask_for_news() {
    if (host_set_ == nullptr || host_set_->head_works()) ask_here(folders_);
    return tell(kNews);
}

Result<LoadedReports> Look::take() {
    if (host_set_ == nullptr) return load_reports(folders_);
    if (const auto told = tell(kReports); !told) return told.error();
    const auto gathered =
        host_set_->exchange(host_set_->head_works() ? as_bytes_of(read_reports(folders_)) : "", kAnswer_s);
    if (!gathered) return gathered.error();
    ReadReports all;
    for (std::uint32_t rank = 0; rank < host_set_->size(); ++rank) {
        const std::string& host = host_set_->hosts()[rank];
        if (const auto& bytes = gathered.value()[rank]) {
            if (rank != 0 || host_set_->head_works()) add_from(host, *bytes, all);
        } else if (std::ranges::find(lost_, rank) == lost_.end()) {
            lost_.push_back(rank);
            all.complaints.push_back(fmt::format("{}: {}", host, host_set_->loss_reason(rank)));
        }
    }
    return parse_reports(all);
}

Result<void> Look::serve() {
    for (;;) {
        const auto told = host_set_->exchange("", kPatience_s);
        if (!told) return told.error();
        const std::string word = told.value()[0].value_or(kOver);
        if (word == kOver) return {};
        if (word == kNews) ask_here(folders_);
        if (word != kReports) continue;
        const auto given = host_set_->exchange(as_bytes_of(read_reports(folders_)), kAnswer_s);
        if (!given) return given.error();
    }
}

}  // namespace mcastcoll::topo
