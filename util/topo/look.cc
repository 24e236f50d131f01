#include "look.h"

#include <fmt/format.h>

#include <algorithm>

#include "hostset/reader.h"
#include "hostset/writer.h"

namespace mcastcoll::topo {
namespace {

// Requests of the head, sent before each exchange of reports.
const std::string kRefresh = "news", kReports = "reports", kOver = "over";
constexpr unsigned kAnswer_s = 10;
// The longest time between two requests of the head; a user may look once an hour.
constexpr unsigned kRequestTimeout_s = 4000;

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

void request_here(const std::vector<std::string>& folders) {
    for (const std::string& folder : folders)
        if (const auto opened = topology::open_report_folder(folder, false))
            topology::request_report(opened.value());
}

}  // namespace

Look::Look(std::vector<std::string> folders, std::unique_ptr<hostset::HostSet> host_set)
    : folders_(std::move(folders)), host_set_(std::move(host_set)) {}

Look::~Look() {
    if (host_set_ != nullptr && host_set_->is_head()) (void)send_request(kOver);
}

Result<void> Look::send_request(const std::string& request) {
    if (host_set_ == nullptr) return {};
    const auto exchanged = host_set_->exchange(request, kAnswer_s);
    return exchanged ? Result<void>() : exchanged.error();
}

Result<void> Look::request_reports() {
    if (host_set_ == nullptr || host_set_->head_works()) request_here(folders_);
    return send_request(kRefresh);
}

Result<LoadedReports> Look::take() {
    if (host_set_ == nullptr) return load_reports(folders_);
    if (const auto sent = send_request(kReports); !sent) return sent.error();
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
        const auto received = host_set_->exchange("", kRequestTimeout_s);
        if (!received) return received.error();
        const std::string request = received.value()[0].value_or(kOver);
        if (request == kOver) return {};
        if (request == kRefresh) request_here(folders_);
        if (request != kReports) continue;
        const auto given = host_set_->exchange(as_bytes_of(read_reports(folders_)), kAnswer_s);
        if (!given) return given.error();
    }
}

}  // namespace mcastcoll::topo
