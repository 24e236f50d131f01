// Datagram endpoints with FI_MULTICAST over UDP: fi_getinfo() results, joining and leaving, which members
// receive which messages, unicast in parallel, limits, errors, waiting.
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/fi_tagged.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <utility>

#include "functional/datagram_node.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr std::size_t kRoom = 256;

struct Buffers {
    explicit Buffers(Node& its_node, std::size_t count) : node(its_node), bytes(count * kRoom) {
        for (std::size_t i = 0; i < count; ++i) post(i);
    }
    char* at(std::size_t place) { return bytes.data() + place * kRoom; }
    void post(std::size_t place) {
        CHECK_RETURNS(0, fi_recv(node.ep.get(), at(place), kRoom, nullptr, FI_ADDR_UNSPEC, at(place)));
    }
    // Returns the bytes received into the buffer of this completion, and posts the buffer again.
    std::string take(const fi_cq_tagged_entry& entry) {
        const auto place =
            static_cast<std::size_t>(static_cast<char*>(entry.op_context) - bytes.data()) / kRoom;
        std::string text(at(place), entry.len);
        post(place);
        return text;
    }
    Node& node;
    std::vector<char> bytes;
};

void send(Node& node, const std::string& text, fi_addr_t to, std::uint64_t flags) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    const fi_msg message{&piece, nullptr, 1, to, nullptr, 0};
    CHECK_RETURNS(0, fi_sendmsg(node.ep.get(), &message, flags));
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(0, node.next(entry));
    CHECK(entry.flags == (FI_SEND | FI_MSG | (flags & FI_MULTICAST)));
}

void inject(Node& node, const std::string& text, fi_addr_t to) {
    CHECK_RETURNS(0, fi_inject(node.ep.get(), text.data(), text.size(), to));
}

std::string label(unsigned rank, unsigned number) {
    return "from " + std::to_string(rank) + ": " + std::to_string(number);
}

void offers(Member& me) {
    if (me.rank() != 0) return;
    const char* provider = me.options().provider.c_str();
    const Info found = find_datagrams({}, provider);
    CHECK(found != nullptr);
    CHECK(found->ep_attr->type == FI_EP_DGRAM && (found->caps & FI_MULTICAST) != 0);
    CHECK(found->ep_attr->max_msg_size > 0 && found->ep_attr->max_msg_size <= 65507);
    // A second query with the first result as hints gives the same result.
    fi_info* again = nullptr;
    CHECK_RETURNS(0, fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, found.get(), &again));
    const Info second(again, &fi_freeinfo);
    CHECK(second->caps == found->caps && second->src_addrlen == found->src_addrlen);
    CHECK(std::memcmp(second->src_addr, found->src_addr, found->src_addrlen) == 0);
    CHECK(std::strcmp(second->fabric_attr->name, found->fabric_attr->name) == 0);
    // A datagram endpoint is offered only on request, and only with supported capabilities.
    int result = 0;
    for (const std::uint64_t caps : std::initializer_list<std::uint64_t>{
             FI_MSG, FI_MULTICAST, FI_MSG | FI_MULTICAST | FI_TAGGED, FI_MSG | FI_MULTICAST | FI_RMA}) {
        const Info none = find_datagrams({.caps = caps}, provider, &result);
        CHECK(none == nullptr && result == -FI_ENODATA);
    }
    for (int what = 0; what < 5; ++what) {
        const Info hints(fi_dupinfo(found.get()), &fi_freeinfo);
        if (what == 0) hints->ep_attr->max_msg_size = 1 << 20;
        if (what == 1) hints->domain_attr->cq_data_size = 8;
        if (what == 2) hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
        if (what == 3) hints->rx_attr->msg_order = FI_ORDER_SAS;
        if (what == 4) hints->tx_attr->iov_limit = 1000;
        CHECK_RETURNS(-FI_ENODATA, fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &again));
    }
}

