// The shared memory of a host::Team: missing memory, memory of another user, and memory left by a crash.
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "host_fixture.h"

using namespace mcastcoll;
using namespace mcastcoll::test;
using host::Team;
using host::TeamConfig;

namespace {

std::vector<std::string> names_in_shm() {
    std::vector<std::string> names;
    DIR* folder = ::opendir("/dev/shm");
    while (const dirent* entry = ::readdir(folder))
        if (std::string(entry->d_name).starts_with("mcastcoll-")) names.emplace_back(entry->d_name);
    ::closedir(folder);
    return names;
}

bool exists(const std::string& name) {
    for (const std::string& found : names_in_shm())
        if ("/" + found == name) return true;
    return false;
}

// Mounts a small /dev/shm for this test; returns false without the privilege.
bool private_shm(const char* size) {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("tmpfs", "/dev/shm", "tmpfs", 0, size) == 0;
}

}  // namespace

Test(host, memory_has_no_name_once_all_are_here) {
    MembersOptions options = members(3);
    expect(options, [](Team& team) {
        if (barrier(team) != 0) return 1;
        return exists(team.name()) ? 2 : 0;
    });
    TeamConfig config = fresh_config(members(2));
    config.name.clear();
    std::string name;
    {
        auto team = Team::open(config);
        cr_assert(team.ok());
        name = team.value()->name();
        cr_assert(exists(name));
        struct stat found {};
        cr_assert_eq(::stat(("/dev/shm" + name).c_str(), &found), 0);
        cr_assert_eq(found.st_mode & 0777, 0600);
        auto again = Team::open([&] { return config.name = name, config; }());
        cr_assert_eq(again.error().code, EEXIST);
    }
    cr_assert_eq(exists(name), false, "who made it and leaves early removes it");
}

Test(host, what_a_crash_left_is_removed_by_the_next) {
    int ends[2];
    cr_assert_eq(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        TeamConfig config;
        config.size = 2;
        auto team = Team::open(config);
        const std::string name = team.ok() ? team.value()->name() : "";
        if (::write(ends[1], name.c_str(), name.size() + 1) < 0) ::_exit(1);
        ::pause();
    }
    char name[200] = {};
    cr_assert_gt(::read(ends[0], name, sizeof name - 1), 10);
    host::Segment::remove_leftovers();
    cr_assert(exists(name), "its creator lives");
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    cr_assert(exists(name));
    TeamConfig config;
    auto next = Team::open(config);
    cr_assert(next.ok());
    cr_assert_eq(exists(name), false);
}

Test(host, segments_leave_what_other_files_need) {
    constexpr off_t kMiB = 1 << 20;
    if (!private_shm("size=16m")) cr_skip_test("only root may mount a /dev/shm of its own");
    const int sparse = ::open("/dev/shm/sparse", O_CREAT | O_RDWR, 0600);
    cr_assert_eq(::ftruncate(sparse, 6 * kMiB), 0);
    cr_assert_eq(host::Segment::spare().value(), 6 * kMiB, "16, less 6 for the file and 4 for files to come");
    cr_assert_eq(host::Segment::create({}, kMiB + kMiB / 2 + 1).error().code, ENOSPC, "more than a quarter");
    std::vector<std::shared_ptr<host::Segment>> segments;
    for (;;) {
        auto segment = host::Segment::create({}, kMiB / 4);
        if (!segment) {
            cr_assert_eq(segment.error().code, ENOSPC);
            break;
        }
        segments.push_back(std::move(segment).value());
    }
    cr_assert_gt(segments.size(), 10U);
    cr_assert_eq(::posix_fallocate(sparse, 0, 6 * kMiB), 0, "the file gets all of its pages");
    const int later = ::open("/dev/shm/later", O_CREAT | O_RDWR, 0600);
    cr_assert_eq(::posix_fallocate(later, 0, 4 * kMiB), 0, "and a later file finds room");
    ::close(sparse);
    ::close(later);
}

Test(host, foreign_memory_is_refused) {
    TeamConfig config = fresh_config(members(2));
    auto team = Team::open(config);
    cr_assert(team.ok());
    TeamConfig other = config;
    other.self = 1;
    other.key += 1;
    cr_assert_eq(Team::open(other).error().code, EPROTO, "another key");
    other.key = config.key;
    other.size = 3;
    cr_assert_eq(Team::open(other).error().code, EPROTO, "another size");
    other.size = 2;
    other.name += "x";
    cr_assert_eq(Team::open(other).error().code, ENOENT, "another name");
    other.name = config.name;
    cr_assert_eq(::chmod(("/dev/shm" + config.name).c_str(), 0644), 0);
    cr_assert_eq(Team::open(other).error().code, EACCES, "others may read it");
    cr_assert_eq(::chmod(("/dev/shm" + config.name).c_str(), 0600), 0);
    if (::geteuid() == 0) {
        cr_assert_eq(::chown(("/dev/shm" + config.name).c_str(), 65'534, 65'534), 0);
        cr_assert_eq(Team::open(other).error().code, EACCES, "another user's");
        cr_assert_eq(::chown(("/dev/shm" + config.name).c_str(), 0, 0), 0);
    }
    auto second = Team::open(other);
    cr_assert(second.ok());
    TeamConfig twice = other;
    twice.segment = team.value()->segment();
    cr_assert_eq(Team::open(twice).error().code, EADDRINUSE, "member 1 is here");
}

