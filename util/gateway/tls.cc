#include "gateway/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "gateway/sockets.h"

namespace mcastcoll::gateway {
namespace {

constexpr unsigned char kSuiteNumber[] = {0x13, 0x01};
// Bytes read at once from an authenticated peer; before authentication, one record at a time is read.
constexpr std::size_t kReadAhead = 128 * 1024;

}  // namespace

std::string Tls::last_error() {
    const unsigned long code = ERR_peek_error();
    const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
    ERR_clear_error();
    return reason == nullptr ? "no reason given" : reason;
}

Tls::Tls(const TlsContext& context, int socket)
    : context_(context), socket_(socket), ssl_(SSL_new(context.get()), SSL_free) {
    BIO* const bio = ssl_ == nullptr ? nullptr : BIO_new(method());
    if (bio == nullptr) throw std::bad_alloc();
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_app_data(ssl_.get(), this);
}

Tls::Tls(const TlsContext& context, int socket, const std::string& other) : Tls(context, socket) {
    const std::string* identity = context.identity_for(other);
    if (identity != nullptr) identity_ = *identity;
    claimed_ = other;
    // Accepts no certificate.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set_connect_state(ssl_.get());
}

Tls::Tls(const TlsContext& context, int socket, Bytes early) : Tls(context, socket) {
    early_.assign(early.begin(), early.end());
    SSL_set_accept_state(ssl_.get());
}

SSL_SESSION* Tls::session_of(SSL* ssl, const wire::Key& key) {
    SSL_SESSION* const session = SSL_SESSION_new();
    const SSL_CIPHER* const suite = SSL_CIPHER_find(ssl, kSuiteNumber);
    if (session != nullptr && suite != nullptr &&
        SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                    key.size()) == 1 &&
        SSL_SESSION_set_cipher(session, suite) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return nullptr;
}

int Tls::use_session(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                     SSL_SESSION** session) {
    const Tls& tls = *static_cast<const Tls*>(SSL_get_app_data(ssl));
    const TlsContext::Peer* const peer = tls.context_.who_is(tls.identity_);
    if (peer == nullptr) return 0;
    *session = session_of(ssl, peer->key);
    *identity = reinterpret_cast<const unsigned char*>(tls.identity_.data());
    *size = tls.identity_.size();
    return *session != nullptr ? 1 : 0;
}

int Tls::find_session(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
    Tls& tls = *static_cast<Tls*>(SSL_get_app_data(ssl));
    const TlsContext::Peer* const peer =
        tls.context_.who_is(std::string(reinterpret_cast<const char*>(identity), size));
    *session = nullptr;
    if (peer == nullptr) return 1;  // another identity may follow
    tls.claimed_ = peer->site;
    *session = session_of(ssl, peer->key);
    return *session != nullptr ? 1 : 0;
}

BIO_METHOD* Tls::method() {
    static BIO_METHOD* const made = [] {
        BIO_METHOD* const fresh =
            BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "session's stream");
        if (fresh == nullptr) throw std::bad_alloc();
        BIO_meth_set_read(fresh, read_some);
        BIO_meth_set_write(fresh, write_some);
        BIO_meth_set_ctrl(fresh, control);
        return fresh;
    }();
    return made;
}

int Tls::read_some(BIO* bio, char* into, int size) {
    Tls& tls = *static_cast<Tls*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const auto room = static_cast<std::size_t>(size);
    if (const std::size_t rest = tls.early_.size() - tls.early_read_; rest > 0) {
        const std::size_t taken = std::min(rest, room);
        std::memcpy(into, tls.early_.data() + tls.early_read_, taken);
        tls.early_read_ += taken;
        return static_cast<int>(taken);
    }
    // After a short read the kernel reports further input, except after it has reported the end.
    if (!tls.drained_ || tls.ended_) {
        ssize_t got = 0;
        do got = recv(tls.socket_, into, room, MSG_DONTWAIT);
        while (got < 0 && errno == EINTR);
        if (got > 0) {
            tls.received_ += static_cast<std::uint64_t>(got);
            tls.drained_ = static_cast<std::size_t>(got) < room;
            return static_cast<int>(got);
        }
        tls.closed_ = got == 0;
        if (tls.closed_) return 0;
        if (errno != EAGAIN) {
            tls.error_ = errno;
            return -1;
        }
        tls.drained_ = true;
        tls.ended_ = false;
    }
    BIO_set_retry_read(bio);
    return -1;
}

int Tls::write_some(BIO* bio, const char* from, int size) {
    Tls& tls = *static_cast<Tls*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const Bytes bytes = std::as_bytes(std::span(from, static_cast<std::size_t>(size)));
    tls.outgoing_.insert(tls.outgoing_.end(), bytes.begin(), bytes.end());
    return size;
}

long Tls::control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return static_cast<const Tls*>(BIO_get_data(bio))->closed_ ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Translates the result of an OpenSSL call.
Tls::Progress Tls::outcome(int result) {
    const int why = SSL_get_error(ssl_.get(), result);
    if (why == SSL_ERROR_WANT_READ) return Progress::waiting;
    if (closed_ || why == SSL_ERROR_ZERO_RETURN) {
        ERR_clear_error();
        failure_ = "the peer has closed it";
        return Progress::closed;
    }
    if (error_ != 0) {
        ERR_clear_error();
        failure_ = std::strerror(error_);
        return Progress::closed;
    }
    failure_ = last_error();
    return Progress::failed;
}

Tls::Progress Tls::shake_hands() {
    ERR_clear_error();
    drained_ = false;
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1) return outcome(result);
    // The key is the only authentication.
    if (SSL_session_reused(ssl_.get()) != 1 || claimed_.empty()) {
        failure_ = "it has not proved possession of the key";
        return Progress::failed;
    }
    ready_ = true;
    peer_ = claimed_;
    SSL_set_default_read_buffer_len(ssl_.get(), kReadAhead);
    return Progress::done;
}

Tls::Taken Tls::read(MutableBytes room, bool ended) {
    ERR_clear_error();
    drained_ = false;
    ended_ = ended;
    std::size_t taken = 0;
    while (taken < room.size()) {
        std::size_t size = 0;
        if (const int result = SSL_read_ex(ssl_.get(), room.data() + taken, room.size() - taken, &size);
            result != 1)
            return {outcome(result), taken};
        taken += size;
    }
    return {Progress::done, taken};
}

bool Tls::write(Bytes plain) {
    ERR_clear_error();
    std::size_t done = 0;
    records_ += plain.size() / SSL3_RT_MAX_PLAIN_LENGTH + 1;
    if (records_ >= context_.records_per_key()) {
        records_ = 0;
        if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return false;
    }
    if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &done) == 1 && done == plain.size()) return true;
    failure_ = last_error();
    return false;
}

bool Tls::flush() {
    std::size_t sent = 0;
    const bool fine = send_what_fits(socket_, outgoing_, sent) && sent == outgoing_.size();
    outgoing_.clear();
    return fine;
}

}  // namespace mcastcoll::gateway
