#include "measured.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace mcastcoll::sim {
namespace {

// Returns the value that is nearest to a quantile; of two equally near values, the lower.
template <typename T>
T quantile_of(std::vector<T> values, double share) {
    if (values.empty()) return {};
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.49);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

Measured::Times received(Measured::Times times, std::uint32_t root) {
    if (root < times.size() && times.size() > 1) times.erase(times.begin() + root);
    return times;
}

// A quantile of `pick` over all operations, with the times of all ranks and of the receivers.
template <typename Pick>
auto quantile_over(const Measured& measured, double share, Pick&& pick) {
    std::vector<decltype(pick(measured.times[0], measured.times[0]))> picked;
    for (std::size_t i = 0; i < measured.times.size(); ++i)
        if (const Measured::Times& all = measured.times[i]; !all.empty())
            picked.push_back(pick(all, received(all, measured.roots[i])));
    return quantile_of(std::move(picked), share);
}

template <typename Pick>
auto median_over(const Measured& measured, Pick&& pick) {
    return quantile_over(measured, 0.5, std::forward<Pick>(pick));
}

}  // namespace

Nanoseconds Measured::quantile(double share) const {
    Times all;
    for (const Times& one : times) all.insert(all.end(), one.begin(), one.end());
    return quantile_of(std::move(all), share);
}

Nanoseconds Measured::median_received() const {
    Measured others;
    for (std::size_t i = 0; i < times.size(); ++i) others.times.push_back(received(times[i], roots[i]));
    return others.quantile(0.5);
}

Nanoseconds Measured::last(double share) const {
    return quantile_over(*this, share, [](const Times& all, const Times&) { return std::ranges::max(all); });
}

Nanoseconds Measured::first() const {
    return median_over(*this, [](const Times&, const Times& others) { return std::ranges::min(others); });
}

double Measured::spread() const {
    return median_over(*this, [](const Times& all, const Times& others) {
        const Nanoseconds apart = std::ranges::max(all) - std::ranges::min(others);
        return static_cast<double>(apart.value) /
               std::max(1.0, static_cast<double>(quantile_of(all, 0.5).value));
    });
}

Measured::Times Measured::by_rank() const {
    Times medians;
    for (std::size_t rank = 0; rank < times.front().size(); ++rank)
        medians.push_back(median_over(*this, [rank](const Times& all, const Times&) { return all[rank]; }));
    return medians;
}

}  // namespace mcastcoll::sim
