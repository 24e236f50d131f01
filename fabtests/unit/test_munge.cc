// Calls of libmunge, with a munged of the test's own.
#include <criterion/criterion.h>
#include <munge.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "ports/munge_call.h"
#include "support/munged.h"

using namespace mcastcoll;
using fabtest::Munged;
using ports::MungeCall;
using State = ports::MungeCall::State;

namespace {

constexpr const char* kText = "what no other user may read";

Bytes text() {
    return std::as_bytes(std::span(kText, std::strlen(kText)));
}

// Starts a munged; returns null if this machine has none.
std::unique_ptr<Munged> started() {
    auto munged = std::make_unique<Munged>();
    if (munged->why_not().empty()) return munged;
    cr_log_warn("skipped: %s", munged->why_not().c_str());
    return nullptr;
}

MungeCall await(MungeCall call) {
    for (int i = 0; i < 3000 && call.state() == State::under_way; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return call;
}

// Returns a credential as another program of this user might create it.
wire::ByteString made_otherwise(const std::string& socket, uid_t reader, munge_cipher_t cipher) {
    const munge_ctx_t context = munge_ctx_create();
    char* made = nullptr;
    cr_assert_eq(munge_ctx_set(context, MUNGE_OPT_SOCKET, socket.c_str()), EMUNGE_SUCCESS);
    cr_assert_eq(munge_ctx_set(context, MUNGE_OPT_UID_RESTRICTION, reader), EMUNGE_SUCCESS);
    cr_assert_eq(munge_ctx_set(context, MUNGE_OPT_CIPHER_TYPE, int{cipher}), EMUNGE_SUCCESS);
    cr_assert_eq(munge_encode(&made, context, kText, static_cast<int>(std::strlen(kText))), EMUNGE_SUCCESS);
    const Bytes bytes = std::as_bytes(std::span(made, std::strlen(made)));
    wire::ByteString credential(bytes.begin(), bytes.end());
    std::free(made);
    munge_ctx_destroy(context);
    return credential;
}

State opened(const std::string& socket, Bytes credential) {
    return await(MungeCall::decode(socket, credential)).state();
}

}  // namespace

TestSuite(munge, .timeout = 120);

// Each process of a host decodes the same credential.
Test(munge, what_is_put_in_comes_out_as_often_as_it_is_opened) {
    const auto munged = started();
    if (!munged) return;
    const MungeCall made = await(MungeCall::encode(munged->socket(), text()));
    cr_assert(made.state() == State::done, "%s", made.reason().c_str());
    for (int i = 0; i < 3; ++i) {
        const MungeCall read = await(MungeCall::decode(munged->socket(), made.result()));
        cr_assert(read.state() == State::done, "%s", read.reason().c_str());
        cr_assert(std::ranges::equal(read.result(), text()));
    }
}

Test(munge, a_credential_that_others_can_read_is_refused) {
    const auto munged = started();
    if (!munged) return;
    const std::string socket = munged->socket();
    const auto good = made_otherwise(socket, geteuid(), MUNGE_CIPHER_AES128);
    cr_assert(opened(socket, good) == State::done);
    const auto anybodys = made_otherwise(socket, static_cast<uid_t>(MUNGE_UID_ANY), MUNGE_CIPHER_AES128);
    cr_assert(opened(socket, anybodys) == State::refused);
    cr_assert(opened(socket, made_otherwise(socket, geteuid(), MUNGE_CIPHER_NONE)) == State::refused);
    cr_assert(opened(socket, made_otherwise(socket, geteuid() + 1, MUNGE_CIPHER_AES128)) == State::refused);
}

Test(munge, a_credential_of_another_user_is_refused) {
    const auto munged = started();
    if (!munged || geteuid() != 0) return;
    const uid_t self = geteuid();
    cr_assert_eq(seteuid(65534), 0);
    const auto of_another = made_otherwise(munged->socket(), self, MUNGE_CIPHER_AES128);
    cr_assert_eq(seteuid(self), 0);
    cr_assert(opened(munged->socket(), of_another) == State::refused);
}

Test(munge, what_is_damaged_or_of_another_key_is_refused) {
    const auto munged = started(), foreign = started();
    if (!munged || !foreign) return;
    const auto good = made_otherwise(munged->socket(), geteuid(), MUNGE_CIPHER_AES128);
    cr_assert(opened(foreign->socket(), good) == State::refused);
    auto damaged = good;
    damaged[good.size() / 2] = damaged[good.size() / 2] == std::byte{'A'} ? std::byte{'B'} : std::byte{'A'};
    cr_assert(opened(munged->socket(), damaged) == State::refused);
    cr_assert(opened(munged->socket(), text()) == State::refused);
    cr_assert(opened(munged->socket(), {}) != State::done);
}

Test(munge, where_there_is_none_it_says_so) {
    const MungeCall made = await(MungeCall::encode("/nowhere/munge.socket", text()));
    cr_assert(made.state() == State::unavailable);
    cr_assert(!made.reason().empty());
    const std::string too_long(4096, 'x');
    cr_assert(await(MungeCall::decode(too_long, text())).state() == State::unavailable);
}

Test(munge, a_stalled_munged_blocks_no_caller) {
    const auto munged = started();
    if (!munged) return;
    munged->signal(SIGSTOP);
    const auto begin = std::chrono::steady_clock::now();
    const MungeCall made = MungeCall::encode(munged->socket(), text());
    { const MungeCall let_go = MungeCall::encode(munged->socket(), text()); }
    cr_assert(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    cr_assert(made.state() == State::under_way);
    munged->signal(SIGCONT);
    cr_assert(await(made).state() == State::done);
}
