// flows sink PORT | source ADDRESS PORT STREAMS ON_ms OFF_ms
//
// Traffic that other people would make between sites: TCP streams that send as fast as they may for ON
// milliseconds and nothing for OFF milliseconds, and who takes it.  Streams start one after the other, evenly
// spread over a period.  util/cluster/traffic starts both.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#else
#define PACKAGE_VERSION "unknown"
#endif

enum { kMostStreams = 64, kBlock = 65536, kTick_ms = 5 };

static char block[kBlock];

static void die(const char* what) {
    fprintf(stderr, "flows: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int number(const char* text, const char* what, int least, int most) {
    char* end;
    long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= least && value <= most) return (int)value;
    fprintf(stderr, "flows: %s '%s' must be a number from %d to %d\n", what, text, least, most);
    exit(2);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sink(int port) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct pollfd polled[1 + kMostStreams] = {{.events = POLLIN}};
    int one = 1;
    nfds_t count = 1;
    polled[0].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(polled[0].fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (polled[0].fd < 0 || bind(polled[0].fd, (struct sockaddr*)&here, sizeof here) ||
        listen(polled[0].fd, kMostStreams))
        die("listen");
    for (;;) {
        if (poll(polled, count, -1) < 0 && errno != EINTR) die("poll");
        for (nfds_t i = count; i-- > 1;) {
            if (!polled[i].revents) continue;
            ssize_t n = recv(polled[i].fd, block, sizeof block, MSG_DONTWAIT);
            if (n > 0 || (n < 0 && errno == EAGAIN)) continue;
            close(polled[i].fd);
            polled[i] = polled[--count];
        }
        int fd = polled[0].revents ? accept(polled[0].fd, NULL, NULL) : -1;
        if (fd >= 0 && count <= kMostStreams)
            polled[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        else if (fd >= 0)
            close(fd);
    }
}

static int connected(const char* host, int port) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &there.sin_addr) != 1) {
        fprintf(stderr, "flows: '%s' is no IPv4 address\n", host);
        exit(2);
    }
    for (int attempt = 0;; attempt++) {  // the sink starts at the same time
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0) die("socket");
        if (connect(fd, (struct sockaddr*)&there, sizeof there) == 0) {
            if (fcntl(fd, F_SETFL, O_NONBLOCK)) die("socket");
            return fd;
        }
        if (attempt == 100) die(host);
        close(fd);
        usleep(50000);
    }
}

static void source(const char* host, int port, int streams, int on, int off) {
    struct pollfd polled[kMostStreams];
    for (int i = 0; i < streams; i++) polled[i] = (struct pollfd){.fd = connected(host, port)};
    int64_t start = now_ms();
    for (;;) {
        bool anybody = false;
        for (int i = 0; i < streams; i++) {
            int64_t at = (now_ms() - start + (int64_t)(on + off) * i / streams) % (on + off);
            polled[i].events = at < on ? POLLOUT : 0;
            anybody |= at < on;
        }
        // Not longer than a tick, since a stream's time to stop is nothing that polling tells.
        if (poll(polled, (nfds_t)streams, kTick_ms) < 0 && errno != EINTR) die("poll");
        for (int i = 0; i < streams && anybody; i++) {
            if (polled[i].revents & (POLLERR | POLLHUP)) exit(0);
            if (polled[i].revents & POLLOUT && send(polled[i].fd, block, sizeof block, MSG_NOSIGNAL) < 0 &&
                errno != EAGAIN)
                die("send");
        }
    }
}

int main(int argc, char** argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) return puts("mcastcoll " PACKAGE_VERSION) < 0;
    if (argc == 3 && !strcmp(argv[1], "sink")) sink(number(argv[2], "PORT", 1, 65535));
    if (argc == 7 && !strcmp(argv[1], "source"))
        source(argv[2], number(argv[3], "PORT", 1, 65535), number(argv[4], "STREAMS", 1, kMostStreams),
               number(argv[5], "ON_ms", 1, 3600000), number(argv[6], "OFF_ms", 0, 3600000));
    bool help = argc == 2 && !strcmp(argv[1], "--help");
    fputs(
        "usage: flows sink PORT | source ADDRESS PORT STREAMS ON_ms OFF_ms\nTraffic between hosts; "
        "util/cluster/traffic starts it.\n",
        help ? stdout : stderr);
    return help ? 0 : 2;
}
