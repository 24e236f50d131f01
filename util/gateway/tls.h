// TLS 1.3 on the streams between gateways, by OpenSSL.  Nobody has a certificate: each pair of gateways has a
// key of its own (RFC 8446, 4.2.11), derived from the configured one and named by both sites, and an
// ephemeral Diffie-Hellman exchange besides, so that who learns the key later can read nothing.
#pragma once

#include <openssl/ssl.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wire/crypto.h"

namespace mcastcoll::gateway {

// As many records may be sealed with one key of AES-GCM and more (RFC 8446, 5.5); then it is renewed.
inline constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;

// What all streams of one gateway have in common.
class TlsContext {
  public:
    struct Peer {
        std::string site;
        wire::Key key;
    };

    // Of two sites the one with the lesser name connects.
    TlsContext(const wire::Key& key, const std::string& own, const std::vector<std::string>& others,
               std::uint64_t records_per_key = kRecordsPerKey);
    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

    SSL_CTX* get() const { return context_.get(); }
    std::uint64_t records_per_key() const { return records_per_key_; }
    // How the key is named that this gateway and the other one share; null: there is none such.
    const std::string* identity_for(const std::string& other) const;
    const Peer* who_is(const std::string& identity) const;

  private:
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
    const std::uint64_t records_per_key_;
    std::map<std::string, Peer> peers_;  // by identity
};

// One stream.  It reads from the socket, which is not its own; what it has to write its owner writes.
class Tls {
  public:
    enum class Progress {
        done,
        waiting,  // for more from the socket
        closed,   // by the peer, or broken
        failed,   // TLS says no: failure()
    };
    struct Taken {
        Progress progress;
        std::size_t size;
    };

    // We connect.
    Tls(const TlsContext& context, int socket, const std::string& other);
    // Somebody has connected, and begins with these bytes.
    Tls(const TlsContext& context, int socket, Bytes early);
    Tls(const Tls&) = delete;
    Tls& operator=(const Tls&) = delete;

    Progress shake_hands();
    bool is_ready() const { return ready_; }
    // The other one has named a key of ours, and its hello proves that it has it or was recorded from one
    // that has.
    bool knows_the_key() const { return !claimed_.empty(); }
    // Whose gateway has proved that it has our key; empty before.
    const std::string& peer() const { return peer_; }
    // Fills the room with what has come. ended: the socket has said that it ends, and has to be read until
    // then.
    Taken read(MutableBytes room, bool ended);
    // Appends to outgoing(); false: it failed.
    bool write(Bytes plain);
    // Sends outgoing(), all of it, or false.
    bool flush();
    std::vector<std::byte>& outgoing() { return outgoing_; }
    const std::vector<std::byte>& outgoing() const { return outgoing_; }

    const std::string& failure() const { return failure_; }
    // Bytes that came, with all that is TLS's.
    std::uint64_t received() const { return received_; }

  private:
    Tls(const TlsContext& context, int socket);
    Progress outcome(int result);
    static SSL_SESSION* session_of(SSL* ssl, const wire::Key& key);

    // OpenSSL calls these.
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
