#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/context.h"

namespace mcastcoll::host {
namespace {

void* pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

int copy_from(const RemoteMemory& peer, std::uint64_t address, void* to, std::size_t bytes) {
    const auto number = static_cast<pid_t>(peer.pid);
    if (number == ::getpid()) {
        if (bytes > 0) std::memcpy(to, pointer(address), bytes);
        return 0;
    }
    std::uint64_t nonce = 0;
    // The nonce comes last, when everything else has been read.
    const std::array<iovec, 2> local{iovec{to, bytes}, iovec{&nonce, sizeof nonce}};
    const std::array<iovec, 2> remote{iovec{pointer(address), bytes},
                                      iovec{pointer(peer.nonce_address), sizeof nonce}};
    const ssize_t got = ::process_vm_readv(number, local.data(), 2, remote.data(), 2, 0);
    if (got < 0) return errno;
    if (static_cast<std::size_t>(got) != bytes + sizeof nonce) return EFAULT;
    return nonce == peer.nonce ? 0 : ESRCH;
}

int copy_to(const RemoteMemory& peer, std::uint64_t address, const void* from, std::size_t bytes) {
    const auto number = static_cast<pid_t>(peer.pid);
    if (number == ::getpid()) {
        if (bytes > 0) std::memcpy(pointer(address), from, bytes);
        return 0;
    }
    if (const int code = copy_from(peer, 0, nullptr, 0); code != 0) return code;
    const iovec local{const_cast<void*>(from), bytes}, remote{pointer(address), bytes};
    const ssize_t put = ::process_vm_writev(number, &local, 1, &remote, 1, 0);
    if (put < 0) return errno;
    return static_cast<std::size_t>(put) == bytes ? 0 : EFAULT;
}

bool can_copy_from(const RemoteMemory& peer) {
    return copy_from(peer, 0, nullptr, 0) == 0;
}

bool Memories::meet(std::uint32_t self, std::uint32_t size, bool may_copy) {
    for (std::uint32_t member = 0; member < size; ++member) {
        const Card& card = rings_.card(member);
        peers_.push_back({card.pid, card.nonce_address, card.nonce});
        if (member != self && may_copy) may_copy = can_copy_from(peers_.back());
    }
    return may_copy;
}

bool Memories::read(std::uint32_t member, std::uint64_t address, std::byte* to, std::size_t bytes) {
    const int code = copy_from(peers_[member], address, to, bytes);
    if (code != 0) fail(member, code);
    return rings_.failure() == 0;
}

bool Memories::write(std::uint32_t member, std::uint64_t address, const std::byte* from, std::size_t bytes) {
    const int code = copy_to(peers_[member], address, from, bytes);
    if (code != 0) fail(member, code);
    return code == 0;
}

void Memories::fail(std::uint32_t member, int code) {
    const bool gone = code == ESRCH || !rings_.is_alive(member);
    rings_.alarm.fail(gone ? ECONNRESET : code, member);
}

}  // namespace mcastcoll::host
