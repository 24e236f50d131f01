// Counts idle restarts, for which the kernel has no counter: the kernel resets the congestion window when it
// sends after a pause of more than the retransmission timeout with no data in flight. So before each burst,
// though at most every 10 ms, the watch marks connections in that state, and counts those that have sent by
// the next look.

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "patterns.h"
#include "perf/perf_data.h"

enum { kLookEvery_ms = 10 };  // far less than any retransmission timeout

// Whether the descriptor is a TCP connection.
static bool info_of(int fd, struct tcp_info* info) {
    socklen_t length = sizeof *info;
    memset(info, 0, sizeof *info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0 && info->tcpi_state == 1;  // established
}

static bool is_long(const struct tcp_watch* watch, const struct tcp_info* info) {
    return info->tcpi_min_rtt != UINT32_MAX && info->tcpi_min_rtt > watch->long_us;
}

// A congestion control with a model of the path, like bbr, does not use the window that is reset.
static bool forgets(int fd) {
    char name[16] = "";
    socklen_t length = sizeof name;
    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0 && strncmp(name, "bbr", 3) != 0;
}

static void look_at(struct tcp_watch* watch, int fd, struct tcp_sums* sums) {
    struct tcp_info info;
    if (fd < 0 || fd >= kMaxWatched || !info_of(fd, &info)) return;
    if (sums) {
        sums->all_connections++;
        sums->all_retransmissions += info.tcpi_total_retrans;
    }
    if (!is_long(watch, &info)) return;
    if (watch->at[fd].known && watch->at[fd].idle && info.tcpi_data_segs_out != watch->at[fd].sent)
        watch->idle_restarts++;
    watch->at[fd].known = 1;
    watch->at[fd].sent = info.tcpi_data_segs_out;
    watch->at[fd].idle = watch->forgetful && forgets(fd) && info.tcpi_unacked == 0 &&
                         (uint64_t)info.tcpi_last_data_sent * 1000 > info.tcpi_rto;
    if (!sums) return;
    sums->connections++;
    sums->retransmissions += info.tcpi_total_retrans;
    sums->duplicates += info.tcpi_dsack_dups;
    sums->reordered += info.tcpi_reord_seen;
}

// Whether the kernel resets windows at all, by the setting of the network namespace.
static bool forgets_when_idle(void) {
    FILE* file = fopen("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "r");
    const bool never = file && fgetc(file) == '0';
    if (file) fclose(file);
    return !never;
}

static void look_at_all(struct tcp_watch* watch, struct tcp_sums* sums) {
    watch->forgetful = forgets_when_idle();
    DIR* folder = opendir("/proc/self/fd");
    if (!folder) return;
    for (struct dirent* one = readdir(folder); one; one = readdir(folder))
        if (one->d_name[0] != '.') look_at(watch, atoi(one->d_name), sums);
    closedir(folder);
}

void tcp_watch_look(struct tcp_watch* watch) {
    const uint64_t now_ms = (uint64_t)(perf_now_us() / 1000);
    if (now_ms < watch->looked_ms + kLookEvery_ms) return;
    watch->looked_ms = now_ms;
    look_at_all(watch, NULL);
}

void tcp_watch_sum(struct tcp_watch* watch, struct tcp_sums* sums) {
    memset(sums, 0, sizeof *sums);
    look_at_all(watch, sums);
    sums->idle_restarts = watch->idle_restarts;
}
