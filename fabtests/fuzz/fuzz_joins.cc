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
void there_and_back(Bytes word, const Decode& decode) {
    const auto first = decode(word);
    if (!first) return;
    const wire::ByteString once = encode(*first);
    const auto second = decode(once);
    fuzz::check(second.has_value(), "what is encoded can be decoded");
    fuzz::check(encode(*second) == once, "a word stays the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < kBody + 1) return 0;
    const std::size_t members = data[0] % 8 + 1;
    const Bytes raw = fuzz::bytes_of(data + 1, size - 1);
    wire::ByteString word(raw.begin(), raw.end());
    wire::put(word.data(), wire::kJoinMagic);
    const std::uint32_t sum =
        wire::add_to_crc(wire::add_to_crc(UINT32_MAX, Bytes(word).first(kCrc)), Bytes(word).subspan(kBody));
    wire::put(word.data() + kCrc, static_cast<std::uint32_t>(~sum));
    (void)wire::join_kind(word);
    (void)wire::decode_foreign_hello(word);
    (void)wire::decode_collect(word);
    there_and_back(word, wire::decode_hello);
    there_and_back(word, [&](Bytes one) { return wire::decode_welcome(one, members); });
    there_and_back(word, wire::decode_gathered_hellos);
    there_and_back(word, wire::decode_part);
    there_and_back(word, wire::decode_host_welcome);
    there_and_back(word, [](Bytes one) { return wire::decode_answer(one); });
    there_and_back(word, wire::decode_ended);
    there_and_back(word, wire::decode_waiting);
    there_and_back(word, wire::decode_survey);
    there_and_back(word, wire::decode_echo);
    there_and_back(word, wire::decode_surveyed);
    there_and_back(word, wire::decode_key_request);
    there_and_back(word, wire::decode_key_reply);
    return 0;
}