// Every member is in the group; each in turn sends some messages, and the rest receive these messages
// together with the sender's address.
void all_but_sender(Member& me) {
    Node node({.op_flags = FI_MULTICAST}, me.options());
    Buffers buffers(node, 32);
    const auto mc = node.join(group(0));
    const std::string own = node.name();
    std::memcpy(me.board().places[me.rank()].address.data(), own.data(), own.size());
    me.meet();
    std::vector<fi_addr_t> sources(me.size());
    for (unsigned rank = 0; rank < me.size(); ++rank)
        CHECK_RETURNS(1, fi_av_insert(node.av.get(), me.board().places[rank].address.data(), 1,
                                      &sources[rank], 0, nullptr));
    for (unsigned round = 0; round < 8 * me.size(); ++round) {
        me.meet();
        const unsigned sender = round % me.size();
        if (me.rank() == sender) inject(node, label(sender, round), fi_mc_addr(mc.get()));
        if (me.rank() == sender) continue;
        fi_cq_tagged_entry entry{};
        fi_addr_t source = FI_ADDR_NOTAVAIL;
        CHECK_RETURNS(0, node.next(entry, &source));
        CHECK(entry.flags == (FI_RECV | FI_MSG | FI_MULTICAST));
        CHECK(buffers.take(entry) == label(sender, round));
        CHECK(source == sources[sender]);
    }
    me.meet();
    // No member receives its own messages, and none receives a message twice.
    CHECK(node.quiet_for(100));
    me.meet();
}

// More groups than the kernel allows per socket; one group is joined three times; half of the groups are left
// again.
void many_groups(Member& me) {
    constexpr unsigned kGroups = 60;
    Node node({}, me.options());
    Buffers buffers(node, 64);
    std::vector<Fid<fid_mc>> joined;
    for (unsigned i = 0; i < kGroups; ++i) joined.push_back(node.join(group(i)));
    auto twin = node.join(group(7));
    auto third = node.join(group(7));
    CHECK(fi_mc_addr(twin.get()) != fi_mc_addr(joined[7].get()));
    me.meet();
    const auto send_to_all = [&](unsigned from) {
        for (unsigned i = 0; i < kGroups; ++i) {
            me.meet();
            const fi_addr_t to = joined[i] ? fi_mc_addr(joined[i].get()) : FI_ADDR_NOTAVAIL;
            if (me.rank() == 0) send(node, label(i, from), to, FI_MULTICAST);
            if (me.rank() == 0 || i < from) continue;
            fi_cq_tagged_entry entry{};
            CHECK_RETURNS(0, node.next(entry));
            CHECK(buffers.take(entry) == label(i, from));
        }
    };
    send_to_all(0);
    twin.reset();
    // The other members of the group still receive.
    me.meet();
    if (me.rank() == 0) send(node, "seven", fi_mc_addr(third.get()), FI_MULTICAST);
    fi_cq_tagged_entry entry{};
    if (me.rank() != 0) CHECK_RETURNS(0, node.next(entry));
    if (me.rank() != 0) CHECK(buffers.take(entry) == "seven");
    third.reset();
    if (me.rank() != 0)
        for (unsigned i = 0; i < kGroups / 2; ++i) joined[i].reset();
    send_to_all(kGroups / 2);
    me.meet();
    CHECK(node.quiet_for(100));
    // A group can be joined again.
    if (me.rank() != 0) joined[3] = node.join(group(3));
    me.meet();
    if (me.rank() == 0) send(node, "back", fi_mc_addr(joined[3].get()), FI_MULTICAST);
    if (me.rank() != 0) CHECK_RETURNS(0, node.next(entry));
    if (me.rank() != 0) CHECK(buffers.take(entry) == "back");
    me.meet();
}

