#include "hostset/opener.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hostset/encoding.h"
#include "hostset/sealer.h"
#include "wire/bytes.h"

namespace mcastcoll::hostset {

Result<std::optional<std::string>> Opener::next() {
    constexpr std::size_t kHeaderBytes = Sealer::kLengthBytes + Sealer::kTagBytes;
    if (waiting_.size() < kHeaderBytes) return std::optional<std::string>();
    const auto length = wire::get<std::uint32_t>(reinterpret_cast<const std::byte*>(waiting_.data()));
    if (length > max_) return Error{EMSGSIZE, fmt::format("a message of {} bytes", length)};
    if (waiting_.size() < kHeaderBytes + length) return std::optional<std::string>();
    std::string message = waiting_.substr(kHeaderBytes, length);
    const std::string tag = Sealer::tag_of(key_, number_++, message);
    if (!wire::are_equal(bytes_of(tag), bytes_of(waiting_).subspan(Sealer::kLengthBytes, Sealer::kTagBytes)))
        return Error{EBADMSG, "a message without the host set's token"};
    waiting_.erase(0, kHeaderBytes + length);
    return std::optional(std::move(message));
}

}  // namespace mcastcoll::hostset
