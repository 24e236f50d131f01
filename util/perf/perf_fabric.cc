// mcastcoll-perf-fabric: measures libfabric's collectives, as one stack's side of a comparison of several.
// The counterpart of mcastcoll-perf-mpi: members stay alive between their turns, each asleep in read() on a
// pipe of its own.
//
// The program uses libfabric's public calls, so any provider with FI_COLLECTIVE can be measured; with --form
// blocking it uses mcastcoll's own fi_mcastcoll_group_ops.run. perf_mpi.c describes the measurement; members
// start together through a shared board, out of band.
//
// Ownership: the launcher forks the members and ends them at the time limit; a member owns its endpoint and
// its buffers. Times of all members are in one mapping, made before the fork, from which member 0 computes
// the figures.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "mcastcoll/mcastcoll.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"  // it is C
#include "perf_data.h"
#pragma GCC diagnostic pop
#include "support/program.h"

using namespace mcastcoll::fabtest;

namespace {

struct Operation {
    const char* name;
    fi_collective_op collective;
    int does;
};

constexpr std::array kOperations = {
    Operation{"broadcast", FI_BROADCAST, kPerfRooted},
    Operation{"barrier", FI_BARRIER, 0},
    Operation{"reduce", FI_REDUCE, kPerfReduces | kPerfToRoot},
    Operation{"allreduce", FI_ALLREDUCE, kPerfReduces},
    Operation{"allgather", FI_ALLGATHER, kPerfTakes},
    Operation{"gather", FI_GATHER, kPerfTakes | kPerfToRoot},
    Operation{"scatter", FI_SCATTER, kPerfRooted | kPerfDeals},
    Operation{"alltoall", FI_ALLTOALL, kPerfDeals | kPerfTakes},
    Operation{"reduce_scatter", FI_REDUCE_SCATTER, kPerfReduces | kPerfSpreads},
};

struct Times {
    double start, end, own;
};

struct Settings {
    std::string serve, form = "posted";
    unsigned root = 0;
};

using Memory = std::unique_ptr<std::uint8_t, decltype(&std::free)>;

// Indices of board words.
enum Word : std::size_t { kCount, kBad };

// One member's side of the operations of the current cell.
class Bench {
  public:
    // `times`: of all members, [member][sample].
    Bench(Member& me, Times* times, const Settings& settings);

    void serve();

  private:
    double open(const std::string& cell);
    ssize_t post(Ticket& ticket);
    ssize_t run_blocking();
    bool perform();
    bool run(std::uint64_t slot, std::uint64_t count);
    std::uint64_t agree(std::uint64_t own);
    void measure(const std::string& cell);
    void print(std::uint64_t done);
    Times* times_of(unsigned member) const { return times_ + member * std::size_t{kPerfMaxSamples}; }

    Member& me_;
    Times* const times_;
    const unsigned root_;
    const std::string folder_;
    Fid<fid_av_set> set_;
    std::unique_ptr<Join> group_;
    fi_mcastcoll_group_ops* blocking_ = nullptr;

