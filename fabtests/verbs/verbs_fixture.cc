#include "verbs_fixture.h"

#include <criterion/criterion.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "transport/socket_address.h"
#include "transport/verbs_address.h"

namespace mcastcoll::test {

transport::VerbsOptions options_of_device(std::size_t index) {
    if (transport::open_verbs({}).error().code == ENOSYS) cr_skip_test("built without rdma-core");
    if (const std::string why = transport::why_no_rdma(); !why.empty()) cr_skip_test("%s", why.c_str());
    auto interfaces = transport::list_interfaces();
    cr_assert(interfaces.ok());
    for (const transport::Interface& interface : interfaces.value()) {
        transport::VerbsOptions options;
        options.interface = interface;
        options.receives = 64;
        if (!interface.v4 || !transport::open_verbs(options)) continue;
        options.receives = transport::VerbsOptions().receives;
        if (index-- == 0) return options;
    }
    cr_skip_test("too few interfaces have RDMA devices");
    return {};
}

VerbsOwner open_or_fail(const transport::VerbsOptions& options) {
    auto opened = transport::open_verbs(options);
    cr_assert(opened.ok(), "%s", opened.ok() ? "" : opened.error().message.c_str());
    return std::move(opened).value();
}

transport::Membership join_or_fail(transport::VerbsTransport& hub, const transport::SocketAddress& group) {
    auto joined = hub.join(group);
    cr_assert(joined.ok(), "%s", joined.ok() ? "" : joined.error().message.c_str());
    return std::move(joined).value();
}

transport::SocketAddress group_number(std::uint32_t n) {
    return transport::range_group_address(4, static_cast<GroupKey>(getpid()), 7, n, 0);
}

std::string bytes_of(std::size_t size, unsigned seed) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + seed * 17 + i / 256);
    return bytes;
}

void say(transport::VerbsTransport& hub, const transport::SocketAddress& group, const std::string& text) {
    // Sends the datagram in two parts, like a header and a payload.
    const Bytes bytes = std::as_bytes(std::span(text));
    const std::size_t head = std::min<std::size_t>(bytes.size(), 24);
    const transport::Datagram datagram{bytes.first(head), bytes.subspan(head)};
    cr_assert(eventually([&] { return hub.send(std::span(&datagram, 1), {group, false}).accepted == 1; }));
}

std::vector<Received> receive(transport::VerbsTransport& hub, std::size_t count) {
    std::vector<Received> received;
    eventually([&] {
        hub.receive(Nanoseconds{}, [&](Bytes bytes, const transport::SocketAddress& source) {
            received.push_back(
                {std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), source});
        });
        return received.size() >= count;
    });
    return received;
}

std::vector<Received> receive_until(transport::VerbsTransport& hub, const std::string& mark) {
    std::vector<Received> received;
    bool marked = false;
    eventually([&] {
        hub.receive(Nanoseconds{}, [&](Bytes bytes, const transport::SocketAddress& source) {
            std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            marked = marked || text == mark;
            if (!marked) received.push_back({std::move(text), source});
        });
        return marked;
    });
    cr_assert(marked, "\"%s\" does not come", mark.c_str());
    return received;
}

bool eventually(const std::function<bool()>& ready) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
        if (ready()) return true;
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace mcastcoll::test
