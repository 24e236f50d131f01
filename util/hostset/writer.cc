#include "hostset/writer.h"

#include <array>
#include <cstddef>

#include "wire/bytes.h"

namespace mcastcoll::hostset {

Writer& Writer::number(std::uint64_t value) {
    std::array<std::byte, sizeof value> bytes;
    wire::put(bytes.data(), value);
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return *this;
}

Writer& Writer::text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
    return *this;
}

}  // namespace mcastcoll::hostset
