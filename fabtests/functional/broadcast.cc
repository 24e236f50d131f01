// Broadcasts: sizes around every limit, every root, every datatype, several in flight, several groups; each
// byte is checked at each member. With --fault, datagrams are lost, duplicated, corrupted or delayed
// meanwhile.
#include <rdma/fi_atomic.h>

#include <memory>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;

// Libfabric's own broadcast needs a size that is a multiple of the number of members, and hangs above this
// size.
constexpr std::size_t kOthersLimit = 8192;

std::size_t possible(const Member& me, std::size_t bytes) {
    if (me.options().is_mcastcoll()) return bytes;
    bytes = std::min(bytes, kOthersLimit);
    return bytes - bytes % me.size();
}

bool is_possible(const Member& me, std::size_t bytes) {
    return me.options().is_mcastcoll() || (bytes > 0 && possible(me, bytes) == bytes);
}

void broadcast_once(Member& me, const Join& group, Buffer& buffer, unsigned root, std::uint64_t seed) {
    buffer.poison();
    if (me.rank() == root) buffer.fill(seed);
    me.finish(me.broadcast(group, buffer.data(), buffer.size(), root));
    buffer.check(seed, me.rank() == root ? "the root's own buffer" : "the receiver's buffer");
}

const std::vector<std::size_t> kSizes = {
    0,     1,     2,     3,     7,     8,     9,       63,      64,      65,      1023,      1024, 1025,
    1399,  1400,  1401,  1424,  1444,  1452,  1453,    1472,    1500,    4096,    8191,      8192, 9000,
    16384, 65456, 65487, 65507, 65535, 65536, 100'003, 131'072, 262'143, 524'288, 1'000'001,
};

void sizes_and_roots(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const std::size_t bytes : kSizes) {
        if (!is_possible(me, bytes)) continue;
        Buffer buffer(bytes);
        for (unsigned root = 0; root < me.size(); ++root)
            broadcast_once(me, *group, buffer, root, mix(me.options().seed, bytes, root));
    }
    me.meet();
}

void megabytes(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const std::size_t bytes :
         {std::size_t{4} << 20, (std::size_t{16} << 20) - 5, std::size_t{16} << 20}) {
        Buffer buffer(bytes);
        const unsigned root = static_cast<unsigned>(bytes % 3) % me.size();
        broadcast_once(me, *group, buffer, root, mix(me.options().seed, bytes));
    }
    me.meet();
}

void gigabyte(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    Buffer buffer(std::size_t{1} << 30);
    broadcast_once(me, *group, buffer, me.size() - 1, mix(me.options().seed, 30));
    me.meet();
}

// Runs broadcasts of random sizes and roots, up to `window` of them in flight, finished in random order. All
// members draw the same sizes and roots.
void run_mixed(Member& me, const std::vector<const Join*>& groups, std::size_t operations, std::size_t window,
               std::size_t largest) {
    if (const std::uint64_t given = me.options().operations; given != 0) operations = given;
    struct Open {
        std::unique_ptr<Buffer> buffer;
        Ticket* ticket;
        std::uint64_t seed;
    };
    std::vector<Open> open;
    // Each member draws its own order of waits: the order must not matter.
    std::uint64_t own = mix(me.options().seed, me.rank());
    const auto finish_one = [&] {
        own = mix(own);
        const std::size_t index = own % open.size();
        me.finish(*open[index].ticket);
        open[index].buffer->check(open[index].seed, "one of several broadcasts in flight");
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
    };
    for (std::size_t i = 0; i < operations; ++i) {
        const std::uint64_t seed = mix(me.options().seed, i, operations);
        const unsigned shift = static_cast<unsigned>(mix(seed, 1) % 21);
        const std::size_t bytes =
            possible(me, std::min(largest, mix(seed, 2) % ((std::size_t{2} << shift))) + me.size());
        const unsigned root = static_cast<unsigned>(mix(seed, 3) % me.size());
        auto buffer = std::make_unique<Buffer>(bytes);
        buffer->poison();
        if (me.rank() == root) buffer->fill(seed);
        const Join& group = *groups[mix(seed, 4) % groups.size()];
        Ticket& ticket = me.broadcast(group, buffer->data(), buffer->size(), root);
        open.push_back({std::move(buffer), &ticket, seed});
        if (open.size() >= window) finish_one();
    }
    while (!open.empty()) finish_one();
}

void one_at_a_time(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    run_mixed(me, {group.get()}, me.options().large ? 10'000 : 300, 1, 200'000);
    me.meet();
}

void many_in_flight(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    run_mixed(me, {group.get()}, me.options().large ? 10'000 : 300, 8, 200'000);
    me.meet();
}

void many_groups(Member& me) {
    const auto set = me.all_members();
    std::vector<std::unique_ptr<Join>> groups;
    std::vector<const Join*> views;
    for (int i = 0; i < 4; ++i) {
        groups.push_back(me.join(set.get()));
        views.push_back(groups.back().get());
    }
    run_mixed(me, views, me.options().large ? 5'000 : 200, 12, 100'000);
    me.meet();
}

// The root may reuse its buffer as soon as its broadcast is complete, even if some receivers still lack data.
void root_reuses_buffer(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    Buffer buffer(possible(me, 50'000));
    for (unsigned i = 0; i < 40; ++i) {
        if (me.rank() != 0 && i % 8 == me.rank() % 8) me.idle(std::chrono::milliseconds(5));
        broadcast_once(me, *group, buffer, 0, mix(me.options().seed, i));
        if (me.rank() == 0) buffer.poison();
    }
    me.meet();
}

void datatypes(Member& me) {
    struct Type {
        fi_datatype type;
        std::size_t bytes;
    };
    const std::vector<Type> types = {
        {FI_INT8, 1},
        {FI_UINT8, 1},
        {FI_INT16, 2},
        {FI_UINT16, 2},
        {FI_INT32, 4},
        {FI_UINT32, 4},
        {FI_INT64, 8},
        {FI_UINT64, 8},
        {FI_FLOAT, 4},
        {FI_DOUBLE, 8},
        {FI_FLOAT_COMPLEX, 8},
        {FI_DOUBLE_COMPLEX, 16},
        {FI_LONG_DOUBLE, sizeof(long double)},
        {FI_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double)},
    };
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    for (const Type& type : types) {
        const std::size_t count = 12 * me.size();
        const std::uint64_t seed = mix(me.options().seed, static_cast<std::uint64_t>(type.type));
        Buffer buffer(count * type.bytes);
        buffer.poison();
        const unsigned root = static_cast<unsigned>(type.type) % me.size();
        if (me.rank() == root) buffer.fill(seed);
        me.finish(me.broadcast(*group, buffer.data(), count, root, type.type));
        buffer.check(seed, "a broadcast of elements");
    }
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_broadcast",
                    "Broadcasts of every size, root and datatype, many at once, byte by byte");
    program.add({"sizes and roots", sizes_and_roots});
    program.add({"datatypes", datatypes});
    program.add({"one at a time", one_at_a_time});
    program.add({.name = "many in flight", .body = many_in_flight, .only_mcastcoll = true});
    program.add({.name = "many groups", .body = many_groups, .only_mcastcoll = true});
    program.add({"the root reuses its buffer", root_reuses_buffer});
    program.add({.name = "megabytes", .body = megabytes, .only_mcastcoll = true});
    program.add(
        {.name = "gigabyte", .body = gigabyte, .timeout_s = 300, .only_mcastcoll = true, .only_large = true});
    return program.run(argc, argv);
}
