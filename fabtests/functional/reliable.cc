// Reliable multicast messages (FI_EP_RDM with FI_MULTICAST) while a part of the datagrams is lost: surviving
// members receive every message once, each sender's messages are in order, a late member receives all
// messages from its join on, a stalled member is waited for and then expelled, and a killed member is
// removed.
#include <signal.h>

#include <map>
#include <thread>

#include "functional/datagram_node.h"
#include "functional/forge_spoofed.h"
#include "functional/reliable_foreign.h"
#include "support/process.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr std::size_t kRoom = 8192;
constexpr std::size_t kPosted = 64;
constexpr int kNapMs = 5;
// The limit of a wait; some cases have shorter limits.
constexpr std::chrono::seconds kTimeout{600};

// Words of the board.
constexpr std::size_t kSent = 0;
constexpr std::size_t kLateIsIn = 1;
constexpr std::size_t kAllSent = 2;
constexpr AssaultWords kAssault{.phase = 3, .thrown = 4};

const Wish kReliable{.type = FI_EP_RDM};

struct Content {
    std::uint64_t sender, number, bytes;
};

// Returns a message's size: most messages are small, some take several packets.
std::size_t size_of(std::uint64_t number) {
    return sizeof(Content) + (number % 64 == 63 ? 7000 : mix(1, number) % 200);
}

std::vector<std::byte> make(std::uint64_t sender, std::uint64_t number) {
    std::vector<std::byte> message(size_of(number), static_cast<std::byte>(number));
    const Content head{sender, number, message.size()};
    std::memcpy(message.data(), &head, sizeof head);
    return message;
}

// Posts buffers, and checks that each sender's messages arrive in order and complete.
class Reader {
  public:
    explicit Reader(Node& node) : node_(node), bytes_(kPosted * kRoom) {
        for (std::size_t i = 0; i < kPosted; ++i) post(bytes_.data() + i * kRoom);
    }
    // Returns whether there was a completion; sleeps for a while otherwise.
    bool read(int nap_ms = kNapMs) {
        fi_cq_tagged_entry entry{};
        const ssize_t got = fi_cq_sread(node_.cq.get(), &entry, 1, nullptr, nap_ms);
        // Interrupted by a debugger, or by a process that stops and continues this process.
        if (got == -FI_EAGAIN || got == -FI_EINTR) return false;
        CHECK_RETURNS(1, got);
        if ((entry.flags & FI_SEND) != 0) return ++sends, true;
        CHECK(entry.flags == (FI_RECV | FI_MSG | FI_MULTICAST));
        auto* at = static_cast<std::byte*>(entry.op_context);
        Content head{};
        CHECK(entry.len >= sizeof head);
        std::memcpy(&head, at, sizeof head);
        const auto known = next.try_emplace(head.sender, head.number).first;
        first.try_emplace(head.sender, head.number);
        if (known->second != head.number)
            fail("message {} of {} came instead of {}", head.number, head.sender, known->second);
        const auto wanted = make(head.sender, head.number);
        CHECK(entry.len == wanted.size() && std::memcmp(at, wanted.data(), wanted.size()) == 0);
        ++known->second;
        post(at);
        return true;
    }
    std::map<std::uint64_t, std::uint64_t> first, next;
    std::uint64_t sends = 0;  // completions of sends

  private:
    void post(std::byte* at) {
        CHECK_RETURNS(0, fi_recv(node_.ep.get(), at, kRoom, nullptr, FI_ADDR_UNSPEC, at));
    }
    Node& node_;
    std::vector<std::byte> bytes_;
};

// Returns false if the endpoint cannot accept the message now.
bool publish(Node& node, fi_addr_t to, std::uint64_t sender, std::uint64_t number) {
    const auto message = make(sender, number);
    const ssize_t rc = fi_inject(node.ep.get(), message.data(), message.size(), to);
    if (rc == -FI_EAGAIN) return false;
    CHECK_RETURNS(0, rc);
    return true;
}

void wait_for(Member& me, const char* what, const std::function<bool()>& holds) {
    const auto deadline = Clock::now() + kTimeout;
    while (!holds()) {
        if (Clock::now() > deadline) fail("{} took too long", what);
        if (me.board().abandoned) fail("another member has failed");
    }
}

