#include "hostset/sealer.h"

#include "hostset/encoding.h"
#include "hostset/writer.h"
#include "wire/bytes.h"

namespace mcastcoll::hostset {

std::string Sealer::tag_of(const wire::Key& key, std::uint64_t number, std::string_view message) {
    std::string numbered = Writer().number(number).take();
    numbered.append(message);
    const wire::Key whole = wire::hmac(key, bytes_of(numbered));
    return {reinterpret_cast<const char*>(whole.data()), kTagBytes};
}

std::string Sealer::seal(std::string_view message) {
    std::string sealed(kLengthBytes, '\0');
    wire::put(reinterpret_cast<std::byte*>(sealed.data()), static_cast<std::uint32_t>(message.size()));
    sealed += tag_of(key_, number_++, message);
    sealed.append(message);
    return sealed;
}

}  // namespace mcastcoll::hostset
