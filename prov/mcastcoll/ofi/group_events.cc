#include "ofi/group_events.h"

#include "provider/log.h"

namespace mcastcoll::ofi {
namespace {

void write_error(fid_eq* queue, std::uint32_t event, fid_mc& mc, int error, std::uint64_t data) {
    fi_eq_err_entry entry{};
    entry.fid = &mc.fid;
    entry.context = mc.fid.context;
    entry.data = data;
    entry.err = error;
    // libfabric's own queues take errors under this flag, which has no public name.
    constexpr std::uint64_t kErrorEvent = std::uint64_t{1} << 60;
    if (fi_eq_write(queue, event, &entry, sizeof entry, kErrorEvent) < 0)
        log_line(Level::warn, "the event queue did not take the error of a group");
}

}  // namespace

void report_join(fid_eq* queue, fid_mc& mc, int error) {
    if (error != 0) return write_error(queue, FI_JOIN_COMPLETE, mc, error, 0);
    fi_eq_entry good{&mc.fid, mc.fid.context, 0};
    if (fi_eq_write(queue, FI_JOIN_COMPLETE, &good, sizeof good, 0) < 0)
        log_line(Level::warn, "the event queue did not take FI_JOIN_COMPLETE");
}

// There is no event of libfabric's for it but an error entry, as for a connection that breaks.
void report_failure(fid_eq* queue, fid_mc& mc, int error, Rank lost) {
    write_error(queue, FI_SHUTDOWN, mc, error, lost == kNoRank ? FI_ADDR_NOTAVAIL : index_of(lost));
}

}  // namespace mcastcoll::ofi