// Waits for the other members, which may still need repairs of messages sent here.
void leave_together(Member& me, Reader& reader, Fid<fid_mc>& mc) {
    me.board().words[kSent]++;
    wait_for(me, "the others", [&] { return reader.read(), me.board().words[kSent] == me.size(); });
    mc.reset();
    me.meet();
}

// Every member sends to every other.
void all_to_all(Member& me) {
    const std::uint64_t count = me.options().operations != 0 ? me.options().operations : 2000;
    Wish wish = kReliable;
    wish.op_flags = FI_MULTICAST;
    Node node(wish, me.options());
    Reader reader(node);
    auto mc = node.join(group(0));
    me.meet();
    std::uint64_t sent = 0;
    wait_for(me, "all messages to all", [&] {
        const bool published = sent < count && publish(node, fi_mc_addr(mc.get()), me.rank(), sent);
        if (published) ++sent;
        for (int i = 0; i < 16 && reader.read(published ? 0 : kNapMs); ++i) {
        }
        if (sent < count || reader.next.size() + 1 < me.size()) return false;
        for (const auto& [sender, next] : reader.next)
            if (next < count) return false;
        return true;
    });
    for (const auto& [sender, first] : reader.first) CHECK(first == 0 && sender != me.rank());
    leave_together(me, reader, mc);
}

// A short queue holds completions of sends and of receives. Each sender reads the received ones first.
void one_queue_for_both(Member& me) {
    constexpr std::uint64_t kCount = 300;
    Wish wish = kReliable;
    wish.op_flags = FI_MULTICAST;
    wish.queue_size = 4;
    Node node(wish, me.options());
    Reader reader(node);
    auto mc = node.join(group(0));
    me.meet();
    std::uint64_t sent = 0;
    wait_for(me, "all messages to all", [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        for (ssize_t rc = 0; rc == 0 && sent < kCount;) {
            const auto message = make(me.rank(), sent);
            rc = fi_send(node.ep.get(), message.data(), message.size(), nullptr, fi_mc_addr(mc.get()),
                         nullptr);
            CHECK(rc == 0 || rc == -FI_EAGAIN);
            if (rc == 0) ++sent;
        }
        while (reader.read(0)) {
        }
        return sent == kCount && reader.next.size() + 1 == me.size() && reader.next.begin()->second == kCount;
    });
    CHECK(reader.sends == kCount);
    leave_together(me, reader, mc);
}

// Member 0 publishes; 1 stalls, 2 is killed, the last one joins when half is sent, the others only receive.
void publisher(Member& me, std::uint64_t count) {
    Node node(kReliable, me.options());
    const auto close_later = node.join(group(1), FI_SEND);
    me.meet();
    for (std::uint64_t sent = 0; sent < count;) {
        if (sent == count / 2)
            wait_for(me, "the late member", [&] {
                fi_cq_tagged_entry entry{};
                const ssize_t got = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, kNapMs);
                CHECK(got == -FI_EAGAIN || got == -FI_EINTR);
                return me.board().words[kLateIsIn] != 0;
            });
        const auto message = make(0, sent);
        const iovec piece{const_cast<std::byte*>(message.data()), message.size()};
        const fi_msg one{&piece, nullptr, 1, fi_mc_addr(close_later.get()), nullptr, 0};
        const ssize_t rc = fi_sendmsg(node.ep.get(), &one, FI_MULTICAST);
        fi_cq_tagged_entry entry{};
        const ssize_t read = fi_cq_sread(node.cq.get(), &entry, 1, nullptr, kNapMs);
        CHECK(rc == 0 ? read == 1 : rc == -FI_EAGAIN && (read == -FI_EAGAIN || read == -FI_EINTR));
        if (rc == 0) me.board().words[kSent] = ++sent;
        if (me.board().abandoned) fail("another member has failed");
    }
    me.board().words[kAllSent] = 1;
    // Closing waits for the receivers.
}

