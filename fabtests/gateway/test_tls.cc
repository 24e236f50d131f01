// TLS on a stream: two ends over a pair of sockets.
#include <criterion/criterion.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/file_descriptor.h"
#include "gateway/tls.h"
#include "gateway/tls_context.h"

using namespace mcastcoll;
using namespace mcastcoll::gateway;

namespace {

constexpr std::size_t kRecord = 16 * 1024;
// The size of a key update: record header, message, content type, tag.
constexpr std::size_t kUpdateSize = 5 + 5 + 1 + 16;

wire::Key secret(int first) {
    wire::Key made;
    made.fill(std::byte(first));
    return made;
}

struct Pair {
    Pair(const TlsContext& connector, const TlsContext& acceptor, const std::string& to = "rennes") {
        std::array<int, 2> both;
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both.data()), 0);
        near = FileDescriptor(both[0]);
        far = FileDescriptor(both[1]);
        connecting.emplace(connector, near.get(), to);
        accepting.emplace(acceptor, far.get(), Bytes());
    }
    // Runs the handshake as far as both ends get.
    void shake_hands() {
        for (int i = 0; i < 4; ++i)
            for (Tls* one : {&*connecting, &*accepting})
                if (!one->is_ready() && one->failure().empty()) {
                    one->shake_hands();
                    cr_assert(one->flush());
                }
    }

    FileDescriptor near, far;
    std::optional<Tls> connecting, accepting;
};

std::vector<std::byte> some_bytes(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(i * 31 + i / 251);
    return bytes;
}

// Sends bytes in pieces of one record, and returns the number of bytes on the socket.
std::size_t carry(Tls& from, Tls& to, Bytes bytes) {
    std::vector<std::byte> got(bytes.size() + 1);
    std::size_t arrived = 0, sent = 0;
    for (std::size_t at = 0; at < bytes.size(); at += kRecord) {
        cr_assert(from.write(bytes.subspan(at, std::min(kRecord, bytes.size() - at))));
        sent += from.outgoing().size();
        cr_assert(from.flush());
        const Tls::Taken taken = to.read(MutableBytes(got).subspan(arrived), false);
        cr_assert_eq(taken.progress, Tls::Progress::waiting, "%s", to.failure().c_str());
        arrived += taken.size;
    }
    cr_assert_eq(arrived, bytes.size());
    cr_assert(std::equal(bytes.begin(), bytes.end(), got.begin()));
    return sent;
}

}  // namespace

Test(tls, gateways_with_the_same_key_know_each_other) {
    const TlsContext lyon(secret(1), "lyon", {"rennes", "nancy"}),
        rennes(secret(1), "rennes", {"lyon", "nancy"});
    Pair pair(lyon, rennes);
    pair.shake_hands();
    cr_assert(pair.connecting->is_ready() && pair.accepting->is_ready());
    cr_assert(pair.connecting->peer() == "rennes" && pair.accepting->peer() == "lyon");
    const auto bytes = some_bytes(500'000);
    carry(*pair.connecting, *pair.accepting, bytes);
    carry(*pair.accepting, *pair.connecting, bytes);
    pair.near.reset();
    std::array<std::byte, 1> room;
    cr_assert_eq(pair.accepting->read(room, true).progress, Tls::Progress::closed);
}

Test(tls, other_keys_are_refused) {
    const TlsContext lyon(secret(1), "lyon", {"rennes", "nancy"}),
        rennes(secret(1), "rennes", {"lyon", "nancy"}), other_key(secret(2), "lyon", {"rennes"}),
        other_site(secret(1), "paris", {"rennes"});
    for (const TlsContext* foreign : {&other_key, &other_site}) {
        Pair pair(*foreign, rennes);
        pair.shake_hands();
        cr_assert_not(pair.accepting->is_ready() || pair.connecting->is_ready());
        cr_assert_not(pair.accepting->failure().empty());
    }
    Pair another(lyon, rennes, "nancy");  // but the connection reached rennes
    another.shake_hands();
    cr_assert_not(another.accepting->is_ready() || another.connecting->is_ready());
}

Test(tls, keys_are_renewed_in_time) {
    const auto bytes = some_bytes(100 * kRecord);
    const auto length = [&](std::uint64_t records_per_key) {
        const TlsContext lyon(secret(1), "lyon", {"rennes"}, records_per_key),
            rennes(secret(1), "rennes", {"lyon"}, records_per_key);
        Pair pair(lyon, rennes);
        pair.shake_hands();
        carry(*pair.accepting, *pair.connecting, some_bytes(1));
        return carry(*pair.connecting, *pair.accepting, bytes);
    };
    // A piece of a record may take two records, and counts as two.
    cr_assert_eq(length(20), length(kRecordsPerKey) + 10 * kUpdateSize);
}

Test(tls, a_flipped_bit_ends_the_stream) {
    const TlsContext lyon(secret(1), "lyon", {"rennes"}), rennes(secret(1), "rennes", {"lyon"});
    for (std::size_t turned : {0U, 4U, 5U, 50U, 120U}) {
        Pair pair(lyon, rennes);
        pair.shake_hands();
        cr_assert(pair.connecting->write(some_bytes(100)));
        cr_assert_gt(pair.connecting->outgoing().size(), turned);
        pair.connecting->outgoing()[turned] ^= (turned == 4 ? std::byte{2} : std::byte{0x80});
        cr_assert(pair.connecting->flush());
        pair.near.reset();  // the receiver would wait for a record that claims to be longer
        std::array<std::byte, 200> room;
        const Tls::Taken taken = pair.accepting->read(room, true);
        cr_assert_eq(taken.size, 0U);
        cr_assert(taken.progress == Tls::Progress::failed || taken.progress == Tls::Progress::closed,
                  "byte %zu", turned);
    }
}
