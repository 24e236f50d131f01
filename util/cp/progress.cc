#include "cp/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/result.h"

namespace mcastcoll::cp {
namespace {

constexpr std::int64_t kMoves_ms = 200, kLine_ms = 5000;

}  // namespace

std::string bytes_as_text(double bytes) {
    constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
    return unit == 0 ? fmt::format("{:.0f} bytes", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string time_as_text(double seconds) {
    const auto whole = static_cast<long>(seconds + 0.5);
    const long hours = whole / 3600, minutes = whole / 60 % 60;
    if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
    return fmt::format("{}:{:02}", minutes, whole % 60);
}

Progress::Progress(std::string program, std::uint64_t total, bool quiet)
    : program_(std::move(program)),
      total_(total),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begun_(monotonic_now()),
      next_(begun_ + Nanoseconds::from_ms(terminal_ ? kMoves_ms : kLine_ms)) {}

double Progress::seconds() const {
    return static_cast<double>((monotonic_now() - begun_).value) / 1e9;
}

void Progress::show(std::uint64_t done) {
    const Nanoseconds now = monotonic_now();
    if (quiet_ || now < next_) return;
    next_ = now + Nanoseconds::from_ms(terminal_ ? kMoves_ms : kLine_ms);
    const double rate = static_cast<double>(done) / seconds();
    const std::string left =
        done > 0 && done < total_ ? time_as_text(static_cast<double>(total_ - done) / rate) : "0:00";
    // Standard error may be closed.
    (void)attempt([&] {
        fmt::print(stderr, "{}{}: {} of {}, {}/s, {} left{}", terminal_ ? "\r" : "", program_,
                   bytes_as_text(static_cast<double>(done)), bytes_as_text(static_cast<double>(total_)),
                   bytes_as_text(rate), left, terminal_ ? "\x1b[K" : "\n");
    });
    shown_ = terminal_;
    std::fflush(stderr);
}

void Progress::clear() {
    if (shown_) (void)attempt([] { fmt::print(stderr, "\r\x1b[K"); });
    shown_ = false;
}

}  // namespace mcastcoll::cp