// Unicast in parallel with multicast, receive buffers too short, empty messages, cancelled receives, several
// pieces.
void unicast(Member& me) {
    Node node({}, me.options()), peer({.counters = true}, me.options());
    fi_addr_t to = FI_ADDR_NOTAVAIL, back = FI_ADDR_NOTAVAIL;
    CHECK_RETURNS(1, fi_av_insert(node.av.get(), peer.name().data(), 1, &to, 0, nullptr));
    CHECK_RETURNS(1, fi_av_insert(peer.av.get(), node.name().data(), 1, &back, 0, nullptr));
    std::array<char, 8> small{};
    std::array<char, 64> one{}, two{};
    int contexts[4];
    CHECK_RETURNS(0,
                  fi_recv(peer.ep.get(), small.data(), small.size(), nullptr, FI_ADDR_UNSPEC, &contexts[0]));
    const std::array<iovec, 2> pieces{iovec{one.data(), 3}, iovec{two.data(), two.size()}};
    CHECK_RETURNS(0, fi_recvv(peer.ep.get(), pieces.data(), nullptr, 2, FI_ADDR_UNSPEC, &contexts[1]));
    CHECK_RETURNS(0, fi_recv(peer.ep.get(), one.data(), one.size(), nullptr, FI_ADDR_UNSPEC, &contexts[2]));
    CHECK_RETURNS(0, fi_recv(peer.ep.get(), one.data(), one.size(), nullptr, FI_ADDR_UNSPEC, &contexts[3]));
    for (const char* text : {"too long for it", "abcdef", ""}) send(node, text, to, 0);
    fi_cq_tagged_entry entry{};
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    CHECK_RETURNS(FI_ETRUNC, peer.next(entry));
    CHECK(peer.last_error.op_context == &contexts[0] && peer.last_error.len == 8 &&
          peer.last_error.olen == 7);
    CHECK_RETURNS(0, peer.next(entry, &source));
    CHECK(entry.op_context == &contexts[1] && entry.len == 6 && source == back);
    CHECK(entry.flags == (FI_RECV | FI_MSG));
    CHECK(std::memcmp(one.data(), "abc", 3) == 0 && std::memcmp(two.data(), "def", 3) == 0);
    CHECK_RETURNS(0, peer.next(entry));
    CHECK(entry.op_context == &contexts[2] && entry.len == 0);
    CHECK_RETURNS(0, fi_cancel(&peer.ep->fid, &contexts[3]));
    CHECK_RETURNS(FI_ECANCELED, peer.next(entry));
    CHECK(peer.last_error.op_context == &contexts[3]);
    CHECK_RETURNS(-FI_ENOENT, fi_cancel(&peer.ep->fid, &contexts[3]));
    CHECK(fi_cntr_read(peer.received.get()) == 2 && fi_cntr_readerr(peer.received.get()) == 2);
    // A thread can sleep on the counter alone.
    CHECK_RETURNS(0, fi_recv(peer.ep.get(), one.data(), one.size(), nullptr, FI_ADDR_UNSPEC, &contexts[0]));
    CHECK_RETURNS(-FI_ETIMEDOUT, fi_cntr_wait(peer.received.get(), 3, 20));
    send(node, "counted", to, FI_COMPLETION);
    CHECK_RETURNS(0, fi_cntr_wait(peer.received.get(), 3, static_cast<int>(peer.wait_s) * 1000));
    CHECK_RETURNS(0, fi_inject(peer.ep.get(), "x", 1, back));
    CHECK(fi_cntr_read(peer.sent.get()) == 1);
    // The largest message, and one byte more.
    std::vector<char> large(node.info->ep_attr->max_msg_size + 1), into(large.size());
    std::iota(large.begin(), large.end(), '\1');
    CHECK_RETURNS(-FI_EMSGSIZE, fi_send(node.ep.get(), large.data(), large.size(), nullptr, to, nullptr));
    CHECK_RETURNS(0, peer.next(entry));
    CHECK_RETURNS(0, fi_recv(peer.ep.get(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, nullptr));
    CHECK_RETURNS(0, fi_send(node.ep.get(), large.data(), large.size() - 1, nullptr, to, nullptr));
    CHECK_RETURNS(0, peer.next(entry));
    CHECK(entry.len == large.size() - 1 && std::memcmp(into.data(), large.data(), entry.len) == 0);
}

// A send-only endpoint, a receive-only endpoint, and invalid calls.
void refusals(Member& me) {
    if (me.rank() != 0) return;
    Node node({}, me.options()), peer({}, me.options()), deaf({.events = false}, me.options());
    Buffers buffers(node, 4), peers_buffers(peer, 4);
    const auto sends = node.join(group(0), FI_SEND);
    const auto receives = peer.join(group(0), FI_RECV);
    CHECK_RETURNS(-FI_EINVAL, fi_send(node.ep.get(), "x", 1, nullptr, fi_mc_addr(sends.get()), nullptr));
    const iovec piece{const_cast<char*>("x"), 1};
    fi_msg message{&piece, nullptr, 1, 0, nullptr, 0};
    CHECK_RETURNS(-FI_EINVAL, fi_sendmsg(node.ep.get(), &message, FI_MULTICAST));
    message.addr = fi_mc_addr(receives.get());
    CHECK_RETURNS(-FI_EACCES, fi_sendmsg(peer.ep.get(), &message, FI_MULTICAST));
    message.addr = fi_mc_addr(sends.get());
    CHECK_RETURNS(-FI_EBADFLAGS, fi_sendmsg(node.ep.get(), &message, FI_MULTICAST | FI_REMOTE_CQ_DATA));
    send(node, "one way", fi_mc_addr(sends.get()), FI_MULTICAST);
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(0, peer.next(entry));
    CHECK(peers_buffers.take(entry) == "one way");
    // No group; no port; another address family; no event queue; closing an object in use.
    fid_mc* mc = nullptr;
    sockaddr_storage where = group(1);
    auto& ip = reinterpret_cast<sockaddr_in&>(where);
    const auto port = std::exchange(ip.sin_port, 0);
    CHECK_RETURNS(-FI_EINVAL, fi_join(node.ep.get(), &where, 0, &mc, nullptr));
    ip.sin_port = port;
    ip.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_RETURNS(-FI_EINVAL, fi_join(node.ep.get(), &where, 0, &mc, nullptr));
    where.ss_family = AF_INET6;
    CHECK_RETURNS(-FI_EINVAL, fi_join(node.ep.get(), &where, 0, &mc, nullptr));
    CHECK_RETURNS(-FI_EINVAL, fi_join(node.ep.get(), nullptr, 0, &mc, nullptr));
    where = group(1);
    CHECK_RETURNS(-FI_EBADFLAGS, fi_join(node.ep.get(), &where, FI_PEEK, &mc, nullptr));
    CHECK_RETURNS(-FI_ENOEQ, fi_join(deaf.ep.get(), &where, 0, &mc, nullptr));
    CHECK_RETURNS(-FI_EBUSY, fi_close(&node.ep->fid));
    CHECK_RETURNS(-FI_EBUSY, fi_close(&node.cq->fid));
    CHECK_RETURNS(-FI_EBUSY, fi_close(&node.domain->fid));
    CHECK_RETURNS(-FI_ENOSYS, fi_tsend(node.ep.get(), "x", 1, nullptr, 0, 0, nullptr));
    // An address in use is reported when the endpoint is enabled.
    fid_ep* second = nullptr;
    Info info(fi_dupinfo(node.info.get()), &fi_freeinfo);
    const std::string own = node.name();
    std::memcpy(info->src_addr, own.data(), own.size());
    CHECK_RETURNS(0, fi_endpoint(node.domain.get(), info.get(), &second, nullptr));
    const Fid<fid_ep> closes(second);
    CHECK_RETURNS(-FI_ENOAV, fi_enable(second));
    CHECK_RETURNS(0, fi_ep_bind(second, &node.av->fid, 0));
    CHECK_RETURNS(-FI_ENOCQ, fi_enable(second));
    CHECK_RETURNS(0, fi_ep_bind(second, &node.cq->fid, FI_TRANSMIT | FI_RECV));
    CHECK_RETURNS(-FI_EADDRINUSE, fi_enable(second));
}

// The system has no descriptor for the group's socket: the event queue reports it, and existing groups
// continue.
void join_fails(Member& me) {
    if (me.rank() != 0) return;
    Node node({}, me.options()), peer({}, me.options());
    Buffers buffers(peer, 4);
    const auto before = node.join(group(0));
    const auto membership = peer.join(group(0));
    rlimit limit{};
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    rlimit none = limit;
    none.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    Fid<fid_mc> failed;
    const int error = node.join(group(1), failed);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(error == FI_EMFILE);
    const iovec piece{const_cast<char*>("x"), 1};
    const fi_msg message{&piece, nullptr, 1, fi_mc_addr(failed.get()), nullptr, 0};
    CHECK_RETURNS(-FI_EACCES, fi_sendmsg(node.ep.get(), &message, FI_MULTICAST));
    failed.reset();
    const auto after = node.join(group(1));
    send(node, "still there", fi_mc_addr(before.get()), FI_MULTICAST);
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(0, peer.next(entry));
    CHECK(buffers.take(entry) == "still there");
}

// Wait descriptors: a message wakes a thread with a posted buffer, and does not keep a thread without one
// awake.
void by_descriptor(Member& me) {
    if (me.rank() != 0) return;
    Node node({}, me.options()), peer({}, me.options());
    const auto mc = node.join(group(0));
    const auto membership = peer.join(group(0));
    int descriptor = -1;
    CHECK_RETURNS(0, fi_control(&peer.cq->fid, FI_GETWAIT, &descriptor));
    fid* queue = &peer.cq->fid;
    send(node, "early", fi_mc_addr(mc.get()), FI_MULTICAST);
    CHECK_RETURNS(0, fi_trywait(peer.fabric.get(), &queue, 1));
    pollfd waiting{descriptor, POLLIN, 0};
    CHECK(poll(&waiting, 1, 50) == 0);
    std::array<char, 64> into{};
    CHECK_RETURNS(0, fi_recv(peer.ep.get(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, nullptr));
    CHECK(poll(&waiting, 1, static_cast<int>(peer.wait_s) * 1000) == 1);
    CHECK_RETURNS(-FI_EAGAIN, fi_trywait(peer.fabric.get(), &queue, 1));
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(1, fi_cq_read(peer.cq.get(), &entry, 1));
    CHECK(std::string(into.data(), entry.len) == "early");
    CHECK_RETURNS(0, fi_trywait(peer.fabric.get(), &queue, 1));
    CHECK_RETURNS(0, fi_cq_signal(peer.cq.get()));
    CHECK(poll(&waiting, 1, static_cast<int>(peer.wait_s) * 1000) == 1);
}

// Successful operations complete only on request; a queue has other formats; a full queue loses no
// completion.
void queues(Member& me) {
    if (me.rank() != 0) return;
    Node node({.queue_format = FI_CQ_FORMAT_MSG, .bind_flags = FI_SELECTIVE_COMPLETION}, me.options());
    Node peer({.queue_format = FI_CQ_FORMAT_CONTEXT}, me.options());
    fi_addr_t to = FI_ADDR_NOTAVAIL;
    CHECK_RETURNS(1, fi_av_insert(node.av.get(), peer.name().data(), 1, &to, 0, nullptr));
    std::array<char, 64> into{};
    for (int i = 0; i < 3; ++i)
        CHECK_RETURNS(
            0, fi_recv(peer.ep.get(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, &into[0] + i));
    const iovec piece{const_cast<char*>("word"), 4};
    const fi_msg message{&piece, nullptr, 1, to, &into, 0};
    CHECK_RETURNS(0, fi_send(node.ep.get(), "silent", 6, nullptr, to, nullptr));
    fi_cq_msg_entry completion{};
    CHECK_RETURNS(-FI_EAGAIN, fi_cq_read(node.cq.get(), &completion, 1));
    CHECK_RETURNS(0, fi_sendmsg(node.ep.get(), &message, FI_COMPLETION));
    CHECK_RETURNS(1, fi_cq_read(node.cq.get(), &completion, 1));
    CHECK(completion.op_context == &into && completion.len == 4 && completion.flags == (FI_SEND | FI_MSG));
    for (int i = 0; i < 2; ++i) {
        fi_cq_entry entry{};
        CHECK_RETURNS(1,
                      fi_cq_sread(peer.cq.get(), &entry, 1, nullptr, static_cast<int>(peer.wait_s) * 1000));
        CHECK(entry.op_context == &into[0] + i);
    }
    // 1024 sends fill the queue. No endpoint receives them: datagrams may be dropped.
    Node busy({}, me.options());
    CHECK_RETURNS(1, fi_av_insert(busy.av.get(), peer.name().data(), 1, &to, 0, nullptr));
    long rc = 0;
    unsigned sent = 0;
    for (; rc == 0 && sent < 5000; ++sent) rc = fi_send(busy.ep.get(), "x", 1, nullptr, to, nullptr);
    CHECK(rc == -FI_EAGAIN && sent == 1025);
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(0, busy.next(entry));
    CHECK_RETURNS(0, fi_send(busy.ep.get(), "x", 1, nullptr, to, nullptr));
}

// Sends and receives over IPv6; skipped on a machine without an interface with IPv6 and multicast.
void version_6(Member& me) {
    if (me.rank() != 0) return;
    const Wish wish{.format = FI_SOCKADDR_IN6, .node = ""};
    const Info found = find_datagrams(wish, me.options().provider.c_str());
    if (found == nullptr || std::strcmp(found->domain_attr->name, "lo") == 0) return;
    Node node(wish, me.options()), peer(wish, me.options());
    Buffers buffers(peer, 4);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(20000 + getppid() % 10000));
    CHECK(inet_pton(AF_INET6, "ff12::4d43", &address.sin6_addr) == 1);
    sockaddr_storage where{};
    std::memcpy(&where, &address, sizeof address);
    const auto mc = node.join(where);
    const auto membership = peer.join(where);
    fi_addr_t source = FI_ADDR_NOTAVAIL, sender = FI_ADDR_UNSPEC;
    CHECK_RETURNS(1, fi_av_insert(peer.av.get(), node.name().data(), 1, &sender, 0, nullptr));
    send(node, "six", fi_mc_addr(mc.get()), FI_MULTICAST);
    fi_cq_tagged_entry entry{};
    CHECK_RETURNS(0, peer.next(entry, &source));
    CHECK(buffers.take(entry) == "six" && source == sender);
}

}  // namespace

int main(int argc, char** argv) {
    Program program("fi_mcc_datagram", "Datagram endpoints with multicast over UDP");
    program.add({.name = "what is offered", .body = offers});
    program.add({.name = "all members but the sender receive a message", .body = all_but_sender});
    program.add({.name = "many groups", .body = many_groups});
    program.add({.name = "unicast", .body = unicast, .members = 2});
    program.add({.name = "refusals", .body = refusals, .members = 2});
    program.add({.name = "a join that fails", .body = join_fails, .members = 2});
    program.add({.name = "descriptors", .body = by_descriptor, .members = 2});
    program.add({.name = "queues", .body = queues, .members = 2});
    program.add({.name = "IPv6", .body = version_6, .members = 2});
    return program.run(argc, argv);
}
