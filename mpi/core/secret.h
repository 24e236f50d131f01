// The transport of a group's secret from rank 0 to the other members over MPI connections, which an attacker
// may read.
//
// Each process draws one Curve25519 key pair and publishes the public key. The members of a group pass the
// secret down a tree. For each edge of the tree, parent and child compute the same key from their own private
// key and the public key of the other end (X25519, RFC 7748), and the parent encrypts the secret for the
// child.
//
//     edge key = HKDF-Extract(salt = a name, X25519(private key, other's public key) || both public keys)
//     AES-128-GCM key and nonce = HKDF-Expand(edge key, salt || context)         (RFC 5869, SHA-256)
//     wrapped = salt (16 drawn bytes) || encrypted secret (32) || tag (16)
//
// `context` names the group and the two ranks, so that a wrapped secret of another group or another edge is
// refused. The salt gives each wrapped secret its own key, so that no nonce is used twice.
//
// A passive attacker learns nothing about the secret. An attacker that can replace public keys can place
// itself between two processes; only the transport of the public keys can prevent this.

#ifndef MCASTCOLL_MPI_CORE_SECRET_H
#define MCASTCOLL_MPI_CORE_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Proves the membership in a group.
typedef struct {
    uint8_t bytes[32];
} MccSecret;

typedef struct {
    uint8_t bytes[32];
} MccPublicKey;

typedef struct {
    uint8_t private_key[32];
    MccPublicKey public_key;
} MccKeyPair;

// Shared by both ends of an edge.
typedef struct {
    uint8_t bytes[32];
} MccEdgeKey;

typedef struct {
    uint8_t salt[16], encrypted[sizeof(MccSecret)], tag[16];
} MccWrappedSecret;

// Draws a secret. False: the kernel provides no random numbers.
bool mcc_draw_secret(MccSecret* secret);
// Draws a key pair. False: the kernel provides no random numbers.
bool mcc_draw_key_pair(MccKeyPair* pair);
// Computes the key of the edge between this process and the process with the key `other`. False: `other`
// cannot be the key of any process.
bool mcc_edge_key(const MccKeyPair* own, const MccPublicKey* other, MccEdgeKey* edge);
// Encrypts the secret. False: the kernel provides no random numbers; then all bytes of `wrapped` are zero.
bool mcc_wrap_secret(const MccEdgeKey* edge, const void* context, size_t context_bytes,
                     const MccSecret* secret, MccWrappedSecret* wrapped);
// Decrypts the secret. False: these bytes were not wrapped with this key for this context; then all bytes of
// `secret` are zero.
bool mcc_unwrap_secret(const MccEdgeKey* edge, const void* context, size_t context_bytes,
                       const MccWrappedSecret* wrapped, MccSecret* secret);

#endif
