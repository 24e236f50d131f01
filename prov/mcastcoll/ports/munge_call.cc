// The thread of a call. munge_library.cc or munge_absent.cc carries out the call.
#include "ports/munge_call.h"

#include <fmt/core.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "ports/munge_library.h"

namespace mcastcoll::ports {

struct MungeCall::Outcome {
    std::atomic<State> state{State::under_way};
    MungeAnswer answer;
};

// The data of a call's thread. Only the outcome is shared with other threads.
struct MungeWork {
    bool encodes;
    std::string socket;
    wire::ByteString bytes;
    std::shared_ptr<MungeCall::Outcome> outcome;

    void* run() noexcept {
        try {
            outcome->answer = encodes ? munge_encode_bytes(socket, bytes) : munge_decode_bytes(socket, bytes);
        } catch (...) {
            outcome->answer = {};  // out of memory
        }
        outcome->state.store(outcome->answer.state, std::memory_order_release);
        return nullptr;
    }
    // Starts the thread with all signals blocked, since signals are for the application's threads. Returns 0
    // or an errno value.
    static int start(std::unique_ptr<MungeWork> work) {
        pthread_attr_t attributes;
        if (const int error = pthread_attr_init(&attributes); error != 0) return error;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        pthread_t thread;
        const auto body = [](void* at) -> void* {
            return std::unique_ptr<MungeWork>(static_cast<MungeWork*>(at))->run();
        };
        const int error = pthread_create(&thread, &attributes, body, work.get());
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_attr_destroy(&attributes);
        if (error == 0) (void)work.release();  // now owned by the thread
        return error;
    }
};

MungeCall MungeCall::begin(bool encodes, const std::string& socket, Bytes bytes) {
    MungeCall call;
    call.outcome_ = std::make_shared<Outcome>();
    std::unique_ptr<MungeWork> work(
        new MungeWork{encodes, socket, wire::ByteString(bytes.begin(), bytes.end()), call.outcome_});
    if (const int error = MungeWork::start(std::move(work)); error != 0) {
        call.outcome_->answer.reason =
            fmt::format("cannot create the thread that calls munged: {}", std::strerror(error));
        call.outcome_->state = State::unavailable;
    }
    return call;
}

MungeCall MungeCall::encode(const std::string& socket, Bytes payload) {
    return begin(true, socket, payload);
}

MungeCall MungeCall::decode(const std::string& socket, Bytes credential) {
    return begin(false, socket, credential);
}

MungeCall::State MungeCall::state() const {
    return outcome_->state.load(std::memory_order_acquire);
}

const wire::ByteString& MungeCall::result() const {
    return outcome_->answer.bytes;
}

const std::string& MungeCall::reason() const {
    return outcome_->answer.reason;
}

}  // namespace mcastcoll::ports
