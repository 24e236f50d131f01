// A group's secret on an edge of the tree: only the intended child can unwrap the secret, for the same
// context, and only if no bit of the message has changed.
#define _GNU_SOURCE  // memmem()
#include <criterion/criterion.h>
#include <string.h>

#include "core/secret.h"

static MccKeyPair parent, child, foreign;
static MccEdgeKey above, below;
static MccSecret secret;
static const char kContext[] = "communicator 7, from 0 to 5";

static void draw(void) {
    cr_assert(mcc_draw_key_pair(&parent) && mcc_draw_key_pair(&child) && mcc_draw_key_pair(&foreign));
    cr_assert(mcc_edge_key(&parent, &child.public_key, &above));
    cr_assert(mcc_edge_key(&child, &parent.public_key, &below));
    cr_assert(mcc_draw_secret(&secret));
}

static MccWrappedSecret wrap(void) {
    MccWrappedSecret wrapped;
    cr_assert(mcc_wrap_secret(&above, kContext, sizeof(kContext), &secret, &wrapped));
    return wrapped;
}

static bool is_refused(const MccEdgeKey* edge, const char* context, size_t bytes,
                       const MccWrappedSecret* wrapped) {
    MccSecret got = secret, zero = {{0}};
    return !mcc_unwrap_secret(edge, context, bytes, wrapped, &got) && 0 == memcmp(&got, &zero, sizeof(zero));
}

Test(secret, the_child_gets_it, .init = draw) {
    cr_assert_arr_eq(&above, &below, sizeof(above));
    const MccWrappedSecret wrapped = wrap();
    MccSecret got;
    cr_assert(mcc_unwrap_secret(&below, kContext, sizeof(kContext), &wrapped, &got));
    cr_assert_arr_eq(&got, &secret, sizeof(secret));
}

Test(secret, no_part_of_it_is_in_the_message, .init = draw) {
    enum { kPart = 8 };  // equal by chance once in 2^60
    const MccWrappedSecret wrapped = wrap();
    for (size_t from = 0; from + kPart <= sizeof(secret); ++from)
        cr_assert_null(memmem(&wrapped, sizeof(wrapped), secret.bytes + from, kPart));
}

Test(secret, each_message_is_another, .init = draw) {
    const MccWrappedSecret first = wrap(), second = wrap();
    cr_assert_arr_neq(first.salt, second.salt, sizeof(first.salt));
    cr_assert_arr_neq(first.encrypted, second.encrypted, sizeof(first.encrypted));
    cr_assert_arr_neq(first.tag, second.tag, sizeof(first.tag));
}

Test(secret, another_process_does_not_get_it, .init = draw) {
    const MccWrappedSecret wrapped = wrap();
    MccEdgeKey other;
    cr_assert(mcc_edge_key(&foreign, &parent.public_key, &other));
    cr_assert(is_refused(&other, kContext, sizeof(kContext), &wrapped));
    cr_assert(mcc_edge_key(&foreign, &child.public_key, &other));
    cr_assert(is_refused(&other, kContext, sizeof(kContext), &wrapped));
}

Test(secret, every_changed_bit_is_found, .init = draw) {
    const MccWrappedSecret good = wrap();
    for (size_t bit = 0; bit < 8 * sizeof(good); ++bit) {
        MccWrappedSecret bad = good;
        ((uint8_t*)&bad)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert(is_refused(&below, kContext, sizeof(kContext), &bad), "bit %zu", bit);
    }
    const MccWrappedSecret none = {{0}, {0}, {0}};
    cr_assert(is_refused(&below, kContext, sizeof(kContext), &none));
}

Test(secret, it_is_for_one_context, .init = draw) {
    const MccWrappedSecret wrapped = wrap();
    cr_assert(is_refused(&below, "communicator 7, from 0 to 6", sizeof(kContext), &wrapped));
    cr_assert(is_refused(&below, kContext, sizeof(kContext) - 1, &wrapped));
    cr_assert(is_refused(&below, NULL, 0, &wrapped));
}

// Points of small order: the product with any private key is zero.
Test(secret, public_keys_of_no_process_are_refused, .init = draw) {
    MccPublicKey zero = {{0}}, one = {{1}};
    MccEdgeKey edge;
    cr_assert_not(mcc_edge_key(&child, &zero, &edge));
    cr_assert_not(mcc_edge_key(&child, &one, &edge));
}

// The keys of RFC 7748, 6.1: both ends compute the HMAC-SHA-256 of the RFC's shared secret and both public
// keys.
Test(secret, the_edge_key_of_the_published_example) {
    static const MccKeyPair kAlice = {
        {0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2, 0x66, 0x45,
         0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9, 0x2c, 0x2a},
        {{0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54, 0x74, 0x8b, 0x7d, 0xdc, 0xb4, 0x3e, 0xf7, 0x5a,
          0x0d, 0xbf, 0x3a, 0x0d, 0x26, 0x38, 0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e, 0xaa, 0x9b, 0x4e, 0x6a}}};
    static const MccKeyPair kBob = {
        {0x5d, 0xab, 0x08, 0x7e, 0x62, 0x4a, 0x8a, 0x4b, 0x79, 0xe1, 0x7f, 0x8b, 0x83, 0x80, 0x0e, 0xe6,
         0x6f, 0x3b, 0xb1, 0x29, 0x26, 0x18, 0xb6, 0xfd, 0x1c, 0x2f, 0x8b, 0x27, 0xff, 0x88, 0xe0, 0xeb},
        {{0xde, 0x9e, 0xdb, 0x7d, 0x7b, 0x7d, 0xc1, 0xb4, 0xd3, 0x5b, 0x61, 0xc2, 0xec, 0xe4, 0x35, 0x37,
          0x3f, 0x83, 0x43, 0xc8, 0x5b, 0x78, 0x67, 0x4d, 0xad, 0xfc, 0x7e, 0x14, 0x6f, 0x88, 0x2b, 0x4f}}};
    static const MccEdgeKey kEdge = {{0xdb, 0x9b, 0x86, 0x0f, 0xf9, 0xb3, 0x8e, 0x2f, 0xcd, 0x2b, 0xc1,
                                      0xc4, 0x67, 0xb4, 0xd8, 0x46, 0xb0, 0x30, 0x6e, 0x37, 0xf7, 0x8d,
                                      0x82, 0x5a, 0x2a, 0x85, 0x82, 0xac, 0xdf, 0xe0, 0x88, 0x3b}};
    MccEdgeKey edge;
    cr_assert(mcc_edge_key(&kAlice, &kBob.public_key, &edge));
    cr_assert_arr_eq(&edge, &kEdge, sizeof(edge));
    cr_assert(mcc_edge_key(&kBob, &kAlice.public_key, &edge));
    cr_assert_arr_eq(&edge, &kEdge, sizeof(edge));
}
