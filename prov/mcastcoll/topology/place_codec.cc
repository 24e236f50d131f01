#include "topology/place_codec.h"

#include <algorithm>
#include <cassert>

#include "wire/bytes.h"

namespace mcastcoll::topology {
namespace {

constexpr std::uint8_t kPlaceVersion = 1;

// Reads past the end yield zeros and make good() false.
class Reader {
  public:
    explicit Reader(Bytes bytes) : rest_(bytes) {}
    template <typename Unsigned>
    Unsigned number() {
        if (rest_.size() < sizeof(Unsigned)) return good_ = false, Unsigned{0};
        const auto value = wire::get<Unsigned>(rest_.data());
        rest_ = rest_.subspan(sizeof(Unsigned));
        return value;
    }
    Name name() {
        const std::size_t length = number<std::uint8_t>();
        if (length > Name::kMost || length > rest_.size()) return good_ = false, Name{};
        std::array<char, Name::kMost> text{};
        std::transform(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(length), text.begin(),
                       [](std::byte byte) { return static_cast<char>(byte); });
        rest_ = rest_.subspan(length);
        return Name({text.data(), length});
    }
    bool good() const { return good_; }
    bool finished() const { return good_ && rest_.empty(); }

  private:
    Bytes rest_;
    bool good_ = true;
};

}  // namespace

EncodedPlace encode(const Place& place) {
    EncodedPlace out;
    const auto number = [&out](auto value) {
        wire::put(out.bytes_.data() + out.size_, value);
        out.size_ += sizeof value;
    };
    number(kPlaceVersion);
    number(static_cast<std::uint8_t>(place.depth() - 1));
    for (std::size_t i = 1; i < kLevels; ++i) {
        const auto& coordinate = place.at(level_of(i));
        if (!coordinate) continue;
        number(static_cast<std::uint8_t>(i));
        if (is_inside_host(level_of(i))) {
            assert(coordinate->id <= UINT32_MAX);
            number(static_cast<std::uint32_t>(coordinate->id));
            continue;
        }
        const std::string_view name = coordinate->name.view();
        number(coordinate->id);
        number(static_cast<std::uint8_t>(name.size()));
        for (const char c : name) number(static_cast<std::uint8_t>(c));
    }
    return out;
}

std::optional<Place> decode_place(Bytes bytes) {
    Reader in(bytes);
    if (in.number<std::uint8_t>() != kPlaceVersion) return std::nullopt;
    const std::size_t count = in.number<std::uint8_t>();
    Place place;
    std::size_t last = 0;  // the wan, which no place names
    for (std::size_t i = 0; i < count && in.good(); ++i) {
        const std::size_t at = in.number<std::uint8_t>();
        if (at <= last || at >= kLevels) return std::nullopt;
        last = at;
        const Level level = level_of(at);
        if (is_inside_host(level)) {
            place.set(level, in.number<std::uint32_t>());
        } else {
            const auto id = in.number<std::uint64_t>();
            place.set(level, id, in.name().view());
        }
    }
    if (!in.finished()) return std::nullopt;
    return place;
}

}  // namespace mcastcoll::topology
