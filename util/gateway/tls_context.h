// TLS state shared by all streams of one gateway.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wire/crypto.h"

namespace mcastcoll::gateway {

// AES-GCM allows more records per key (RFC 8446, 5.5); after this number the key is renewed.
inline constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;

class TlsContext {
  public:
    struct Peer {
        std::string site;
        wire::Key key;
    };

    // `own` and `others` are names of sites; of two sites the one with the lesser name connects.
    TlsContext(const wire::Key& key, const std::string& own, const std::vector<std::string>& others,
               std::uint64_t records_per_key = kRecordsPerKey);
    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

    SSL_CTX* get() const { return context_.get(); }
    std::uint64_t records_per_key() const { return records_per_key_; }
    // The name of the key shared with the other gateway; null if there is no such key.
    const std::string* identity_for(const std::string& other) const;
    const Peer* who_is(const std::string& identity) const;

  private:
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    const std::uint64_t records_per_key_;
    std::map<std::string, Peer> peers_;  // by identity
};

}  // namespace mcastcoll::gateway
