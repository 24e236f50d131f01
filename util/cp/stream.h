// One sequence of chunks from the head to all, whoever dies meanwhile: groups are formed of those that are
// left, until all of those have all chunks.
#pragma once

#include <functional>

#include "cp/channel.h"
#include "cp/chunk.h"
#include "crew/crew.h"

namespace mcastcoll::cp {

class Stream {
  public:
    struct Says {
        std::function<void(const Chunk&)> consume;  // each chunk once, in order
        std::function<void(std::uint32_t, const std::string&)> lost;
    };

    // `channel`: none on a head that is alone.
    Stream(crew::Crew& crew, Channel* channel, std::shared_ptr<Pool> pool, Says says);

    // The head gives the chunks; others none.
    Result<void> run(Queue* chunks);

  private:
    struct Flight {
        Chunk chunk;
        Channel::Ticket ticket;
    };
    // What all have agreed on: who goes on, and from which chunk.
    struct Agreed {
        bool done = true;     // all have all
        bool broken = false;  // somebody's group is
        std::uint64_t from = UINT64_MAX;
        std::vector<std::string> names;
    };

    Result<Agreed> agree();
    void pass(const Agreed& agreed);
    Result<void> broadcast_all(std::uint64_t from);
    Result<void> tell_sizes(std::uint64_t from);
    Result<void> post(std::uint64_t number);
    Result<void> settle();
    Chunk fetch(std::uint64_t number);
    void consume(const Chunk& chunk);

    crew::Crew& crew_;
    Channel* channel_;
    std::shared_ptr<Pool> pool_;
    Says says_;
    Queue* chunks_ = nullptr;
    std::deque<Chunk> history_;  // of the head: what others may need again
    std::uint64_t fetched_ = 0;  // behind the last of the history
    std::uint64_t next_ = 0;     // all before it have been consumed here
    bool done_ = false;
    std::deque<std::uint64_t> sizes_;  // of chunks that come next
    std::deque<Flight> flights_;
    std::uint64_t failures_ = 0;  // in a row
    std::string failure_;
};

}  // namespace mcastcoll::cp
