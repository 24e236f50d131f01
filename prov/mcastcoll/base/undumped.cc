#include "base/undumped.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace mcastcoll {

std::shared_ptr<void> map_undumped(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t whole = (bytes + page - 1) / page * page;
    void* const at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    ::madvise(at, whole, MADV_DONTDUMP);
    ::mlock(at, whole);  // without the right to, the secret may be swapped out
    return {at, [whole](void* pages) {
                ::explicit_bzero(pages, whole);
                ::munmap(pages, whole);
            }};
}

}  // namespace mcastcoll
