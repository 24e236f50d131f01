// mcastcoll-perf-fabric: how long libfabric's collectives take, one stack's side of a comparison of several.
// What mcastcoll-perf-mpi is for MPI: members stay alive between their turns, each asleep in read() on a pipe
// of its own.
//
// It goes through libfabric's public calls, so any provider with FI_COLLECTIVE can be measured; with --form
// blocking it uses mcastcoll's own fi_mcastcoll_group_ops.run. What is measured, and how often, is told in
// perf_mpi.c; that members begin together is seen to out of band, by the board that they share.
//
// Who owns what: the launcher forks the members and ends them at the time limit; a member owns its endpoint
// and its buffers. Times of all members are in one mapping, made before the fork, from which member 0 takes
// the figures.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

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

// Of all members, [member][sample].
class SharedTimes {
  public:
    SharedTimes()
        : at_(static_cast<Times*>(
              mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
        if (at_ == MAP_FAILED) fail("no memory for the times: {}", std::strerror(errno));
    }
    ~SharedTimes() { munmap(at_, kBytes); }
    SharedTimes(const SharedTimes&) = delete;
    SharedTimes& operator=(const SharedTimes&) = delete;
    Times* of(unsigned member) const { return at_ + member * std::size_t{kPerfMaxSamples}; }

  private:
    static constexpr std::size_t kBytes = kMaxProcesses * std::size_t{kPerfMaxSamples} * sizeof(Times);
    Times* at_;
};

struct Settings {
    std::string serve, form = "posted";
    unsigned root = 0;
};

struct Cell {
    const Operation* operation = nullptr;
    std::uint64_t bytes = 0;
    double seconds = 1;
};

Cell read_cell(const std::string& text) {
    std::array<char, 64> name{};
    unsigned long long bytes = 0;
    Cell cell;
    if (std::sscanf(text.c_str(), "%63[a-z_]:%llu:%lf", name.data(), &bytes, &cell.seconds) != 3)
        fail("'{}': give OPERATION:BYTES:SECONDS", text);
    for (const Operation& one : kOperations)
        if (std::strcmp(one.name, name.data()) == 0) cell.operation = &one;
    if (cell.operation == nullptr) fail("'{}': no such operation", text);
    cell.bytes = cell.operation->collective == FI_BARRIER ? 0 : bytes;
    if ((cell.operation->does & kPerfReduces) != 0 && cell.bytes % 8 != 0)
        fail("'{}': reductions need multiples of 8 bytes", text);
    return cell;
}

using Memory = std::unique_ptr<std::uint8_t, decltype(&std::free)>;

// One member's side of the operations of one cell.
class Call {
  public:
    Call(Member& me, const Join& group, const Settings& settings, const Cell& cell);

    void prepare(std::uint64_t serial);
    // From the call to its completion. False when the group does not have this collective; nobody has it
    // then.
    bool perform();
    bool verify() const { return perf_verify(&side_); }

  private:
    ssize_t post(Ticket& ticket);
    ssize_t run_blocking();

