#include "cp/unpacker.h"

#include <algorithm>
#include <cerrno>

namespace mcastcoll::cp {

Unpacker::Unpacker(std::string_view chunk) : rest_(chunk.substr(std::min(chunk.size(), kHeaderBytes))) {}

Result<std::optional<Record>> Unpacker::next() {
    if (rest_.empty()) return std::optional<Record>();
    if (rest_.size() < kHeadBytes || static_cast<unsigned char>(rest_[0]) > static_cast<unsigned>(Act::end))
        return Error{EBADMSG, "invalid data instead of a chunk"};
    Record record;
    record.act = static_cast<Act>(rest_[0]);
    record.number = number_at(rest_, 1);
    const std::uint64_t second = number_at(rest_, 9);
    rest_.remove_prefix(kHeadBytes);
    if (record.act == Act::begin) {
        record.position = second;
        return std::optional(record);
    }
    if (second > rest_.size()) return Error{EBADMSG, "a truncated chunk"};
    record.bytes = rest_.substr(0, second);
    rest_.remove_prefix(second);
    return std::optional(record);
}

}  // namespace mcastcoll::cp
