// An observation, or the reason why it failed.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace mcastcoll::doctor {

template <typename T>
struct Look {
    std::optional<T> seen;
    std::string why_not;

    Look() = default;
    Look(T value) : seen(std::move(value)) {}
    static Look failed(std::string why) {
        Look look;
        look.why_not = std::move(why);
        return look;
    }
    explicit operator bool() const { return seen.has_value(); }
    const T& operator*() const { return *seen; }
};

}  // namespace mcastcoll::doctor