void subscriber(Member& me, std::uint64_t count) {
    const bool stalls = me.rank() == 1, dies = me.rank() == 2, late = me.rank() == me.size() - 1;
    if (late) {
        me.meet();
        wait_for(me, "half of the messages",
                 [&] { return usleep(1000), me.board().words[kSent] >= count / 2; });
    }
    Node node(kReliable, me.options());
    Reader reader(node);
    auto mc = node.join(group(1), FI_RECV);
    if (late)
        me.board().words[kLateIsIn] = 1;
    else
        me.meet();
    wait_for(me, "all messages", [&] {
        reader.read();
        const std::uint64_t next = reader.next.count(0) != 0 ? reader.next[0] : 0;
        if (dies && next > count / 4) raise(SIGKILL);
        fi_eq_err_entry error{};
        if (!stalls && fi_eq_readerr(node.eq.get(), &error, 0) > 0)
            fail("the group is lost after {} messages: {}", next, fi_strerror(error.err));
        return next == count || (stalls && next > count / 8);
    });
    CHECK(reader.first[0] == (late ? count / 2 : 0));
    if (!stalls) return;
    wait_for(me, "the publisher", [&] { return usleep(10'000), me.board().words[kAllSent] != 0; });
    // Messages that arrived earlier may still be read; then the event queue has the reason for the end.
    fi_eq_err_entry error{};
    wait_for(me, "being expelled", [&] {
        reader.read();
        return fi_eq_readerr(node.eq.get(), &error, 0) > 0;
    });
    CHECK(error.fid == &mc->fid && error.err == FI_ECONNABORTED);
    CHECK(reader.next[0] < count);
}

void publish_and_subscribe(Member& me) {
    const std::uint64_t count = me.options().operations != 0 ? me.options().operations : 60'000;
    if (me.rank() == 0)
        publisher(me, count);
    else
        subscriber(me, count);
}

constexpr std::size_t kMaxGrowth = std::size_t{64} << 20;

// Member 0 publishes for a while undisturbed and in each phase of an attack; the others check every byte.
void beside_foreign(Member& me) {
    const std::chrono::milliseconds each(quick() ? 500 : 1500);
    Wish wish = kReliable;
    wish.op_flags = FI_MULTICAST;
    Node node(wish, me.options());
    Reader reader(node);
    const auto mc = node.join(group(3), me.rank() == 0 ? FI_SEND : FI_RECV);
    me.meet();
    const std::size_t before = resident_bytes();
    auto& words = me.board().words;
    std::uint64_t sent = 0;
    for (std::uint64_t phase = 0; me.rank() == 0 && phase < static_cast<std::uint64_t>(Phase::over);
         ++phase) {
        words[kAssault.phase] = phase;
        const std::uint64_t first = sent, thrown = words[kAssault.thrown];
        const auto begin = Clock::now();
        while (Clock::now() - begin < each || (phase > 0 && words[kAssault.thrown] == thrown)) {
            if (publish(node, fi_mc_addr(mc.get()), 0, sent)) ++sent;
            fi_cq_tagged_entry entry{};
            fi_cq_read(node.cq.get(), &entry, 1);
            if (me.board().abandoned) fail("another member has failed");
        }
        const std::chrono::duration<double> took = Clock::now() - begin;
        fmt::print("     phase {}: {:.0f} messages a second, {} packets thrown\n", phase,
                   static_cast<double>(sent - first) / took.count(), words[kAssault.thrown] - thrown);
        words[kSent] = sent;
    }
    if (me.rank() == 0) {
        words[kAssault.phase] = static_cast<std::uint64_t>(Phase::over);
        words[kAllSent] = 1;
    }
    wait_for(me, "all messages", [&] {
        reader.read();
        return words[kAllSent] != 0 &&
               (me.rank() == 0 || (reader.next.count(0) != 0 && reader.next[0] == words[kSent]));
    });
    if (me.rank() != 0) CHECK(reader.first[0] == 0 && reader.next.size() == 1);
    if (kMeasuresMemory && resident_bytes() > before + kMaxGrowth)
        fail("grew from {} to {} bytes", before, resident_bytes());
    me.meet();
}

// A member with required authentication must not run without it.
void refuse_munge(Member& me) {
    setenv("FI_MCASTCOLL_KEY_FILE", "munge:", 1);
    std::string refusal;
    try {
        Node(kReliable, me.options());
    } catch (const Failure& failure) {
        refusal = failure.what();
    }
    if (refusal.find("fi_enable") == std::string::npos ||
        refusal.find(describe(-FI_EOPNOTSUPP)) == std::string::npos)
        fail("a secret by MUNGE is not refused: {}", refusal);
    setenv("FI_MCASTCOLL_SECURITY", "off", 1);
    Node(kReliable, me.options());
    unsetenv("FI_MCASTCOLL_SECURITY");
    unsetenv("FI_MCASTCOLL_KEY_FILE");
}

void refusals(Member& me) {
    if (me.rank() != 0) return;
    Node node(kReliable, me.options()), peer(kReliable, me.options());
    CHECK(node.info->ep_attr->type == FI_EP_RDM && node.info->ep_attr->max_msg_size >= 16384);
    CHECK((node.info->tx_attr->msg_order & FI_ORDER_SAS) != 0);
    fi_addr_t to = FI_ADDR_NOTAVAIL;
    CHECK_RETURNS(1, fi_av_insert(node.av.get(), peer.name().data(), 1, &to, 0, nullptr));
    CHECK_RETURNS(-FI_EOPNOTSUPP, fi_send(node.ep.get(), "x", 1, nullptr, to, nullptr));
    const auto mc = node.join(group(2));
    const sockaddr_storage where = group(2);
    fid_mc* twice = nullptr;
    CHECK_RETURNS(-FI_EALREADY, fi_join(node.ep.get(), &where, 0, &twice, nullptr));
    int result = 0;
    Wish wish = kReliable;
    wish.caps |= FI_TAGGED;
    CHECK(find_datagrams(wish, me.options().provider.c_str(), &result) == nullptr && result == -FI_ENODATA);
    if (me.options().is_mcastcoll()) refuse_munge(me);
    // A member that leaves and joins again starts a new sequence.
    Reader reader(peer);
    for (std::uint64_t round = 0; round < 3; ++round) {
        auto membership = peer.join(group(2));
        const auto send = [&] {
            const auto message = make(0, round);
            const iovec piece{const_cast<std::byte*>(message.data()), message.size()};
            const fi_msg one{&piece, nullptr, 1, fi_mc_addr(mc.get()), nullptr, 0};
            return fi_sendmsg(node.ep.get(), &one, FI_MULTICAST) == 0;
        };
        wait_for(me, "a message", send);
        wait_for(me, "its arrival", [&] {
            fi_cq_tagged_entry entry{};
            fi_cq_read(node.cq.get(), &entry, 1);
            reader.read();
            return reader.next.count(0) != 0 && reader.next[0] == round + 1;
        });
    }
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_reliable", "Reliable multicast messages");
    // A timeout long enough that no member counts as dead on a busy machine.
    const std::map<std::string, std::string> lossy{{"FI_MCASTCOLL_FAULT", "loss=5"},
                                                   {"FI_MCASTCOLL_EXPERIMENT", "peer_timeout=60000"}};
    // The stalled and the killed member are waited for as long as this; no other member may be so late.
    std::map<std::string, std::string> long_timeout = lossy;
    long_timeout["FI_MCASTCOLL_EXPERIMENT"] = "peer_timeout=8000";
    program.add({.name = "offers and refusals", .body = refusals, .members = 2});
    program.add({.name = "one queue for sends and receives", .body = one_queue_for_both, .members = 2});
    program.add({.name = "all to all", .body = all_to_all, .environment = lossy});
    program.add({.name = "a publisher and its subscribers",
                 .body = publish_and_subscribe,
                 .members = 6,
                 .timeout_s = 180,
                 .victims = {2},
                 .environment = long_timeout});
    const SecretFile secret;
    std::map<std::string, std::string> proven{{"FI_MCASTCOLL_EXPERIMENT", "peer_timeout=60000"},
                                              {"FI_MCASTCOLL_KEY_FILE", secret.path()}};
    program.add({.name = "foreign packets in a group with a key",
                 .body = beside_foreign,
                 .members = 3,
                 .environment = proven,
                 .only_mcastcoll = true,
                 .outsider = [](Board& board, const Options&) {
                     const sockaddr_storage where = group(3);
                     assail(board, reinterpret_cast<const sockaddr_in&>(where), kAssault);
                 }});
    proven["FI_MCASTCOLL_FAULT"] = "loss=5";
    program.add({.name = "all to all, with proofs", .body = all_to_all, .environment = proven});
    // --operations 1000000 sends as many messages; a publisher and eight subscribers.
    program.add({.name = "a publisher and its subscribers, large",
                 .body = publish_and_subscribe,
                 .members = 9,
                 .timeout_s = 110,
                 .victims = {2},
                 .environment = long_timeout,
                 .only_large = true});
    return program.run(argc, argv);
}
