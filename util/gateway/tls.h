// TLS 1.3 on the streams between gateways, by OpenSSL. There are no certificates: each pair of gateways has a
// pre-shared key (RFC 8446, 4.2.11), derived from the configured key and named by both sites. An ephemeral
// Diffie-Hellman exchange is added, so that a key that leaks later does not decrypt earlier traffic.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "gateway/tls_context.h"
#include "wire/crypto.h"

namespace mcastcoll::gateway {

// TLS of one stream. Reads from the caller's socket, and collects the bytes to send in outgoing().
class Tls {
  public:
    enum class Progress {
        done,
        waiting,  // for more input
        closed,   // by the peer, or broken
        failed,   // a TLS error: failure()
    };
    struct Taken {
        Progress progress;
        std::size_t size;
    };

    // For an outgoing connection to the gateway of site `other`.
    Tls(const TlsContext& context, int socket, const std::string& other);
    // For an incoming connection, of which the bytes `early` have already been read.
    Tls(const TlsContext& context, int socket, Bytes early);
    Tls(const Tls&) = delete;
    Tls& operator=(const Tls&) = delete;

    Progress shake_hands();
    bool is_ready() const { return ready_; }
    // Whether the peer's client hello names a key of ours and proves possession of it. A replay of such a
    // client hello passes, too.
    bool knows_the_key() const { return !claimed_.empty(); }
    // The site of the authenticated peer; empty before authentication.
    const std::string& peer() const { return peer_; }
    // Fills `room` with input. `ended`: the socket has reported its end, and must be read up to the end.
    Taken read(MutableBytes room, bool ended);
    // Encrypts `plain` into outgoing(); false on failure.
    bool write(Bytes plain);
    // Sends outgoing(); false if the socket does not accept every byte.
    bool flush();
    std::vector<std::byte>& outgoing() { return outgoing_; }
    const std::vector<std::byte>& outgoing() const { return outgoing_; }

    const std::string& failure() const { return failure_; }
    // Bytes received, including TLS overhead.
    std::uint64_t received() const { return received_; }

  private:
    Tls(const TlsContext& context, int socket);
    Progress outcome(int result);
    static SSL_SESSION* session_of(SSL* ssl, const wire::Key& key);
    // OpenSSL's last error of this thread, which is cleared.
    static std::string last_error();

    // OpenSSL calls the functions below.
    static BIO_METHOD* method();
    static int read_some(BIO* bio, char* into, int size);
    static int write_some(BIO* bio, const char* from, int size);
    static long control(BIO* bio, int command, long number, void* pointer);
    friend class TlsContext;
    static int use_session(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, std::size_t* size,
                           SSL_SESSION** session);
    static int find_session(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session);

    const TlsContext& context_;
    const int socket_;
    std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
    std::vector<std::byte> early_, outgoing_;
    std::size_t early_read_ = 0;
    bool drained_ = false, ended_ = false, closed_ = false, ready_ = false;
    int error_ = 0;  // of the socket
    std::string identity_, claimed_, peer_, failure_;
    std::uint64_t received_ = 0, records_ = 0;
};

}  // namespace mcastcoll::gateway
