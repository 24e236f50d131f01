// Fails each system call of the provider in turn: first only this call, then also every later call. Opening,
// joining, traffic, leaving and closing must then end with an error or work without the call. Crashes, hangs
// and leaks are errors, and the next attempt must succeed. Both members of a group are endpoints of one
// process.
#include <array>
#include <optional>
#include <thread>

#include "functional/datagram_node.h"
#include "support/failing.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr std::uint64_t kMaxCalls = 5000;
// The number of calls tried is kTries times the logarithm of the number of calls.
constexpr std::uint64_t kTries = 100, kGrowth = 8;
// kLongTimeoutMs is for events that must come, since at most one call has failed; kShortTimeoutMs for events
// that may come. A process that got no processor time meanwhile still polls kLooks times.
constexpr int kLongTimeoutMs = 60'000, kShortTimeoutMs = 500;
constexpr unsigned kLooks = 2000;

class Timeout {
  public:
    explicit Timeout(bool long_one)
        : end_(Clock::now() + std::chrono::milliseconds(long_one ? kLongTimeoutMs : kShortTimeoutMs)) {}
    bool over() const { return ++looks_ > kLooks && Clock::now() > end_; }

  private:
    const Clock::time_point end_;
    mutable unsigned looks_ = 0;
};

// A failed step, after which the attempt only closes its objects.
struct Refused {
    const char* step;
    long error;
};

// Reports a failure of the test. Calls no longer fail then, since the report needs memory.
template <typename... Arguments>
[[noreturn]] void complain(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    stop_failing();
    fail(text, std::forward<Arguments>(arguments)...);
}

void must(long result, const char* step) {
    if (result < 0) throw Refused{step, result};
}

// A deleter for objects that must close in every case; an error of fi_close() is a failure of the test.
struct CloseSurely {
    template <typename T>
    void operator()(T* object) const {
        if (const int rc = fi_close(&object->fid); rc != 0) failed = rc;
    }
    inline static int failed = 0;
};
template <typename T>
using Owned = std::unique_ptr<T, CloseSurely>;

template <typename T, typename Open>
Owned<T> open(const char* step, Open call) {
    T* made = nullptr;
    must(call(&made), step);
    return Owned<T>(made);
}

struct Kind {
    const char* name;
    fi_ep_type type;
    std::uint64_t caps;
    const char* topology;
    bool collective() const { return (caps & FI_COLLECTIVE) != 0; }
};

