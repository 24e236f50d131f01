// Numbers chunks, and forwards each chunk when the size of the chunk two places later is known.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "cp/chunk.h"
#include "cp/packer.h"
#include "cp/pool.h"
#include "cp/queue.h"

namespace mcastcoll::cp {

class Chunker {
  public:
    Chunker(std::shared_ptr<Pool> pool, Queue& out);
    // The current chunk, with room for a record.
    Packer& packer();
    void finish();

  private:
    void complete();

    std::shared_ptr<Pool> pool_;
    Queue& out_;
    std::uint64_t number_ = 0;
    std::unique_ptr<Packer> packer_;
    std::deque<Chunk> held_;
};

}  // namespace mcastcoll::cp
