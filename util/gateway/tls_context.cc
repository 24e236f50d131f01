#include "gateway/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "gateway/tls.h"

namespace mcastcoll::gateway {
namespace {

constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";

std::string identity_of(const std::string& one, const std::string& other) {
    const auto& [connector, acceptor] = std::minmax(one, other);
    return fmt::format("mcastcoll trunk 2: {} {}", connector, acceptor);
}

}  // namespace

TlsContext::TlsContext(const wire::Key& key, const std::string& own, const std::vector<std::string>& others,
                       std::uint64_t records_per_key)
    : context_(SSL_CTX_new(TLS_method()), SSL_CTX_free), records_per_key_(records_per_key) {
    SSL_CTX* const context = context_.get();
    if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, kSuite) != 1)
        throw std::runtime_error("OpenSSL has no TLS 1.3: " + Tls::last_error());
    // Sessions are not resumed: a broken stream is made anew, and no key is used twice.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_psk_use_session_callback(context, Tls::use_session);
    SSL_CTX_set_psk_find_session_callback(context, Tls::find_session);
    for (const std::string& other : others) {
        const std::string identity = identity_of(own, other);
        peers_[identity] = {other, wire::derive(key, identity)};
    }
}

TlsContext::~TlsContext() {
    for (auto& [identity, peer] : peers_) OPENSSL_cleanse(peer.key.data(), peer.key.size());
}

const std::string* TlsContext::identity_for(const std::string& other) const {
    for (const auto& [identity, peer] : peers_)
        if (peer.site == other) return &identity;
    return nullptr;
}

const TlsContext::Peer* TlsContext::who_is(const std::string& identity) const {
    const auto found = peers_.find(identity);
    return found == peers_.end() ? nullptr : &found->second;
}

}  // namespace mcastcoll::gateway
