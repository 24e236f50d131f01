#include "gateway/secure.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/file_descriptor.h"
#include "base/system.h"
#include "wire/bytes.h"

namespace mcastcoll::gateway {
namespace {

constexpr std::size_t kLeastKey = 16, kMostKey = 4096;
static_assert(crypto_generichash_BYTES == 32 && crypto_generichash_KEYBYTES == 32 &&
              crypto_scalarmult_BYTES == 32 && crypto_aead_chacha20poly1305_ietf_KEYBYTES == 32 &&
              crypto_aead_chacha20poly1305_ietf_ABYTES == kRecordTag);

unsigned char* raw(std::byte* at) {
    return reinterpret_cast<unsigned char*>(at);
}
const unsigned char* raw(const std::byte* at) {
    return reinterpret_cast<const unsigned char*>(at);
}

Secret keyed_hash(const Secret& key, std::initializer_list<Bytes> parts) {
    crypto_generichash_state state;
    crypto_generichash_init(&state, raw(key.data()), key.size(), 32);
    for (const Bytes part : parts) crypto_generichash_update(&state, raw(part.data()), part.size());
    Secret hash;
    crypto_generichash_final(&state, raw(hash.data()), hash.size());
    return hash;
}

Bytes label(const char* text) {
    return std::as_bytes(std::span(text, std::strlen(text)));
}

using Nonce = std::array<unsigned char, crypto_aead_chacha20poly1305_ietf_NPUBBYTES>;
Nonce nonce_of(std::uint64_t count) {
    Nonce nonce{};
    for (std::size_t i = 0; i < 8; ++i)
        nonce[4 + i] = static_cast<unsigned char>(count >> (8 * (7 - i)) & 0xff);
    return nonce;
}

}  // namespace

Result<void> start_cryptography() {
    if (sodium_init() < 0) return Error{EIO, "libsodium does not start"};
    return {};
}

std::uint64_t random_number() {
    std::uint64_t number = 0;
    while (number == 0) randombytes_buf(&number, sizeof number);
    return number;
}

Secret random_secret() {
    Secret secret;
    randombytes_buf(secret.data(), secret.size());
    return secret;
}

Result<Secret> read_key(const std::string& path) {
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) return system_error(errno, "key " + path);
    struct stat about {};
    if (fstat(file.get(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return Error{EACCES,
                     fmt::format("key {}: others than its owner may use it (chmod 600 is needed)", path)};
    std::array<std::byte, kMostKey + 1> bytes;
    const ssize_t size = ::read(file.get(), bytes.data(), bytes.size());
    if (size < 0) return system_error(errno, "key " + path);
    std::size_t length = static_cast<std::size_t>(size);
    while (length > 0 && (bytes[length - 1] == std::byte{'\n'} || bytes[length - 1] == std::byte{'\r'}))
        --length;
    if (length < kLeastKey || length > kMostKey)
        return Error{
            EINVAL,
            fmt::format("key {}: has {} bytes; {} to {} are wanted (head -c 32 /dev/urandom | base64)", path,
                        length, kLeastKey, kMostKey)};
    Secret key;
    crypto_generichash(raw(key.data()), key.size(), raw(bytes.data()), length, nullptr, 0);
    sodium_memzero(bytes.data(), bytes.size());
    return key;
}

KeyPair KeyPair::make() {
    KeyPair pair;
    crypto_box_keypair(raw(pair.public_key.data()), raw(pair.secret_key.data()));
    return pair;
}

std::optional<StreamKeys> derive_keys(const Secret& key, const KeyPair& own, const Secret& peer_public,
                                      Bytes connector_hello, Bytes acceptor_hello) {
    Secret shared;
    if (crypto_scalarmult(raw(shared.data()), raw(own.secret_key.data()), raw(peer_public.data())) != 0)
        return std::nullopt;
    const Secret master =
        keyed_hash(key, {label("mcastcoll trunk 1"), connector_hello, acceptor_hello, shared});
    return StreamKeys{
        keyed_hash(master, {label("from connector")}), keyed_hash(master, {label("from acceptor")}),
        keyed_hash(master, {label("connector's proof")}), keyed_hash(master, {label("acceptor's proof")})};
}

bool equal(const Secret& left, Bytes right) {
    return right.size() == left.size() && sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

void Cipher::seal(Bytes plain, std::vector<std::byte>& out) {
    const std::size_t at = out.size();
    out.resize(at + kRecordHeader + plain.size() + kRecordTag);
    wire::put(out.data() + at, static_cast<std::uint32_t>(plain.size() + kRecordTag));
    crypto_aead_chacha20poly1305_ietf_encrypt(
        raw(out.data() + at + kRecordHeader), nullptr, raw(plain.data()), plain.size(), raw(out.data() + at),
        kRecordHeader, nullptr, nonce_of(count_++).data(), raw(key_.data()));
}

std::optional<Bytes> Cipher::open(MutableBytes record) {
    if (record.size() < kRecordHeader + kRecordTag) return std::nullopt;
    const MutableBytes sealed = record.subspan(kRecordHeader);
    if (crypto_aead_chacha20poly1305_ietf_decrypt(raw(sealed.data()), nullptr, nullptr, raw(sealed.data()),
                                                  sealed.size(), raw(record.data()), kRecordHeader,
                                                  nonce_of(count_++).data(), raw(key_.data())) != 0)
        return std::nullopt;
    return sealed.first(sealed.size() - kRecordTag);
}

}  // namespace mcastcoll::gateway
