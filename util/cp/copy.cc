#include "cp/copy.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include "cp/source.h"
#include "cp/stream.h"
#include "cp/unpacker.h"
#include "hostset/encoding.h"
#include "hostset/reader.h"
#include "hostset/writer.h"

namespace mcastcoll::cp {
namespace {

constexpr unsigned kExchange_s = 30;
constexpr unsigned kList_s = 3600;   // to list every source
constexpr unsigned kSurvey_s = 300;  // to survey every file
constexpr unsigned kWrite_s = 600;   // to write the data that is pending when the last chunk has arrived
constexpr std::size_t kBuffers = 16;

// States of a target on a host.
const std::string kNothing = "n", kFolder = "d", kOther = "o", kBad = "b", kNoTarget = "-";

// A closed standard error does not stop the copy.
template <typename... Args>
void say(fmt::format_string<const Args&...> format, const Args&... args) {
    (void)attempt([&] { fmt::print(stderr, format, args...); });
}

// Writes runs of entries: first, end, position. Consecutive complete files are one run, even with folders or
// links between them: the positions of a large tree must fit into one exchange.
void say_positions(hostset::Writer& mine, const Catalogue& catalogue, const std::vector<std::uint64_t>& own) {
    for (std::size_t i = 0, end; i < own.size(); i = end) {
        end = i + 1;
        if (own[i] == 0) continue;
        while (own[i] == kComplete && end < own.size() &&
               (own[end] == kComplete || catalogue[end].kind != Kind::file))
            ++end;
        mine.number(i).number(end).number(own[i]);
    }
}

}  // namespace

Copy::Copy(hostset::HostSet& host_set, const Settings& settings)
    : host_set_(host_set), settings_(settings), pool_(std::make_shared<Pool>(kBuffers)) {
    works_ = !host_set.is_head() || host_set.head_works();
    summary_.hosts = host_set.size() - (host_set.head_works() ? 0 : 1);
    for (std::uint32_t rank = 0; rank < host_set.size(); ++rank)
        if (host_set.is_lost(rank))
            summary_.failed.emplace(host_set.hosts()[rank], host_set.loss_reason(rank));
}

// The sink's thread waits for the end of the queue.
Copy::~Copy() {
    arrived_.close();
}

void Copy::mark_lost(std::uint32_t rank, const std::string& why) {
    if (!host_set_.is_head() || !summary_.failed.emplace(host_set_.hosts()[rank], why).second) return;
    if (progress_ != nullptr) progress_->clear();
    say("{}: {}: {}\n", kProgram, host_set_.hosts()[rank], why);
}

Result<hostset::HostSet::Gathered> Copy::exchange(std::string mine, unsigned wait_s) {
    const std::vector<std::uint32_t> before = host_set_.present();
    auto all = host_set_.exchange(std::move(mine), wait_s);
    if (!all) return all;
    for (const std::uint32_t rank : before)
        if (host_set_.is_lost(rank)) mark_lost(rank, host_set_.loss_reason(rank));
    return all;
}

int Copy::run() {
    const auto done = go();
    arrived_.close();
    // Errors of members have reached the head, unless the head is lost. With a nonzero exit status, a
    // launcher would end the whole job.
    if (!done && done.error().code != ECANCELED) say("{}: {}\n", kProgram, done.error().message);
    if (!host_set_.is_head()) return done || done.error().code == ECANCELED ? 0 : 2;
    if (!done) return 2;
    report();
    return summary_.code();
}

Result<void> Copy::go() {
    for (const auto stage : {&Copy::announce, &Copy::look_at_targets, &Copy::get_ready,
                             &Copy::share_catalogue, &Copy::share_positions, &Copy::copy, &Copy::conclude})
        if (const auto done = (this->*stage)(); !done) return done;
    return {};
}

// The head announces the job; other processes may have been started without arguments.
Result<void> Copy::announce() {
    hostset::Writer job;
    std::string wrong;
    if (host_set_.is_head()) {
        const auto names = names_of(settings_.sources);
        if (!names) wrong = names.error().message;
        for (const std::string& source : settings_.sources) {
            struct stat found {};
            if (wrong.empty() && ::lstat(source.c_str(), &found) != 0)
                wrong = fmt::format("{}: {}", source, std::strerror(errno));
        }
        if (const auto target = target_on(settings_.target, "h"); wrong.empty() && !target)
            wrong = target.error().message;
        const bool many = settings_.sources.size() > 1 || (names && names.value()[0].empty());
        job.text(wrong).text(settings_.target).number(many);
    }
    const auto all = exchange(job.take(), kExchange_s);
    if (!all) return all.error();
    hostset::Reader reader(*all.value()[0]);
    const std::string_view theirs = reader.text();
    if (!theirs.empty()) return Error{host_set_.is_head() ? EINVAL : ECANCELED, std::string(theirs)};
    auto target = target_on(reader.text(), host_set_.hosts()[host_set_.rank()]);
    many_ = reader.number() != 0;
    if (!target || !reader.at_end()) return Error{EBADMSG, "cannot parse the job of the head"};
    target_ = std::move(target).value();
    return {};
}

// Several sources go into the target folder; a single source does if the target is a folder on some host.
Result<void> Copy::look_at_targets() {
    struct stat found {};
    const bool ends_so = target_.ends_with('/');
    while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
    if (!works_)
        target_state_ = kNoTarget;
    else if (::stat(target_.c_str(), &found) == 0)
        target_state_ = S_ISDIR(found.st_mode) ? kFolder : kOther;
    else
        target_state_ = errno == ENOENT ? kNothing : kBad + std::strerror(errno);
    const auto all = exchange(target_state_, kExchange_s);
    if (!all) return all.error();
    bool somewhere = false;
    for (const auto& state : all.value()) somewhere = somewhere || (state && *state == kFolder);
    into_ = ends_so || somewhere;
    if (many_ && !into_)
        return Error{host_set_.is_head() ? EINVAL : ECANCELED,
                     fmt::format("{}: is not a folder on any host; end it with / to create it", target_)};
    return {};
}

// Returns the error on this host, or an empty string.
std::string Copy::prepare() {
    if (works_) {
        std::string wrong;
        if (target_state_.starts_with(kBad)) wrong = target_state_.substr(1);
        if (into_ && target_state_ == kOther) wrong = "is not a folder";
        if (into_ && target_state_ == kNothing && ::mkdir(target_.c_str(), 0777) != 0)
            wrong = std::strerror(errno);
        if (!wrong.empty() && !host_set_.is_head()) return fmt::format("{}: {}", target_, wrong);
        if (!wrong.empty()) {  // the head leads in any case
            works_ = false;
            mark_lost(0, fmt::format("{}: {}", target_, wrong));
        }
    }
    if (host_set_.present().size() == 1) return {};
    // If a host's disk stops for this long, the broadcasts fail, and the host misses the exchange that
    // follows.
    ::setenv("FI_MCASTCOLL_STALL_TIMEOUT", "20", 0);
    auto channel = Channel::open(host_set_.address()->to_string());
    if (!channel) return channel.error().message;
    channel_ = std::move(channel).value();
    return {};
}

Result<void> Copy::get_ready() {
    const std::string wrong = prepare();
    const auto all = exchange(wrong, kExchange_s);
    if (!all) return all.error();
    if (!wrong.empty()) return Error{host_set_.is_head() ? EIO : ECANCELED, wrong};
    for (const std::uint32_t rank : host_set_.present())
        if (const std::string& theirs = *all.value()[rank]; !theirs.empty()) mark_lost(rank, theirs);
    return {};
}

Result<void> Copy::share_catalogue() {
    Queue read;
    // A separate pool: Source opens its pool at the end, and the copy's own pool must stay bounded.
    const auto pool = std::make_shared<Pool>(kBuffers);
    Source source(pool, read);
    if (host_set_.is_head()) {
        const auto names = names_of(settings_.sources);
        catalogue_ = list_sources(settings_.sources, names.value(), into_, summary_.complaints);
        for (const std::string& what : summary_.complaints) say("{}: {}\n", kProgram, what);
        source.start_text(as_bytes_of(catalogue_));
    }
    // The head takes part when it has listed all sources, so the other hosts wait as long as that may take.
    if (const auto listed = exchange("", host_set_.is_head() ? kExchange_s : kList_s); !listed)
        return listed.error();
    std::string text;
    Stream stream(host_set_, channel_.get(), pool,
                  {[&](const Chunk& chunk) {
                       if (host_set_.is_head()) return;
                       Unpacker unpacker(*chunk);
                       for (auto record = unpacker.next(); record && record.value(); record = unpacker.next())
                           text.append(record.value()->bytes);
                   },
                   [this](std::uint32_t rank, const std::string& why) { mark_lost(rank, why); }});
    if (auto done = stream.run(host_set_.is_head() ? &read : nullptr); !done || host_set_.is_head())
        return done;
    auto catalogue = parse_catalogue(text);
    if (!catalogue) return catalogue.error();
    catalogue_ = std::move(catalogue).value();
    return {};
}

Result<void> Copy::share_positions() {
    hostset::Writer mine;
    if (works_) {
        sink_ = std::make_unique<Sink>(target_, catalogue_);
        say_positions(mine, catalogue_, sink_->survey());
    }
    const auto all = exchange(works_ ? "+" + mine.take() : "", kSurvey_s);
    if (!all) return all.error();
    positions_.assign(catalogue_.size(), kComplete);
    for (const auto& one : all.value()) {
        if (!one || one->empty()) continue;
        std::vector<std::uint64_t> theirs(catalogue_.size(), 0);
        hostset::Reader reader(std::string_view(*one).substr(1));
        while (reader.ok() && !reader.at_end()) {
            const std::uint64_t first = reader.number(), end = reader.number(), position = reader.number();
            for (std::uint64_t i = first; i < std::min<std::uint64_t>(end, theirs.size()); ++i)
                theirs[i] = position;
        }
        for (std::size_t i = 0; i < theirs.size(); ++i) positions_[i] = std::min(positions_[i], theirs[i]);
    }
    return {};
}

Result<void> Copy::copy() {
    Queue read;
    Source source(pool_, read);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < catalogue_.size(); ++i) {
        const Entry& entry = catalogue_[i];
        if (entry.kind != Kind::file) continue;
        ++summary_.files;
        summary_.bytes += entry.size;
        if (positions_[i] == kComplete) continue;
        ++summary_.files_sent;
        total += std::min(entry.size - positions_[i], entry.occupied);
    }
    if (host_set_.is_head()) {
        progress_ = std::make_unique<Progress>(kProgram, total, settings_.quiet || settings_.json);
        source.start_files(catalogue_, positions_);
    }
    if (sink_ != nullptr) sink_->start(arrived_);
    Stream stream(host_set_, channel_.get(), pool_,
                  {[&](const Chunk& chunk) {
                       if (sink_ != nullptr) arrived_.put(chunk);
                       if (progress_ != nullptr) progress_->show(source.bytes_read());
                   },
                   [this](std::uint32_t rank, const std::string& why) { mark_lost(rank, why); }});
    auto done = stream.run(host_set_.is_head() ? &read : nullptr);
    arrived_.close();
    summary_.bytes_sent = source.bytes_read();
    if (!done || !host_set_.is_head()) return done;
    for (const std::string& what : source.complaints()) {
        progress_->clear();
        say("{}: {}\n", kProgram, what);
        summary_.complaints.push_back(what);
    }
    return {};
}

