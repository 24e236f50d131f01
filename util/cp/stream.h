// Delivers a sequence of chunks from the head to all hosts. After each failure the survivors form a new
// group, until all survivors have all chunks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cp/channel.h"
#include "cp/chunk.h"
#include "cp/pool.h"
#include "cp/queue.h"
#include "hostset/host_set.h"

namespace mcastcoll::cp {

class Stream {
  public:
    struct Callbacks {
        std::function<void(const Chunk&)> consume;  // called for each chunk once, in order
        std::function<void(std::uint32_t, const std::string&)> lost;
    };

    // `channel`: nullptr on a head without other hosts.
    Stream(hostset::HostSet& host_set, Channel* channel, std::shared_ptr<Pool> pool, Callbacks callbacks);

    // Returns when all survivors have all chunks. `chunks` is the queue of chunks to send on the head,
    // nullptr on other hosts.
    Result<void> run(Queue* chunks);

  private:
    struct Flight {
        Chunk chunk;
        Channel::Ticket ticket;
    };
    // The result of agree(): the participants, and the first chunk to send.
    struct Agreed {
        bool done = true;     // all hosts have all chunks
        bool broken = false;  // the group of some host has failed
        std::uint64_t from = UINT64_MAX;
        std::vector<std::string> names;
    };

    Result<Agreed> agree();
    void pass(const Agreed& agreed);
    Result<void> broadcast_all(std::uint64_t from);
    Result<void> send_sizes(std::uint64_t from);
    Result<void> post(std::uint64_t number);
    Result<void> settle();
    Chunk fetch(std::uint64_t number);
    void consume(const Chunk& chunk);

    hostset::HostSet& host_set_;
    Channel* channel_;
    std::shared_ptr<Pool> pool_;
    Callbacks callbacks_;
    Queue* chunks_ = nullptr;
    std::deque<Chunk> history_;  // on the head: chunks that other hosts may need again
    std::uint64_t fetched_ = 0;  // number after the last chunk of the history
    std::uint64_t next_ = 0;     // chunks with lower numbers have been consumed here
    bool done_ = false;
    std::deque<std::uint64_t> sizes_;  // sizes of the next chunks
    std::deque<Flight> flights_;
    std::uint64_t failures_ = 0;  // consecutive failures of groups
    std::string failure_;
};

}  // namespace mcastcoll::cp
