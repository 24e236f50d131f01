// flows sink PORT | source ADDRESS PORT STREAMS ON_ms OFF_ms | echo PORT | pingpong ADDRESS PORT BYTES COUNT
//       | stream ADDRESS PORT CONNECTIONS MBYTES
//
// Background traffic between sites: TCP streams that send as fast as they can for ON milliseconds and pause
// for OFF milliseconds, and their sink. Streams start one after the other, evenly spread over a period.
// util/cluster/traffic starts both. pingpong (with an echo) and stream (with a sink) measure: half a round
// trip in us, and Mbit/s until the sink has all of MBYTES from so many connections.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

enum { kMaxStreams = 64, kBlock = 65536, kTick_ms = 5 };

static char block[kBlock];

static void die(const char* what) {
    fprintf(stderr, "flows: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int number(const char* text, const char* what, int min, int max) {
    char* end;
    long value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && value >= min && value <= max) return (int)value;
    fprintf(stderr, "flows: %s '%s' must be a number from %d to %d\n", what, text, min, max);
    exit(2);
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sink(int port) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct pollfd polled[1 + kMaxStreams] = {{.events = POLLIN}};
    int one = 1;
    nfds_t count = 1;
    polled[0].fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(polled[0].fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (polled[0].fd < 0 || bind(polled[0].fd, (struct sockaddr*)&here, sizeof here) ||
        listen(polled[0].fd, kMaxStreams))
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
        if (fd >= 0 && count <= kMaxStreams)
            polled[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        else if (fd >= 0)
            close(fd);
    }
}

static int connected(const char* host, int port) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &there.sin_addr) != 1) {
        fprintf(stderr, "flows: '%s' is not an IPv4 address\n", host);
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
    struct pollfd polled[kMaxStreams];
    for (int i = 0; i < streams; i++) polled[i] = (struct pollfd){.fd = connected(host, port)};
    int64_t start = now_ms();
    for (;;) {
        bool any_sends = false;
        for (int i = 0; i < streams; i++) {
            int64_t at = (now_ms() - start + (int64_t)(on + off) * i / streams) % (on + off);
            polled[i].events = at < on ? POLLOUT : 0;
            any_sends |= at < on;
        }
        // Polls for at most a tick, since the time for a stream to stop is no event.
        if (poll(polled, (nfds_t)streams, kTick_ms) < 0 && errno != EINTR) die("poll");
        for (int i = 0; i < streams && any_sends; i++) {
            if (polled[i].revents & (POLLERR | POLLHUP)) exit(0);
            if (polled[i].revents & POLLOUT && send(polled[i].fd, block, sizeof block, MSG_NOSIGNAL) < 0 &&
                errno != EAGAIN)
                die("send");
        }
    }
}

static void echo(int port) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (listener < 0 || bind(listener, (struct sockaddr*)&here, sizeof here) || listen(listener, 8))
        die("listen");
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        for (ssize_t n; (n = recv(fd, block, sizeof block, 0)) > 0;)
            if (send(fd, block, (size_t)n, MSG_NOSIGNAL) != n) break;
        close(fd);
    }
}

static int by_value(const void* left, const void* right) {
    const double a = *(const double*)left, b = *(const double*)right;
    return (a > b) - (a < b);
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int pingpong(const char* host, int port, int bytes, int count) {
    double* times = calloc((size_t)count, sizeof *times);
    int fd = connected(host, port), one = 1;
    if (!times || fcntl(fd, F_SETFL, 0)) die("socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int i = -10; i < count; i++) {
        const double start = now_us();
        if (send(fd, block, (size_t)bytes, MSG_NOSIGNAL) != bytes) die("send");
        if (recv(fd, block, (size_t)bytes, MSG_WAITALL) != bytes) die("recv");
        if (i >= 0) times[i] = (now_us() - start) / 2;
    }
    qsort(times, (size_t)count, sizeof *times, by_value);
    printf("{\"bytes\": %d, \"least_us\": %.2f, \"median_us\": %.2f, \"p90_us\": %.2f}\n", bytes, times[0],
           times[count / 2], times[count * 9 / 10]);
    free(times);
    return 0;
}

static int stream(const char* host, int port, int connections, int mbytes) {
    struct pollfd polled[kMaxStreams];
    long long left[kMaxStreams];
    for (int i = 0; i < connections; i++) {
        polled[i] = (struct pollfd){.fd = connected(host, port), .events = POLLOUT};
        left[i] = mbytes * 1000000LL / connections;
    }
    const double start = now_us();
    for (int open = connections; open > 0;) {
        if (poll(polled, (nfds_t)connections, -1) < 0 && errno != EINTR) die("poll");
        for (int i = 0; i < connections; i++) {
            if (polled[i].fd < 0 || !polled[i].revents) continue;
            if (left[i] == 0) {  // the sink closes after the last byte
                if (recv(polled[i].fd, block, 1, MSG_DONTWAIT) != 0)
                    die("the sink sends data instead of closing the connection");
                close(polled[i].fd);
                polled[i].fd = -1;
                open--;
                continue;
            }
            const ssize_t n =
                send(polled[i].fd, block, left[i] < kBlock ? (size_t)left[i] : kBlock, MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN) die("send");
            left[i] -= n > 0 ? n : 0;
            if (left[i] == 0) {
                shutdown(polled[i].fd, SHUT_WR);
                polled[i].events = POLLIN;
            }
        }
    }
    printf("{\"connections\": %d, \"mbit_s\": %.1f}\n", connections, mbytes * 8e6 / (now_us() - start));
    return 0;
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    if (argc == 2 && !strcmp(what, "--version")) return puts("mcastcoll " PACKAGE_VERSION) < 0;
    const int port = argc > 2 ? number(argv[argc == 3 ? 2 : 3], "PORT", 1, 65535) : 0;
    if (argc == 3 && !strcmp(what, "sink")) sink(port);
    if (argc == 3 && !strcmp(what, "echo")) echo(port);
    if (argc == 7 && !strcmp(what, "source"))
        source(argv[2], port, number(argv[4], "STREAMS", 1, kMaxStreams),
               number(argv[5], "ON_ms", 1, 3600000), number(argv[6], "OFF_ms", 0, 3600000));
    if (argc == 6 && !strcmp(what, "pingpong"))
        return pingpong(argv[2], port, number(argv[4], "BYTES", 1, kBlock),
                        number(argv[5], "COUNT", 1, 1000000));
    if (argc == 6 && !strcmp(what, "stream"))
        return stream(argv[2], port, number(argv[4], "CONNECTIONS", 1, kMaxStreams),
                      number(argv[5], "MBYTES", 1, 100000));
    const bool help = argc == 2 && !strcmp(what, "--help");
    fputs(
        "usage: flows sink PORT | source ADDRESS PORT STREAMS ON_ms OFF_ms | echo PORT |\n"
        "       pingpong ADDRESS PORT BYTES COUNT | stream ADDRESS PORT CONNECTIONS MBYTES\n"
        "Traffic between hosts; util/cluster/traffic starts it.\n",
        help ? stdout : stderr);
    return help ? 0 : 2;
}
