// Join messages. The fuzzer corrects their checksums, so that the code after the check is reached; decoding,
// encoding and decoding again must give the same encoding.
#include <algorithm>

#include "fuzz.h"
#include "wire/bytes.h"
#include "wire/join.h"

using namespace mcastcoll;

namespace {

constexpr std::size_t kCrc = 4, kBody = 8;

template <typename Decode>
void there_and_back(Bytes message, const Decode& decode) {
    const auto first = decode(message);
    if (!first) return;
    const wire::ByteString once = encode(*first);
    const auto second = decode(once);
    fuzz::check(second.has_value(), "what is encoded can be decoded");
    fuzz::check(encode(*second) == once, "a join message stays the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < kBody + 1) return 0;
    const std::size_t members = data[0] % 8 + 1;
    const Bytes raw = fuzz::bytes_of(data + 1, size - 1);
    wire::ByteString message(raw.begin(), raw.end());
    wire::put(message.data(), wire::kJoinMagic);
    const std::uint32_t sum = wire::add_to_crc(wire::add_to_crc(UINT32_MAX, Bytes(message).first(kCrc)),
                                               Bytes(message).subspan(kBody));
    wire::put(message.data() + kCrc, static_cast<std::uint32_t>(~sum));
    (void)wire::join_kind(message);
    (void)wire::decode_foreign_hello(message);
    (void)wire::decode_collect(message);
    there_and_back(message, wire::decode_hello);
    there_and_back(message, [&](Bytes one) { return wire::decode_welcome(one, members); });
    there_and_back(message, wire::decode_gathered_hellos);
    there_and_back(message, wire::decode_part);
    there_and_back(message, wire::decode_host_welcome);
    there_and_back(message, [](Bytes one) { return wire::decode_answer(one); });
    there_and_back(message, wire::decode_ended);
    there_and_back(message, wire::decode_waiting);
    there_and_back(message, wire::decode_survey);
    there_and_back(message, wire::decode_echo);
    there_and_back(message, wire::decode_surveyed);
    there_and_back(message, wire::decode_key_request);
    there_and_back(message, wire::decode_key_reply);
    return 0;
}
