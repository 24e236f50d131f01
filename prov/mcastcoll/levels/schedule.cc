#include "levels/schedule.h"

#include <algorithm>
#include <cstring>

namespace mcastcoll::levels {

void move_block(std::byte* to, const std::byte* from, std::size_t bytes) {
    if (bytes > 0 && to != nullptr && from != nullptr && to != from) std::memmove(to, from, bytes);
}

BlockMap::Place BlockMap::place(std::size_t offset) const {
    if (pattern == Pattern::whole) return {offset, SIZE_MAX - offset};
    const std::size_t block = offset / block_bytes, within = offset % block_bytes;
    if (pattern == Pattern::circle) {
        const std::size_t at = (first + block) % blocks;
        return {at * block_bytes + within, (blocks - at) * block_bytes - within};
    }
    const std::size_t run = std::size_t{1} << first, low = block % run;
    const std::size_t at = (block / run * 2 + 1) * run + low;
    return {at * block_bytes + within, (run - low) * block_bytes - within};
}

void Schedule::clear() {
    order = Order::any;
    copied_bytes = 0;
    streams = unrotates = false;
    sends.clear();
    receives.clear();
}

void Schedule::send(std::uint32_t to, std::size_t number, std::size_t after, const std::byte* data,
                    std::size_t bytes, BlockMap map) {
    sends.push_back({{to, static_cast<std::uint32_t>(number), bytes, map}, data, after});
}

// An empty message, too, is forwarded only after the receive.
void Schedule::forward(std::uint32_t to, std::size_t number, const std::byte* data, std::size_t bytes) {
    send(to, number, bytes == 0 ? receives.size() : 0, data, bytes);
    sends.back().follows = receives.size() - 1;
    streams = true;
}

void Schedule::receive(std::uint32_t from, std::size_t number, std::byte* data, std::size_t bytes,
                       BlockMap map) {
    receives.push_back({{from, static_cast<std::uint32_t>(number), bytes, map}, data});
}

std::byte* Schedule::room(std::size_t bytes) {
    if (scratch.size() < bytes) scratch.resize(bytes);
    return scratch.data();
}

bool Schedule::ordered(std::size_t receive) const {
    return order != Order::any || (receive + 1 < receives.size() && receives[receive + 1].combined);
}

std::size_t Schedule::sendable(const LevelOperation& operation, const Outbound& out) const {
    if (out.follows < receives.size()) return receives[out.follows].done;
    return operation.kind == Kind::broadcast ? std::min(operation.ready, out.bytes) : out.bytes;
}

void Schedule::finish(const LevelOperation& operation, std::uint32_t self, std::uint32_t members) const {
    move_block(operation.buffer, scratch.data(), copied_bytes);
    for (std::uint32_t i = 0; i < members && unrotates; ++i)
        move_block(operation.buffer + (self + members - i) % members * operation.bytes,
                   scratch.data() + i * operation.bytes, operation.bytes);
}

}  // namespace mcastcoll::levels
