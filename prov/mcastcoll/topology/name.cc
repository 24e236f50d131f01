#include "topology/name.h"

#include <algorithm>

namespace mcastcoll::topology {

Name::Name(std::string_view text) {
    size_ = static_cast<std::uint8_t>(std::min(text.size(), kMax));
    std::transform(text.begin(), text.begin() + size_, text_.begin(),
                   [](char c) { return c > ' ' && c < '\x7f' ? c : '?'; });
    if (text.size() > kMax) text_[kMax - 2] = text_[kMax - 1] = '.';
}

}  // namespace mcastcoll::topology