    Member& me_;
    const Join& group_;
    const Operation& operation_;
    perf_side side_{};
    Memory send_{nullptr, &std::free}, receive_{nullptr, &std::free};
    const fi_datatype type_;
    std::size_t count_;
    fi_mcastcoll_group_ops* blocking_ = nullptr;
};

Call::Call(Member& me, const Join& group, const Settings& settings, const Cell& cell)
    : me_(me),
      group_(group),
      operation_(*cell.operation),
      type_((operation_.does & kPerfReduces) != 0 ? FI_DOUBLE : FI_UINT8),
      count_(type_ == FI_DOUBLE ? cell.bytes / 8 : cell.bytes) {
    side_.does = operation_.does;
    side_.rank = static_cast<int>(me.rank());
    side_.size = static_cast<int>(me.size());
    side_.root = static_cast<int>(settings.root);
    side_.bytes = cell.bytes;
    side_.elements = count_;
    perf_lay_out(&side_);
    send_.reset(side_.send = perf_memory(side_.send_bytes));
    receive_.reset(side_.receive = perf_memory(side_.receive_bytes));
    if (!send_ || !receive_) fail("no memory for {} bytes", side_.send_bytes + side_.receive_bytes);
    if (settings.form == "blocking")
        CHECK_RETURNS(0, fi_open_ops(&group.mc->fid, FI_MCASTCOLL_GROUP_OPS, 0,
                                     reinterpret_cast<void**>(&blocking_), nullptr));
}

void Call::prepare(std::uint64_t serial) {
    side_.serial = serial;
    perf_prepare(&side_);
}

ssize_t Call::post(Ticket& ticket) {
    const fi_addr_t root = static_cast<fi_addr_t>(side_.root), to = group_.address();
    fid_ep* const ep = me_.ep();
    void *const in = send_.get(), *const out = receive_.get();
    switch (operation_.collective) {
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

ssize_t Call::run_blocking() {
    fi_mcastcoll_request request{};
    request.size = sizeof request;
    request.collective = operation_.collective;
    request.input = send_.get();
    request.buffer = receive_.get();
    request.count = count_;
    request.datatype = type_;
    request.op = FI_SUM;
    request.root = static_cast<std::uint32_t>(side_.root);
    return blocking_->run(group_.mc.get(), &request, nullptr, nullptr);
}

bool Call::perform() {
    Ticket* ticket = blocking_ ? nullptr : &me_.new_ticket();
    ssize_t result = 0;
    do {
        result = blocking_ ? run_blocking() : post(*ticket);
        if (result == -FI_EAGAIN) me_.progress();
    } while (result == -FI_EAGAIN);
    if (result != 0 && ticket) me_.drop(*ticket);
    if (result == -FI_ENOSYS || result == -FI_EOPNOTSUPP) return false;
    if (result != 0) fail("{} returned {}", operation_.name, describe(result));
    if (ticket) me_.finish(*ticket);
    return true;
}

// The board's words that are used here.
enum Word : std::size_t { kCount, kBad };

class Bench {
  public:
    Bench(Member& me, const SharedTimes& times, const Settings& settings)
        : me_(me), times_(times), settings_(settings), set_(me.everybody()), group_(me.join(set_.get())) {}

    void serve();

  private:
    void measure(const Cell& cell);
    bool run(Call& call, const Operation& operation, std::uint64_t slot, std::uint64_t count);
    std::uint64_t agree(std::uint64_t own);
    void print(const Cell& cell, std::uint64_t done);

    Member& me_;
    const SharedTimes& times_;
    const Settings& settings_;
    Fid<fid_av_set> set_;
    std::unique_ptr<Join> group_;
    std::uint64_t serial_ = 0;
};

// Member 0's word.
std::uint64_t Bench::agree(std::uint64_t own) {
    if (me_.rank() == 0) me_.board().words[kCount] = own;
    me_.meet();
    const std::uint64_t agreed = me_.board().words[kCount];
    me_.meet();
    return agreed;
}

bool Bench::run(Call& call, const Operation& operation, std::uint64_t slot, std::uint64_t count) {
    for (std::uint64_t i = slot; i < slot + count; ++i) {
        call.prepare(++serial_);
        me_.meet();
        const double start = perf_now_us();
        const bool there = call.perform();
        const double end = perf_now_us();
        if (!there) return false;
        const bool starts = (operation.does & kPerfRooted) == 0 || me_.rank() == settings_.root;
        times_.of(me_.rank())[i] = {starts ? start : 0, end, end - start};
        // Who is early would else verify on a core that others still need to end.
        me_.meet();
        if (!call.verify()) ++me_.board().words[kBad];
    }
    return true;
}

void Bench::measure(const Cell& cell) {
    Call call(me_, *group_, settings_, cell);
    if (me_.rank() == 0) me_.board().words[kBad] = 0;
    const double begin = perf_now_us(), end = begin + cell.seconds * 1e6;
    std::uint64_t warmed = 0, done = 0;
    bool there = true;
    for (std::uint64_t more = 1; there && more != 0; ++warmed) {
        there = run(call, *cell.operation, 0, 1);
        more = agree(warmed + 1 < kPerfWarmup && perf_now_us() - begin < cell.seconds * 1e5);
    }
    while (there) {
        const std::uint64_t count = agree(perf_next_count(warmed, done, begin, end));
        if (count == 0) break;
        run(call, *cell.operation, done, count);
        done += count;
    }
    // What is still to be pushed out, for others to end theirs, before this member sleeps.
    me_.idle(std::chrono::milliseconds(10));
    me_.meet();
    if (me_.rank() != 0) return;
    if (there) return print(cell, done);
    fmt::print("{{\"operation\": \"{}\", \"bytes\": {}, \"unavailable\": \"the group does not have it\"}}\n",
               cell.operation->name, cell.bytes);
    std::fflush(stdout);
}

void Bench::print(const Cell& cell, std::uint64_t done) {
    std::vector<double> last(done), longest(done);
    for (std::uint64_t i = 0; i < done; ++i) {
        double start = 0, end = 0;
        for (unsigned member = 0; member < me_.size(); ++member) {
            const Times& one = times_.of(member)[i];
            start = std::max(start, one.start);
            end = std::max(end, one.end);
            longest[i] = std::max(longest[i], one.own);
        }
        last[i] = end - start;
    }
    perf_result result{};
    result.operation = cell.operation->name;
    result.bytes = cell.bytes;
    result.samples = done;
    result.operations = done;
    result.bad = me_.board().words[kBad];
    result.ranks = static_cast<int>(me_.size());
    result.last = perf_sum_up(last.data(), done);
    result.max = perf_sum_up(longest.data(), done);
    result.overlap_percent = -1;
    perf_print(&result);
}

void Bench::serve() {
    const std::string path = fmt::format("{}/{}", settings_.serve, me_.rank());
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> orders(std::fopen(path.c_str(), "r"),
                                                                    &std::fclose);
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
        measure(read_cell(line.data()));
        me_.stage("waiting for its turn");
    }
    if (me_.rank() == 0) {
        fmt::print("{{\"end\": 0}}\n");
        std::fflush(stdout);
    }
}

}  // namespace

int main(int argc, char** argv) {
    Program program("mcastcoll-perf-fabric",
                    "Measures libfabric's collectives when mcastcoll-perf tells it to.");
    Settings settings;
    program.arguments()
        .option("--serve", settings.serve, "folder of pipes; member R reads OPERATION:BYTES:SECONDS from R")
        .required();
    program.arguments()
        .option("--form", settings.form, "posted: fi_broadcast and so on; blocking: mcastcoll's run()")
        .one_of({"posted", "blocking"});
    program.arguments().option("--root", settings.root, "of those that have one");
    std::unique_ptr<SharedTimes> times;
    program.add({"serve", [&](Member& me) {
                     if (settings.root >= me.size()) fail("--root: give a member, 0 to {}", me.size() - 1);
                     Bench(me, *times, settings).serve();
                 }});
    try {
        times = std::make_unique<SharedTimes>();
    } catch (const std::exception& problem) {
        fmt::print(stderr, "mcastcoll-perf-fabric: {}\n", problem.what());
        return 1;
    }
    return program.run(argc, argv);
}
