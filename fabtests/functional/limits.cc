// Each constant limit is tested at limit - 1, limit and limit + 1. A value above the limit is refused without
// side effects.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "support/program.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr unsigned kMaxOpen = 256;     // operations of a group
constexpr unsigned kMaxOnHost = 1024;  // members of a group that share a host's memory

// Every member learns all members from the welcome message and takes part in a barrier, and in one broadcast
// from the last.
void form(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    me.finish(me.barrier(*group));
    Buffer buffer(5000);
    buffer.poison();
    if (me.rank() + 1 == me.size()) buffer.fill(me.options().seed);
    me.finish(me.broadcast(*group, buffer.data(), buffer.size(), me.size() - 1));
    buffer.check(me.options().seed, "broadcast from the last member");
    me.meet();
}

// Joins sets of two real members and addresses without a process: a join may begin with any allowed number of
// them.
void sets_of_many(Member& me) {
    fi_collective_attr attr{};
    CHECK_RETURNS(0, fi_query_collective(me.domain(), FI_BARRIER, &attr, 0));
    CHECK(attr.max_members == UINT32_MAX);
    const auto set = me.all_members();
    std::array<std::byte, 64> address{};
    std::size_t bytes = address.size();
    CHECK_RETURNS(0, fi_getname(&me.ep()->fid, address.data(), &bytes));
    constexpr unsigned kMany = 5000;
    for (unsigned members = me.size() + 1; members <= kMany; ++members) {
        std::array<std::byte, 64> other = address;
        const unsigned port = 1024 + members;  // of sockaddr_in and sockaddr_in6
        other[2] = static_cast<std::byte>(port >> 8);
        other[3] = static_cast<std::byte>(port);
        fi_addr_t added = FI_ADDR_UNSPEC;
        CHECK(fi_av_insert(me.av(), other.data(), 1, &added, 0, nullptr) == 1);
        CHECK_RETURNS(0, fi_av_set_insert(set.get(), added));
    }
    fid_mc* group = nullptr;
    CHECK_RETURNS(0, fi_join_collective(me.ep(), FI_ADDR_NOTAVAIL, set.get(), 0, &group, nullptr));
    CHECK_RETURNS(0, fi_close(&group->fid));
    me.meet();
}

// The group has one member more than can share a host's memory: every member gets the error.
void too_many_on_a_host(Member& me) {
    const auto set = me.all_members();
    const auto hopeless = me.start_join(set.get());
    me.wait_until("the error event of a join that cannot complete", [&] { return hopeless->done; });
    CHECK(hopeless->error == FI_E2BIG);
    me.meet();
}

// Member 0 is late, so that the other members' barriers stay open at once.
void open_operations(Member& me) {
    const auto set = me.all_members();
    const auto group = me.join(set.get());
    auto& words = me.board().words;
    for (unsigned count = kMaxOpen - 1; count <= kMaxOpen + 1; ++count) {
        const unsigned accepted = std::min(count, kMaxOpen);
        std::vector<Ticket*> tickets;
        if (me.rank() == 0) me.wait_until("all have begun", [&] { return words[count] + 1 == me.size(); });
        for (unsigned i = 0; i < accepted; ++i) tickets.push_back(&me.barrier(*group));
        if (me.rank() != 0) {
            if (count > kMaxOpen) {
                Ticket& ticket = me.new_ticket();
                CHECK_RETURNS(-FI_EAGAIN, fi_barrier(me.ep(), group->address(), &ticket));
                me.drop(ticket);
            }
            me.idle(std::chrono::milliseconds(20));
            for (const Ticket* ticket : tickets) CHECK(!ticket->done);
            ++words[count];
        }
        for (Ticket* ticket : tickets) me.finish(*ticket);
        me.meet();
    }
    me.finish(me.barrier(*group));
    me.meet();
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_limits", "What is bounded, at its bounds");
    for (const unsigned members : {33U, 34U, 35U})
        program.add({.name = "a group of " + std::to_string(members),
                     .body = form,
                     .members = members,
                     .only_mcastcoll = true});
    for (const unsigned members : {255U, 256U, 257U})
        program.add({.name = "a group of " + std::to_string(members),
                     .body = form,
                     .members = members,
                     .only_mcastcoll = true,
                     .only_large = true});
    for (const unsigned members : {kMaxOnHost - 1, kMaxOnHost, kMaxOnHost + 1})
        program.add({.name = std::to_string(members) + " on a host",
                     .body = members > kMaxOnHost ? too_many_on_a_host : form,
                     .members = members,
                     .environment = {{"FI_MCASTCOLL_TOPOLOGY", "auto"}},
                     .only_mcastcoll = true,
                     .only_large = true});
    program.add({.name = "sets of thousands", .body = sets_of_many, .members = 2, .only_mcastcoll = true});
    program.add({.name = "255 to 257 operations at once",
                 .body = open_operations,
                 .members = 3,
                 .only_mcastcoll = true});
    // A host's shared memory takes 128 operations at a time.
    program.add({.name = "255 to 257 operations at once on one host",
                 .body = open_operations,
                 .members = 3,
                 .environment = {{"FI_MCASTCOLL_TOPOLOGY", "auto"}},
                 .only_mcastcoll = true});
    return program.run(argc, argv);
}
