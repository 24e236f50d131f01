// fi_mcc_exchange NAME COUNT [PORT]: reliable multicast messages between two processes that share nothing but
// a group's address, such as those of two processors. Each greets until it hears the other, sends COUNT
// messages, and checks every byte of the other's, in order. NAME is one letter.
#include <cstdio>
#include <cstdlib>

#include "functional/datagram_node.h"

namespace {

using namespace mcastcoll::fabtest;

constexpr std::size_t kRoom = 8192, kPosted = 64, kHead = 5;
constexpr std::uint32_t kGreeting = ~0U;
constexpr std::chrono::milliseconds kGreetAgain{50};
constexpr std::chrono::minutes kPatience{3};

// The name, the number with its highest byte first, and bytes that depend on both.
std::vector<std::byte> message(unsigned char name, std::uint32_t number) {
    std::vector<std::byte> bytes(kHead + (number == kGreeting ? 0 : number % 64 == 63 ? 7000 : number % 200));
    bytes[0] = std::byte{name};
    for (unsigned i = 0; i < 4; ++i) bytes[1 + i] = static_cast<std::byte>(number >> (24 - 8 * i));
    for (std::size_t i = kHead; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(name + 31 * number + 7 * i);
    return bytes;
}

class Exchange {
  public:
    Exchange(unsigned char name, std::uint32_t count, std::uint16_t port)
        : name_(name), count_(count), node_({.type = FI_EP_RDM, .op_flags = FI_MULTICAST}, Options{}) {
        for (std::size_t i = 0; i < kPosted; ++i) post(room_.data() + i * kRoom);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(0xef4d0000U + port);
        sockaddr_storage group{};
        std::memcpy(&group, &address, sizeof address);
        group_ = node_.join(group);
    }
    void run() {
        const auto deadline = Clock::now() + kPatience;
        auto greet_at = Clock::now();
        while (sent_ < count_ || heard_ < count_) {
            if (Clock::now() > deadline) fail("{} sent, {} heard after three minutes", sent_, heard_);
            if (!met_ && Clock::now() >= greet_at && send(kGreeting)) greet_at = Clock::now() + kGreetAgain;
            if (met_ && sent_ < count_ && send(sent_)) ++sent_;
            while (read(met_ && sent_ < count_ ? 0 : 5)) {
            }
        }
        group_.reset();  // which waits until the other has all
        std::printf("%c: %u messages sent, %u heard, every byte right\n", name_, sent_, heard_);
    }

  private:
    void post(std::byte* at) {
        CHECK_RETURNS(0, fi_recv(node_.ep.get(), at, kRoom, nullptr, FI_ADDR_UNSPEC, at));
    }
    bool send(std::uint32_t number) {
        const auto bytes = message(name_, number);
        const ssize_t rc = fi_inject(node_.ep.get(), bytes.data(), bytes.size(), fi_mc_addr(group_.get()));
        if (rc != -FI_EAGAIN) CHECK_RETURNS(0, rc);
        return rc == 0;
    }
    bool read(int wait_ms) {
        fi_cq_tagged_entry entry{};
        const ssize_t got = fi_cq_sread(node_.cq.get(), &entry, 1, nullptr, wait_ms);
        if (got == -FI_EAGAIN || got == -FI_EINTR) return false;
        CHECK_RETURNS(1, got);
        if ((entry.flags & FI_SEND) != 0) return true;
        auto* at = static_cast<std::byte*>(entry.op_context);
        CHECK(entry.len >= kHead && at[0] != std::byte{name_});
        const auto other = std::to_integer<unsigned char>(at[0]);
        const std::vector<std::byte> bytes(at, at + entry.len);
        if (bytes != message(other, kGreeting)) {
            if (bytes != message(other, heard_)) fail("message {} of {:c} is wrong", heard_, other);
            ++heard_;
        }
        met_ = true;
        post(at);
        return true;
    }

    const unsigned char name_;
    const std::uint32_t count_;
    std::uint32_t sent_ = 0, heard_ = 0;
    bool met_ = false;
    std::vector<std::byte> room_ = std::vector<std::byte>(kPosted * kRoom);
    Node node_;
    Fid<fid_mc> group_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return std::fprintf(stderr, "usage: fi_mcc_exchange NAME COUNT [PORT]\n"), 2;
    const auto number = [&](int i, unsigned long otherwise) {
        return argc > i ? std::strtoul(argv[i], nullptr, 10) : otherwise;
    };
    try {
        Exchange(static_cast<unsigned char>(argv[1][0]), static_cast<std::uint32_t>(number(2, 0)),
                 static_cast<std::uint16_t>(number(3, 20007)))
            .run();
    } catch (const std::exception& error) {
        return std::fprintf(stderr, "fi_mcc_exchange: %s\n", error.what()), 1;
    }
    return 0;
}
