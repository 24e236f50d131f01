#include "ports/job_report.h"

#include <atomic>

namespace mcastcoll::ofi {
namespace {

constexpr Nanoseconds kInterval = Nanoseconds::from_ms(200);

// Endpoints of one process have a file each.
unsigned next_part() {
    static std::atomic<unsigned> parts{0};
    return parts++;
}

}  // namespace

void GroupsReport::begin(Nanoseconds now) {
    changed_ = false;
    next_ = now + kInterval;
}

Result<void> GroupsReport::write(const topology::Report& report) {
    if (given_up_) return {};
    if (!file_) {
        auto opened = topology::JobReport::open(next_part());
        if (!opened) {
            given_up_ = true;
            return opened.error();
        }
        file_.emplace(std::move(opened).value());
    }
    auto written = file_->write(report);
    given_up_ = !written;
    return written;
}

}  // namespace mcastcoll::ofi
