// Result<T>: a value, or an error in its place. (<expected> is missing from C++20 in g++ 12.) Also attempt(),
// for work that may fail harmlessly.
#pragma once

#include <cassert>
#include <cerrno>
#include <string>
#include <utility>
#include <variant>

namespace mcastcoll {

// A failure: a positive libfabric/errno code (FI_EINVAL is EINVAL) and one sentence for the log.
struct Error {
    int code = 0;
    std::string message;
};

// True for a shortage of resources in this process, which says nothing about the peer.
inline bool is_own_shortage(int code) {
    return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM || code == EADDRNOTAVAIL ||
           code == EAGAIN;
}

template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    T& value() & { return assert(ok()), std::get<0>(state_); }
    const T& value() const& { return assert(ok()), std::get<0>(state_); }
    T&& value() && { return assert(ok()), std::get<0>(std::move(state_)); }
    const Error& error() const { return assert(!ok()), std::get<1>(state_); }

  private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)), ok_(false) {}

    bool ok() const { return ok_; }
    explicit operator bool() const { return ok_; }
    const Error& error() const { return assert(!ok_), error_; }

  private:
    Error error_;
    bool ok_ = true;
};

// Runs work that may fail harmlessly, for example for lack of memory. Returns false when the body threw.
template <typename Body>
bool attempt(Body&& body) noexcept {
    try {
        body();
        return true;
    } catch (...) {
        return false;
    }
}

}  // namespace mcastcoll
