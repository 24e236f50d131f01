#include "gateway/key.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>

#include "base/file_descriptor.h"
#include "base/system.h"

namespace mcastcoll::gateway {
namespace {

constexpr std::size_t kLeastKey = 16, kMostKey = 4096;

unsigned char* raw(std::byte* at) {
    return reinterpret_cast<unsigned char*>(at);
}

}  // namespace

std::uint64_t random_number() {
    std::uint64_t number = 0;
    while (number == 0)
        if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof number) != 1)
            throw std::runtime_error("OpenSSL has no random numbers");
    return number;
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
    const bool done = EVP_Digest(bytes.data(), length, raw(key.data()), nullptr, EVP_sha256(), nullptr) == 1;
    OPENSSL_cleanse(bytes.data(), bytes.size());
    if (!done) return Error{EIO, "OpenSSL has no SHA-256"};
    return key;
}

Secret derive_key(const Secret& key, const std::string& purpose) {
    const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                                 EVP_KDF_free);
    const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(hkdf.get()),
                                                                            EVP_KDF_CTX_free);
    Secret in = key, out{};
    std::string digest = "SHA256", info = purpose;
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, in.data(), in.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
        OSSL_PARAM_construct_end()};
    if (context == nullptr || EVP_KDF_derive(context.get(), raw(out.data()), out.size(), parameters) != 1)
        throw std::runtime_error("OpenSSL has no HKDF");
    OPENSSL_cleanse(in.data(), in.size());
    return out;
}

}  // namespace mcastcoll::gateway
