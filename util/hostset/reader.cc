#include "hostset/reader.h"

#include <cstddef>

#include "wire/bytes.h"

namespace mcastcoll::hostset {

std::string_view Reader::take(std::size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
}

std::uint64_t Reader::number() {
    const std::string_view bytes = take(sizeof(std::uint64_t));
    return ok_ ? wire::get<std::uint64_t>(reinterpret_cast<const std::byte*>(bytes.data())) : 0;
}

std::string_view Reader::text() {
    return take(number());
}

}  // namespace mcastcoll::hostset
