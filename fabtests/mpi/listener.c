// Preloaded into the processes of an MPI job. Records the random bytes that the component or the interposer
// draws from the kernel, and searches the sent data of the process for these bytes.
//
// Secrets and private keys are draws of 32 bytes, which must never be sent. A wrapped secret begins with a
// draw of 16 bytes, its salt, which must be found; otherwise this library does not see the traffic. At its
// end each process reports on stderr. With LISTENER_CHANGES in the environment, the library flips a bit of
// each wrapped secret before it is sent.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kMax = 1024, kLooked = 16 };

typedef struct {
    unsigned char bytes[kLooked];
    bool sent;
} Draw;

typedef struct {
    Draw draws[kMax];
    unsigned count;
} Draws;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Draws secrets, salts;

static void note(Draws* draws, const void* bytes) {
    pthread_mutex_lock(&lock);
    if (draws->count < kMax) memcpy(draws->draws[draws->count++].bytes, bytes, kLooked);
    pthread_mutex_unlock(&lock);
}

static void find(Draws* draws, void* bytes, size_t count, bool changes) {
    for (unsigned i = 0; i < draws->count; ++i) {
        unsigned char* const found = memmem(bytes, count, draws->draws[i].bytes, kLooked);
        if (NULL == found) continue;
        const bool follows = found + kLooked < (unsigned char*)bytes + count;
        if (changes && follows && !draws->draws[i].sent) found[kLooked] ^= 1;
        draws->draws[i].sent = true;
    }
}

static void look(const struct iovec* parts, size_t count) {
    const bool changes = NULL != getenv("LISTENER_CHANGES");
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; ++i) {
        find(&secrets, parts[i].iov_base, parts[i].iov_len, false);
        find(&salts, parts[i].iov_base, parts[i].iov_len, changes);
    }
    pthread_mutex_unlock(&lock);
}

static unsigned count_sent(const Draws* draws) {
    unsigned sent = 0;
    for (unsigned i = 0; i < draws->count; ++i) sent += draws->draws[i].sent;
    return sent;
}

__attribute__((destructor)) static void report(void) {
    if (0 == secrets.count) return;
    fprintf(stderr, "listener: %u secrets, %u sent; %u salts, %u sent\n", secrets.count, count_sent(&secrets),
            salts.count, count_sent(&salts));
}

// Replacements of C library functions.
#pragma GCC visibility push(default)

ssize_t getrandom(void* bytes, size_t count, unsigned flags) {
    Dl_info caller;
    const ssize_t drawn = syscall(SYS_getrandom, bytes, count, flags);
    if (0 == dladdr(__builtin_return_address(0), &caller) || NULL == caller.dli_fname) return drawn;
    if (NULL == strstr(caller.dli_fname, "mca_coll_mcastcoll") &&
        NULL == strstr(caller.dli_fname, "libmcastcoll-pmpi"))
        return drawn;
    if (32 == drawn) note(&secrets, bytes);
    if (16 == drawn) note(&salts, bytes);
    return drawn;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void* bytes, size_t count) {
    look(&(struct iovec){(void*)bytes, count}, 1);
    return syscall(SYS_write, fd, bytes, count);
}

ssize_t send(int fd, const void* bytes, size_t count, int flags) {
    look(&(struct iovec){(void*)bytes, count}, 1);
    return NEXT(send)(fd, bytes, count, flags);
}

ssize_t sendto(int fd, const void* bytes, size_t count, int flags, const struct sockaddr* to,
               socklen_t size) {
    look(&(struct iovec){(void*)bytes, count}, 1);
    return NEXT(sendto)(fd, bytes, count, flags, to, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
    look(parts, (size_t)count);
    return NEXT(writev)(fd, parts, count);
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
    look(message->msg_iov, message->msg_iovlen);
    return NEXT(sendmsg)(fd, message, flags);
}

int sendmmsg(int fd, struct mmsghdr* messages, unsigned count, int flags) {
    for (unsigned i = 0; i < count; ++i) look(messages[i].msg_hdr.msg_iov, messages[i].msg_hdr.msg_iovlen);
    return NEXT(sendmmsg)(fd, messages, count, flags);
}

#pragma GCC visibility pop
