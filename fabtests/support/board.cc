#include "support/board.h"

#include <sys/mman.h>

#include <new>

#include "support/failure.h"

namespace mcastcoll::fabtest {

SharedBoard::SharedBoard() {
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("no shared memory for the test's processes");
    board_ = new (memory) Board();
}

SharedBoard::~SharedBoard() {
    munmap(board_, sizeof(Board));
}

}  // namespace mcastcoll::fabtest