Result<void> Copy::conclude() {
    hostset::Writer mine;
    if (sink_ != nullptr) {
        sink_->finish();
        mine.number(sink_->failures()).text(sink_->failure());
    }
    const auto all = exchange(mine.take(), kWrite_s);
    if (!all) return all.error();
    for (const std::uint32_t rank : host_set_.present()) {
        if (all.value()[rank]->empty()) continue;
        hostset::Reader reader(*all.value()[rank]);
        const std::uint64_t failures = reader.number();
        const std::string what(reader.text());
        if (failures == 1) mark_lost(rank, what);
        if (failures > 1) mark_lost(rank, fmt::format("{}, and {} more", what, failures - 1));
    }
    return {};
}

void Copy::report() {
    summary_.seconds = progress_->seconds();
    progress_->clear();
    if (settings_.json) fmt::print("{}", as_json(summary_));
    if (settings_.quiet || settings_.json) return;
    say("{}: {} of {} hosts have {} files, {}; {} of {} files sent, {} in {} s\n", kProgram,
        summary_.hosts - summary_.failed.size(), summary_.hosts, summary_.files,
        bytes_as_text(static_cast<double>(summary_.bytes)), summary_.files_sent, summary_.files,
        bytes_as_text(static_cast<double>(summary_.bytes_sent)), fmt::format("{:.1f}", summary_.seconds));
}

}  // namespace mcastcoll::cp