// An endpoint and its libfabric objects.
class End {
  public:
    End(const Kind& kind, const Options& options, Fails how) : kind_(kind), sure_(how == Fails::once) {
        const Info hints(fi_allocinfo(), &fi_freeinfo);
        CHECK(hints != nullptr);
        hints->caps = kind.caps;
        hints->ep_attr->type = kind.type;
        hints->addr_format = FI_SOCKADDR_IN;
        hints->fabric_attr->prov_name = strdup(options.provider.c_str());
        hints->domain_attr->mr_mode = 0;
        fi_info* found = nullptr;
        must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints.get(), &found),
             "fi_getinfo");
        info_.reset(found);
        fabric_ = open<fid_fabric>("fi_fabric",
                                   [&](auto** made) { return fi_fabric(info_->fabric_attr, made, nullptr); });
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_FD;
        eq_ = open<fid_eq>("fi_eq_open",
                           [&](auto** made) { return fi_eq_open(fabric_.get(), &eq_attr, made, nullptr); });
        domain_ = open<fid_domain>(
            "fi_domain", [&](auto** made) { return fi_domain(fabric_.get(), info_.get(), made, nullptr); });
        fi_av_attr av_attr{};
        av_attr.type = FI_AV_TABLE;
        av_ = open<fid_av>("fi_av_open",
                           [&](auto** made) { return fi_av_open(domain_.get(), &av_attr, made, nullptr); });
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_TAGGED;
        cq_attr.wait_obj = FI_WAIT_FD;
        cq_ = open<fid_cq>("fi_cq_open",
                           [&](auto** made) { return fi_cq_open(domain_.get(), &cq_attr, made, nullptr); });
        ep_ = open<fid_ep>("fi_endpoint", [&](auto** made) {
            return fi_endpoint(domain_.get(), info_.get(), made, nullptr);
        });
        must(fi_ep_bind(ep_.get(), &eq_->fid, 0), "fi_ep_bind of the event queue");
        must(fi_ep_bind(ep_.get(), &av_->fid, 0), "fi_ep_bind of the address vector");
        must(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind of the completion queue");
        must(fi_enable(ep_.get()), "fi_enable");
    }

    void meet(const End& first, const End& second) {
        for (const End* one : {&first, &second}) {
            std::array<char, 128> name{};
            std::size_t length = name.size();
            must(fi_getname(&one->ep_->fid, name.data(), &length), "fi_getname");
            fi_addr_t at = FI_ADDR_NOTAVAIL;
            if (fi_av_insert(av_.get(), name.data(), 1, &at, 0, nullptr) != 1)
                throw Refused{"fi_av_insert", -FI_EOTHER};
        }
        if (!kind_.collective()) return;
        fi_av_set_attr attr{};
        attr.count = 2;
        attr.end_addr = attr.stride = 1;
        set_ = open<fid_av_set>("fi_av_set",
                                [&](auto** made) { return fi_av_set(av_.get(), &attr, made, nullptr); });
    }

    void start_join() {
        const sockaddr_storage where = group(7);
        mc_ = open<fid_mc>(kind_.collective() ? "fi_join_collective" : "fi_join", [&](auto** made) {
            return kind_.collective()
                       ? fi_join_collective(ep_.get(), FI_ADDR_NOTAVAIL, set_.get(), 0, made, nullptr)
                       : fi_join(ep_.get(), &where, 0, made, nullptr);
        });
    }
    // Returns whether the join has completed.
    bool joined() {
        progress();
        if (joined_) return true;
        std::uint32_t event = 0;
        fi_eq_entry entry{};
        ssize_t got = fi_eq_read(eq_.get(), &event, &entry, sizeof entry, 0);
        if (got == -FI_EAVAIL) {
            fi_eq_err_entry error{};
            const ssize_t result = fi_eq_readerr(eq_.get(), &error, 0);
            if (result <= 0 || error.err <= 0) complain("fi_eq_readerr: {}, error {}", result, error.err);
            throw Refused{"the join", -error.err};
        }
        if (got == -FI_EAGAIN) return false;
        must(got, "fi_eq_read");
        if (event != FI_JOIN_COMPLETE || entry.fid != &mc_->fid)
            complain("event {} instead of a join", event);
        return joined_ = true;
    }
    // Starts this member's part of one operation or message.
    void start(bool sends) {
        buffer_.fill(std::byte{0});
        if (kind_.collective()) {
            if (sends) buffer_.fill(std::byte{0x5a});
            again("fi_broadcast", [&] {
                return fi_broadcast(ep_.get(), buffer_.data(), buffer_.size(), nullptr, fi_mc_addr(mc_.get()),
                                    0, FI_UINT8, 0, &buffer_);
            });
            return;
        }
        if (!sends)
            return must(fi_recv(ep_.get(), buffer_.data(), buffer_.size(), nullptr, FI_ADDR_UNSPEC, &buffer_),
                        "fi_recv");
        buffer_.fill(std::byte{0x5a});
        const iovec piece{buffer_.data(), buffer_.size()};
        const fi_msg message{&piece, nullptr, 1, fi_mc_addr(mc_.get()), &buffer_, 0};
        again("fi_sendmsg", [&] { return fi_sendmsg(ep_.get(), &message, FI_MULTICAST); });
    }
    bool done() {
        progress();
        if (done_ && (buffer_.front() != std::byte{0x5a} || buffer_.back() != std::byte{0x5a}))
            complain("what came is not what was sent");
        return done_;
    }
    // Drives the operations under way without reading a completion.
    void help_others() { (void)fi_cq_read(cq_.get(), nullptr, 0); }
    void leave() {
        mc_.reset();
        if (set_) set_.reset();
    }

  private:
    template <typename Call>
    void again(const char* step, Call call) {
        const Timeout timeout(sure_);
        ssize_t rc = call();
        for (; rc == -FI_EAGAIN; rc = call()) {
            progress();
            if (!timeout.over()) continue;
            if (sure_) complain("{} is not taken", step);
            throw Refused{step, rc};
        }
        must(rc, step);
    }
    void progress() {
        fi_cq_tagged_entry entry{};
        const ssize_t got = fi_cq_read(cq_.get(), &entry, 1);
        if (got == 1) done_ = true;
        if (got == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            if (fi_cq_readerr(cq_.get(), &error, 0) != 1) complain("fi_cq_readerr has no error");
            throw Refused{"an operation", -error.err};
        }
        if (got != -FI_EAGAIN) must(got, "fi_cq_read");
    }

    const Kind& kind_;
    const bool sure_;
    Info info_{nullptr, &fi_freeinfo};
    Owned<fid_fabric> fabric_;
    Owned<fid_eq> eq_;
    Owned<fid_domain> domain_;
    Owned<fid_av> av_;
    Owned<fid_cq> cq_;
    Owned<fid_ep> ep_;
    Owned<fid_av_set> set_;
    Owned<fid_mc> mc_;
    std::array<std::byte, 3000> buffer_{};
    bool joined_ = false, done_ = false;
};

