#include "ports/foreign_connections.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "base/file_descriptor.h"

namespace mcastcoll::ports {
namespace {

// Returns the peer of this socket if the connection was accepted at `own`. Outgoing connections have other
// local ports, because `own` is bound.
std::optional<transport::SocketAddress> peer_of(int descriptor, const transport::SocketAddress& own) {
    const auto name = transport::SocketAddress::of_socket(descriptor);
    if (!name || name.value().port() != own.port() || !(own.is_wildcard() || name.value().same_host(own)))
        return {};
    transport::SocketAddress peer;
    socklen_t length = transport::SocketAddress::capacity();
    // A listening socket has no peer.
    if (::getpeername(descriptor, peer.data(), &length) != 0 || !peer.valid()) return {};
    return peer;
}

bool is_stream(int descriptor) {
    int type = 0;
    socklen_t length = sizeof type;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

}  // namespace

std::size_t end_connections(const transport::SocketAddress& own,
                            FunctionRef<bool(const transport::SocketAddress&)> is_foreign) {
    const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc/self/fd"), &::closedir);
    if (!all) return 0;
    std::size_t ended = 0;
    while (const dirent* entry = ::readdir(all.get())) {
        if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
        const int descriptor = std::atoi(entry->d_name);
        if (!peer_of(descriptor, own)) continue;
        // Another thread may meanwhile close the descriptor and open another file with the same number.
        const FileDescriptor ours(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
        const auto peer = ours.valid() ? peer_of(ours.get(), own) : std::nullopt;
        if (!peer || !is_stream(ours.get()) || !is_foreign(*peer)) continue;
        ended += ::shutdown(ours.get(), SHUT_RDWR) == 0;
    }
    return ended;
}

}  // namespace mcastcoll::ports