    const Operation* operation_ = nullptr;
    perf_side side_{};
    Memory send_{nullptr, &std::free}, receive_{nullptr, &std::free};
    fi_datatype type_ = FI_UINT8;
    std::size_t count_ = 0;
};

Bench::Bench(Member& me, Times* times, const Settings& settings)
    : me_(me),
      times_(times),
      root_(settings.root),
      folder_(settings.serve),
      set_(me.all_members()),
      group_(me.join(set_.get())) {
    side_.rank = static_cast<int>(me.rank());
    side_.size = static_cast<int>(me.size());
    side_.root = static_cast<int>(root_);
    if (settings.form == "blocking")
        CHECK_RETURNS(0, fi_open_ops(&group_->mc->fid, FI_MCASTCOLL_GROUP_OPS, 0,
                                     reinterpret_cast<void**>(&blocking_), nullptr));
}

// Prepares the operations of the cell; returns the seconds to measure.
double Bench::open(const std::string& cell) {
    std::array<char, 64> name{};
    unsigned long long bytes = 0;
    double seconds = 1;
    if (std::sscanf(cell.c_str(), "%63[a-z_]:%llu:%lf", name.data(), &bytes, &seconds) != 3)
        fail("'{}': give OPERATION:BYTES:SECONDS", cell);
    operation_ = nullptr;
    for (const Operation& one : kOperations)
        if (std::strcmp(one.name, name.data()) == 0) operation_ = &one;
    if (operation_ == nullptr) fail("'{}': no such operation", cell);
    const bool reduces = (operation_->does & kPerfReduces) != 0;
    side_.does = operation_->does;
    side_.bytes = operation_->collective == FI_BARRIER ? 0 : bytes;
    if (reduces && side_.bytes % 8 != 0) fail("'{}': reductions need multiples of 8 bytes", cell);
    type_ = reduces ? FI_DOUBLE : FI_UINT8;
    side_.elements = count_ = reduces ? side_.bytes / 8 : side_.bytes;
    perf_lay_out(&side_);
    send_.reset(side_.send = perf_memory(side_.send_bytes));
    receive_.reset(side_.receive = perf_memory(side_.receive_bytes));
    if (!send_ || !receive_) fail("cannot allocate {} bytes", side_.send_bytes + side_.receive_bytes);
    return seconds;
}

ssize_t Bench::post(Ticket& ticket) {
    const fi_addr_t root = static_cast<fi_addr_t>(side_.root), to = group_->address();
    fid_ep* const ep = me_.ep();
    void *const in = send_.get(), *const out = receive_.get();
    switch (operation_->collective) {
        case FI_BROADCAST:
            return fi_broadcast(ep, out, count_, nullptr, to, root, type_, 0, &ticket);
        case FI_BARRIER:
            return fi_barrier(ep, to, &ticket);
        case FI_REDUCE:
            return fi_reduce(ep, in, count_, nullptr, out, nullptr, to, root, type_, FI_SUM, 0, &ticket);
        case FI_ALLREDUCE:
            return fi_allreduce(ep, in, count_, nullptr, out, nullptr, to, type_, FI_SUM, 0, &ticket);
        case FI_ALLGATHER:
            return fi_allgather(ep, in, count_, nullptr, out, nullptr, to, type_, 0, &ticket);
        case FI_GATHER:
            return fi_gather(ep, in, count_, nullptr, out, nullptr, to, root, type_, 0, &ticket);
        case FI_SCATTER:
            return fi_scatter(ep, in, count_, nullptr, out, nullptr, to, root, type_, 0, &ticket);
        case FI_ALLTOALL:
            return fi_alltoall(ep, in, count_, nullptr, out, nullptr, to, type_, 0, &ticket);
        case FI_REDUCE_SCATTER:
            return fi_reduce_scatter(ep, in, count_, nullptr, out, nullptr, to, type_, FI_SUM, 0, &ticket);
    }
    return -FI_EINVAL;
}

ssize_t Bench::run_blocking() {
    fi_mcastcoll_request request{};
    request.size = sizeof request;
    request.collective = operation_->collective;
    request.input = send_.get();
    request.buffer = receive_.get();
    request.count = count_;
    request.datatype = type_;
    request.op = FI_SUM;
    request.root = root_;
    return blocking_->run(group_->mc.get(), &request, nullptr, nullptr);
}

// Runs from the call to its completion. Returns false if the group lacks this collective, on all members
// alike.
bool Bench::perform() {
    Ticket* ticket = blocking_ ? nullptr : &me_.new_ticket();
    ssize_t result = 0;
    do {
        result = blocking_ ? run_blocking() : post(*ticket);
        if (result == -FI_EAGAIN) me_.progress();
    } while (result == -FI_EAGAIN);
    if (result != 0 && ticket) me_.drop(*ticket);
    if (result == -FI_ENOSYS || result == -FI_EOPNOTSUPP) return false;
    if (result != 0) fail("{} returned {}", operation_->name, describe(result));
    if (ticket) me_.finish(*ticket);
    return true;
}

// Distributes member 0's value.
std::uint64_t Bench::agree(std::uint64_t own) {
    if (me_.rank() == 0) me_.board().words[kCount] = own;
    me_.meet();
    const std::uint64_t agreed = me_.board().words[kCount];
    me_.meet();
    return agreed;
}

bool Bench::run(std::uint64_t slot, std::uint64_t count) {
    const bool starts = (operation_->does & kPerfRooted) == 0 || me_.rank() == root_;
    for (std::uint64_t i = slot; i < slot + count; ++i) {
        ++side_.serial;
        perf_prepare(&side_);
        me_.meet();
        const double start = perf_now_us();
        const bool there = perform();
        const double end = perf_now_us();
        if (!there) return false;
        times_of(me_.rank())[i] = {starts ? start : 0, end, end - start};
        // An early member would verify on a core still needed by other members.
        me_.meet();
        if (!perf_verify(&side_)) ++me_.board().words[kBad];
    }
    return true;
}

void Bench::measure(const std::string& cell) {
    const double seconds = open(cell);
    if (me_.rank() == 0) me_.board().words[kBad] = 0;
    const std::uint64_t done = perf_measure(
        seconds, this,
        [](void* bench, std::uint64_t slot, std::uint64_t count) {
            return static_cast<Bench*>(bench)->run(slot, count);
        },
        [](void* bench, std::uint64_t own) { return static_cast<Bench*>(bench)->agree(own); });
    // Drives progress before this member sleeps: peers may depend on its last messages.
    me_.idle(std::chrono::milliseconds(10));
    me_.meet();
    if (me_.rank() != 0) return;
    if (done != 0) return print(done);
    fmt::print("{{\"operation\": \"{}\", \"bytes\": {}, \"unavailable\": \"the group does not have it\"}}\n",
               operation_->name, side_.bytes);
    std::fflush(stdout);
}

void Bench::print(std::uint64_t done) {
    std::vector<double> last(done), longest(done);
    for (std::uint64_t i = 0; i < done; ++i) {
        double start = 0, end = 0;
        for (unsigned member = 0; member < me_.size(); ++member) {
            const Times& one = times_of(member)[i];
            start = std::max(start, one.start);
            end = std::max(end, one.end);
            longest[i] = std::max(longest[i], one.own);
        }
        last[i] = end - start;
    }
    perf_result result{};
    result.operation = operation_->name;
    result.bytes = side_.bytes;
    result.samples = done;
    result.operations = done;
    result.bad = me_.board().words[kBad];
    result.ranks = static_cast<int>(me_.size());
    result.last = perf_sum_up(last.data(), done);
    result.max = perf_sum_up(longest.data(), done);
    result.overlap_percent = -1;
    result.lost = -1;
    perf_print(&result);
}

void Bench::serve() {
    const std::string path = fmt::format("{}/{}", folder_, me_.rank());
    const auto close = [](std::FILE* file) { std::fclose(file); };
    const std::unique_ptr<std::FILE, decltype(close)> orders(std::fopen(path.c_str(), "r"), close);
    if (!orders) fail("{}: {}", path, std::strerror(errno));
    me_.meet();
    if (me_.rank() == 0) {
        fmt::print("{{\"ready\": {}}}\n", me_.size());
        std::fflush(stdout);
    }
    std::array<char, 256> line{};
    me_.stage("waiting for its turn");
    while (std::fgets(line.data(), static_cast<int>(line.size()), orders.get()) != nullptr) {
        me_.stage("measuring");
        measure(line.data());
        me_.stage("waiting for its turn");
    }
    if (me_.rank() == 0) {
        fmt::print("{{\"end\": 0}}\n");
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Program program("mcastcoll-perf-fabric", "Measures libfabric's collectives for mcastcoll-perf.");
    Settings settings;
    program.arguments()
        .option("--serve", settings.serve,
                "folder of pipes; member R reads OPERATION:BYTES:SECONDS from pipe R")
        .required();
    program.arguments()
        .option("--form", settings.form, "posted: fi_broadcast and so on; blocking: mcastcoll's run()")
        .one_of({"posted", "blocking"});
    program.arguments().option("--root", settings.root, "root of the operations that have one");
    constexpr std::size_t kBytes = kMaxProcesses * std::size_t{kPerfMaxSamples} * sizeof(Times);
    void* const times = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    program.add({"serve", [&](Member& me) {
                     if (times == MAP_FAILED) fail("cannot allocate memory for the times");
                     if (settings.root >= me.size()) fail("--root: give a member, 0 to {}", me.size() - 1);
                     Bench(me, static_cast<Times*>(times), settings).serve();
                 }});
    return program.run(argc, argv);
}