// Waits until each of the two endpoints has finished the step, possibly with an error: the endpoint without a
// failure must not wait for ever for the failed one.
template <typename Holds>
void wait_for(const char* step, bool must_come, std::array<End*, 2> ends, Holds holds) {
    std::array<bool, 2> ended{};
    std::optional<Refused> refused;
    const auto look = [&](std::size_t which) {
        if (ends[which] == nullptr || ended[which]) {
            ended[which] = true;
            if (ends[which] != nullptr) ends[which]->help_others();
            return;
        }
        try {
            ended[which] = holds(*ends[which]);
        } catch (const Refused& error) {
            ended[which] = true;
            refused = error;
        }
    };
    const Timeout timeout(must_come);
    while (!ended[0] || !ended[1]) {
        look(0);
        look(1);
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (!timeout.over()) continue;
        if (must_come) complain("no end of {} after {} failed", step, failed_call());
        throw Refused{step, -FI_ETIMEDOUT};
    }
    if (refused) throw *refused;
}

void live(const Kind& kind, const Options& options, Fails how) {
    const bool sure = how == Fails::once;
    End first(kind, options, how), second(kind, options, how);
    first.meet(first, second);
    second.meet(first, second);
    first.start_join();
    if (kind.collective()) second.start_join();
    const auto joined = [](End& end) { return end.joined(); };
    if (kind.collective()) {
        wait_for("the joins", sure, {&first, &second}, joined);
    } else {
        wait_for("a join", sure, {&first, nullptr}, joined);
        second.start_join();
        wait_for("the other join", sure, {&second, &first}, joined);
    }
    second.start(false);
    try {
        first.start(true);
    } catch (const Refused&) {
        // One member's step failed. Its group stays open, so that the other member can receive the failure.
        if (kind.collective())
            wait_for("the other's part", sure, {&second, &first},
                     [&](End& end) { return &end == &first || end.done(); });
        throw;
    }
    // Datagrams for which a call has failed may be lost.
    wait_for("the traffic", sure && kind.type != FI_EP_DGRAM, {&first, &second},
             [](End& end) { return end.done(); });
    second.leave();
    first.leave();
}