namespace {

// Posts an operation at each member, all in this thread, and drives the operations to their ends.
int run_all(std::vector<std::unique_ptr<Team>>& teams, std::vector<host::Operation>& operations) {
    for (std::size_t self = 0; self < teams.size(); ++self)
        if (const int code = teams[self]->post(operations[self]); code != 0) return code;
    std::size_t over = 0;
    for (int round = 0; over < teams.size() && round < 100; ++round)
        for (std::size_t self = over = 0; self < teams.size(); ++self) {
            teams[self]->progress();
            over += operations[self].done && operations[self].error == 0;
        }
    return over == teams.size() ? 0 : ETIMEDOUT;
}

}  // namespace

// Other processes may overwrite the size in the memory at any time, so the size found at first counts.
Test(host, how_large_a_memory_is_counts_as_it_was_when_it_was_found) {
    TeamConfig config = fresh_config(members(2));
    std::vector<std::unique_ptr<Team>> teams;
    teams.push_back(std::move(Team::open(config)).value());
    config.self = 1;
    config.segment = teams[0]->segment();
    auto& header = *reinterpret_cast<host::Header*>(config.segment->data());
    const std::uint32_t slots = std::exchange(header.slots, host::kLines + 1);
    cr_assert_eq(Team::open(config).error().code, EPROTO, "more slots than there can be");
    header.slots = slots;
    header.slot_bytes *= 2;
    cr_assert_eq(Team::open(config).error().code, EPROTO, "more than there is");
    header.slot_bytes /= 2;
    teams.push_back(std::move(Team::open(config)).value());
    const std::size_t table_bytes = teams[1]->table().size();
    header.size = host::kMaxMembers;
    header.slots = host::kLines;
    header.slot_bytes = 65'536;
    std::vector<host::Operation> operations(2);
    cr_assert_eq(run_all(teams, operations), 0);
    cr_assert_eq(teams[1]->table().size(), table_bytes);
}

Test(host, as_many_as_are_allowed_form_a_team) {
    for (const std::uint32_t size : {host::kMaxMembers - 1, host::kMaxMembers}) {
        TeamConfig config = fresh_config(members(size));
        std::vector<std::unique_ptr<Team>> teams;
        for (; config.self < size; ++config.self) {
            auto team = Team::open(config);
            cr_assert(team.ok(), "member %u: %s", config.self, team.error().message.c_str());
            teams.push_back(std::move(team).value());
            config.segment = teams[0]->segment();
        }
        std::vector<host::Operation> operations(size);
        cr_assert_eq(run_all(teams, operations), 0, "a barrier of %u", size);
        cr_assert(teams[size - 1]->formed());
        std::vector<std::uint64_t> in(size), out(size);
        for (std::uint32_t self = 0; self < size; ++self) {
            in[self] = self + 1;
            operations[self] = {.kind = host::Kind::allreduce,
                                .buffer = reinterpret_cast<std::byte*>(&out[self]),
                                .input = reinterpret_cast<const std::byte*>(&in[self]),
                                .bytes = 8,
                                .combiner = {add, 8}};
        }
        cr_assert_eq(run_all(teams, operations), 0, "an allreduce of %u", size);
        for (const std::uint64_t sum : out) cr_assert_eq(sum, std::uint64_t{size} * (size + 1) / 2);
        cr_assert_eq(exists(config.name), false);
    }
    TeamConfig config = fresh_config(members(host::kMaxMembers + 1));
    auto team = Team::open(config);
    cr_assert_eq(team.error().code, E2BIG);
    cr_assert_neq(team.error().message.find("1 to 1024 members, not 1025"), std::string::npos, "%s",
                  team.error().message.c_str());
    cr_assert_eq(exists(config.name), false);
}

Test(host, full_shared_memory_is_an_error) {
    if (!private_shm("size=64k")) cr_skip_test("mounting takes rights that we do not have");
    TeamConfig config;
    config.size = 16;
    auto team = Team::open(config);
    cr_assert_eq(team.ok(), false);
    cr_assert_eq(team.error().code, ENOSPC);
    cr_assert(names_in_shm().empty(), "and leaves nothing");
}

Test(host, copying_needs_the_nonce) {
    std::uint64_t nonce = 4711, value = 42, copy = 0;
    const auto address_of = [](const std::uint64_t& of) { return reinterpret_cast<std::uintptr_t>(&of); };
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    host::RemoteMemory peer{static_cast<std::uint32_t>(child), address_of(nonce), nonce};
    if (!host::can_copy_from(peer)) cr_skip_test("the kernel does not let us copy between processes");
    cr_assert_eq(host::copy_from(peer, address_of(value), &copy, sizeof copy), 0);
    cr_assert_eq(copy, 42);
    peer.nonce = 1;
    cr_assert_eq(host::copy_from(peer, address_of(value), &copy, sizeof copy), ESRCH, "another process");
    peer.nonce = nonce;
    cr_assert_eq(host::copy_from(peer, 4096, &copy, sizeof copy), EFAULT);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    cr_assert_eq(host::copy_from(peer, address_of(value), &copy, sizeof copy), ESRCH);
}
