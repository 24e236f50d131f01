#include "datagram/address_vector.h"

#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace mcastcoll::datagram {
namespace {

std::string describe(const void* raw) {
    // Reads no more bytes than the address family needs.
    const auto address = transport::SocketAddress::from(static_cast<const sockaddr*>(raw),
                                                        transport::SocketAddress::capacity());
    if (!address) return {};
    const char* family = address.value().family() == AF_INET ? "fi_sockaddr_in" : "fi_sockaddr_in6";
    return fmt::format("{}://{}", family, address.value());
}

const char* to_text(fid_av*, const void* raw, char* buffer, std::size_t* length) noexcept {
    std::string text;
    if (raw == nullptr || length == nullptr || !provider::succeeds([&] { text = describe(raw); }) ||
        text.empty())
        return nullptr;
    if (buffer != nullptr) std::snprintf(buffer, *length, "%s", text.c_str());
    *length = text.size() + 1;
    return buffer;
}

}  // namespace

Result<transport::SocketAddress> resolve(const char* node, const char* service, int family, bool passive,
                                         bool numeric) {
    addrinfo hints{};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_DGRAM;
    hints.ai_flags = (passive ? AI_PASSIVE : 0) | (numeric ? AI_NUMERICHOST : 0);
    addrinfo* raw = nullptr;
    if (const int rc = ::getaddrinfo(node, service, &hints, &raw); rc != 0)
        return Error{rc == EAI_MEMORY ? FI_ENOMEM : FI_ENODATA,
                     fmt::format("{}:{}: {}", node != nullptr ? node : "", service != nullptr ? service : "",
                                 ::gai_strerror(rc))};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
    return transport::SocketAddress::from(list->ai_addr, list->ai_addrlen);
}

bool write_address(const transport::SocketAddress& address, void* buffer, std::size_t& length) {
    const std::size_t room = length;
    length = address.size();
    if (room > 0) std::memcpy(buffer, address.data(), std::min(room, length));
    return room >= length;
}

int AddressVector::open(Domain& domain, fi_av_attr* attr, fid_av** av, void* context) {
    // Operations that newer versions of libfabric add are left null.
    static fi_ops_av ops = [] {
        fi_ops_av made{};
        made.size = sizeof made;
        made.insert = kCall<&AddressVector::insert>;
        made.insertsvc = kCall<&AddressVector::insert_service>;
        made.insertsym = kRefuse;
        made.remove = kCall<&AddressVector::remove>;
        made.lookup = kCall<&AddressVector::lookup>;
        made.straddr = &to_text;
        made.av_set = kRefuse;
        return made;
    }();
    if (attr == nullptr || av == nullptr || attr->rx_ctx_bits != 0) return -FI_EINVAL;
    // The vector is neither shared between processes nor filled asynchronously.
    if (attr->name != nullptr || attr->flags != 0) return -FI_ENOSYS;
    if (attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
    auto made = std::make_shared<AddressVector>(domain.shared_from_this(), context);
    made->fid_av::ops = &ops;
    return made->give_to(*av);
}

const transport::SocketAddress* AddressVector::find(fi_addr_t address) const {
    return address < addresses_.size() && addresses_[address].valid() ? &addresses_[address] : nullptr;
}

fi_addr_t AddressVector::find(const transport::SocketAddress& address) const {
    const auto found = numbers_.find(address);
    return found != numbers_.end() ? found->second : FI_ADDR_NOTAVAIL;
}

fi_addr_t AddressVector::add(const transport::SocketAddress& address) {
    // A multicast group gets its fi_addr_t from fi_join().
    if (!address.valid() || address.is_multicast() || address.port() == 0) return FI_ADDR_NOTAVAIL;
    // Steps that may fail for lack of memory come first.
    if (free_.empty()) {
        addresses_.emplace_back();
        free_.push_back(addresses_.size() - 1);
    }
    const fi_addr_t number = free_.back();
    numbers_.emplace(address, number);
    free_.pop_back();
    addresses_[number] = address;
    return number;
}

int AddressVector::insert(const void* address, std::size_t count, fi_addr_t* numbers, std::uint64_t flags,
                          void* context) {
    const bool reports = (flags & FI_SYNC_ERR) != 0;
    if ((flags & ~std::uint64_t{FI_MORE | FI_SYNC_ERR}) != 0) return -FI_EBADFLAGS;
    if (count > 0 && address == nullptr) return -FI_EINVAL;
    if (reports && context == nullptr) return -FI_EINVAL;
    const auto* at = static_cast<const std::byte*>(address);
    std::size_t stride = transport::SocketAddress::capacity();
    const std::lock_guard lock(parent().mutex);
    int inserted = 0;
    for (std::size_t i = 0; i < count; ++i, at += stride) {
        const auto one = transport::SocketAddress::from_bytes({at, stride});
        // All addresses of an array belong to one family, so the first determines the length of each.
        if (i == 0) stride = one ? one.value().size() : 0;
        const fi_addr_t number = one ? add(one.value()) : FI_ADDR_NOTAVAIL;
        if (numbers != nullptr) numbers[i] = number;
        if (number != FI_ADDR_NOTAVAIL) ++inserted;
        if (reports) static_cast<int*>(context)[i] = number != FI_ADDR_NOTAVAIL ? 0 : FI_EINVAL;
    }
    return inserted;
}

int AddressVector::insert_service(const char* node, const char* service, fi_addr_t* number,
                                  std::uint64_t flags, void* context) {
    if (node == nullptr || service == nullptr) return -FI_EINVAL;
    auto address = resolve(node, service, AF_UNSPEC, false, false);
    if (!address) return -address.error().code;
    return insert(address.value().data(), 1, number, flags, context);
}

int AddressVector::remove(fi_addr_t* numbers, std::size_t count, std::uint64_t flags) {
    if (flags != 0) return -FI_EBADFLAGS;
    if (count > 0 && numbers == nullptr) return -FI_EINVAL;
    const std::lock_guard lock(parent().mutex);
    for (std::size_t i = 0; i < count; ++i) {
        const transport::SocketAddress* address = find(numbers[i]);
        if (address == nullptr) return -FI_EINVAL;
        const transport::SocketAddress gone = *address;
        free_.push_back(numbers[i]);
        addresses_[numbers[i]] = transport::SocketAddress();
        if (find(gone) != numbers[i]) continue;
        // The address may have been inserted twice.
        numbers_.erase(gone);
        const auto twin = std::find(addresses_.begin(), addresses_.end(), gone);
        if (twin != addresses_.end())
            numbers_.emplace(gone, static_cast<fi_addr_t>(twin - addresses_.begin()));
    }
    return 0;
}

int AddressVector::lookup(fi_addr_t number, void* buffer, std::size_t* length) {
    if (length == nullptr || (*length > 0 && buffer == nullptr)) return -FI_EINVAL;
    const std::lock_guard lock(parent().mutex);
    const transport::SocketAddress* address = find(number);
    if (address == nullptr) return -FI_EINVAL;
    write_address(*address, buffer, *length);
    return 0;
}

}  // namespace mcastcoll::datagram