// Runs one attempt. Returns true if a call failed.
bool attempt(const Kind& kind, const Options& options, std::uint64_t nth, Fails how, std::string& outcome) {
    outcome = "worked";
    CloseSurely::failed = 0;
    std::uint64_t failures = 0;
    fail_call(nth, how);
    try {
        live(kind, options, how);
    } catch (const Refused& refused) {
        failures = stop_failing();
        outcome = fmt::format("{}: {}", refused.step, fi_strerror(static_cast<int>(-refused.error)));
        if (failures == 0) fail("{} though no call failed", outcome);
    }
    failures += stop_failing();
    if (CloseSurely::failed != 0)
        fail("closing failed after call {}: {}", nth, describe(CloseSurely::failed));
    return failures > 0;
}

void every_call(Member& me, const Kind& kind) {
    if (me.rank() != 0) return;
    setenv("FI_MCASTCOLL_TOPOLOGY", kind.topology, 1);
    std::string outcome;
    // Warms up: libraries allocate now the memory kept for the life of the process.
    for (int i = 0; i < 3; ++i) attempt(kind, me.options(), 0, Fails::once, outcome);
    const std::size_t descriptors = descriptors_in_use();
    const std::int64_t memory = pieces_of_memory();
    const std::uint64_t tries = me.options().operations != 0 ? me.options().operations : kTries;
    std::uint64_t refused = 0, shrugged = 0, max = kMaxCalls;
    for (const Fails how : {Fails::once, Fails::onward}) {
        std::uint64_t nth = 1;
        for (Clock::time_point begin = Clock::now(); attempt(kind, me.options(), nth, how, outcome);
             begin = Clock::now()) {
            ++(outcome == "worked" ? shrugged : refused);
            if (me.options().verbose)
                fmt::print("     {} {}: {} ({:.1f} s)\n", nth, failed_call(), outcome,
                           std::chrono::duration<double>(Clock::now() - begin).count());
            // Descriptors of libfabric itself may stay open: accepted connections without any data from the
            // peer.
            if (descriptors_in_use() != descriptors)
                fail("{} descriptors instead of {} are open after call {} ({}) failed: {}",
                     descriptors_in_use(), descriptors, nth, failed_call(), outcome);
            if (pieces_of_memory() > memory + 1)
                fail("{} pieces of memory are lost after call {} ({}) failed", pieces_of_memory() - memory,
                     nth, failed_call());
            // Trying every call takes minutes, and hours under valgrind.
            nth += me.options().large ? 1 : 1 + kGrowth * nth / tries;
            // A waiting endpoint polls, which makes a system call now and then without end.
            if (nth > max) break;
        }
        CHECK(nth > max || outcome == "worked");
        max = std::min(max, nth);
    }
    fmt::print("     {}: an error {} times, did without {} times\n", kind.name, refused, shrugged);
    CHECK(refused >= tries / 10);
}

}  // namespace

int main(int argc, char** argv) {
    static const std::array<Kind, 4> kKinds{{
        {"datagrams", FI_EP_DGRAM, FI_MSG | FI_MULTICAST, "flat"},
        {"reliable messages", FI_EP_RDM, FI_MSG | FI_MULTICAST, "flat"},
        {"collectives by multicast", FI_EP_RDM, FI_MSG | FI_COLLECTIVE, "flat"},
        {"collectives in shared memory", FI_EP_RDM, FI_MSG | FI_COLLECTIVE, "auto"},
    }};
    Program program("fi_mcc_failures", "Calls of the system that fail, each in its turn");
    for (const Kind& kind : kKinds)
        program.add({.name = kind.name,
                     .body = [&kind](Member& me) { every_call(me, kind); },
                     .members = 2,
                     .environment = {{"FI_MCASTCOLL_EXPERIMENT", "linger=200"},
                                     {"FI_MCASTCOLL_HOST_TIMEOUT", "2000"}},
                     .only_mcastcoll = true});
    return program.run(argc, argv);
}
