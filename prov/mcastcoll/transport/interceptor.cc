#include "transport/interceptor.h"

#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace mcastcoll::transport {
namespace {

template <typename Number>
Result<void> assign(Number& to, std::string_view key, std::string_view text, Number largest) {
    Number value{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    // The negated comparison also rejects NaN.
    if (status != std::errc() || end != text.data() + text.size() || !(value >= Number{} && value <= largest))
        return Error{EINVAL, fmt::format("\"{}={}\": {} is a number from 0 to {}", key, text, key, largest)};
    to = value;
    return {};
}

Result<void> assign_burst_length(InterceptorSpec& spec, std::string_view key, std::string_view text) {
    double mean = 0;
    if (auto assigned = assign(mean, key, text, 1e6); !assigned) return assigned.error();
    if (mean < 1) return Error{EINVAL, fmt::format("\"{}={}\": a burst is 1 datagram or more", key, text)};
    spec.burst_percent = 100 * (1 - 1 / mean);
    return {};
}

// Returns the probability in percent of losing a datagram after a delivered one (Gilbert's model), at which
// the long-run loss is loss_percent.
double begin_percent(const InterceptorSpec& spec) {
    return spec.loss_percent * (100 - spec.burst_percent) / (100 - spec.loss_percent);
}

Result<void> apply(InterceptorSpec& spec, std::string_view key, std::string_view text) {
    if (key == "loss") return assign(spec.loss_percent, key, text, 100.0);
    if (key == "burst") return assign(spec.burst_percent, key, text, 100.0);
    if (key == "burst_length") return assign_burst_length(spec, key, text);
    if (key == "duplicate") return assign(spec.duplicate_percent, key, text, 100.0);
    if (key == "corrupt") return assign(spec.corrupt_percent, key, text, 100.0);
    if (key == "nth") return assign(spec.nth, key, text, UINT32_MAX);
    if (key == "delay") return assign(spec.delay, key, text, Interceptor::kMaxDelay);
    if (key == "seed") return assign(spec.seed, key, text, std::uint64_t{UINT64_MAX});
    return Error{
        EINVAL,
        fmt::format(
            "\"{}\" is unknown; known are loss, burst, burst_length, nth, duplicate, corrupt, delay and "
            "seed",
            key)};
}

// A burst ends after each lost datagram with the same probability, which follows from the mean length of a
// burst. A combination is rejected if the intervals between bursts would have to be shorter than one
// datagram, since the loss rate could not be reached.
Result<void> check_bursts(const InterceptorSpec& spec) {
    if (spec.burst_percent <= 0 || spec.loss_percent >= 100 || begin_percent(spec) <= 100) return {};
    return Error{EINVAL, fmt::format("losing {} % needs longer bursts than those of {:.3g} on average",
                                     spec.loss_percent, 100 / (100 - spec.burst_percent))};
}

}  // namespace

Result<InterceptorSpec> parse_interceptor_spec(std::string_view text) {
    InterceptorSpec spec;
    for (bool more = !text.empty(); more;) {
        const std::size_t comma = text.find(',');
        const std::string_view item = text.substr(0, comma);
        const std::size_t equals = item.find('=');
        if (equals == std::string_view::npos)
            return Error{EINVAL,
                         fmt::format("\"{}\" should read NAME=NUMBER, as in \"loss=5,seed=7\"", item)};
        if (auto applied = apply(spec, item.substr(0, equals), item.substr(equals + 1)); !applied)
            return applied.error();
        more = comma != std::string_view::npos;
        if (more) text.remove_prefix(comma + 1);
    }
    if (auto checked = check_bursts(spec); !checked) return checked.error();
    return spec;
}

Interceptor::Interceptor(std::unique_ptr<MulticastTransport> inner, const InterceptorSpec& spec)
    : inner_(std::move(inner)), spec_(spec), generator_(spec.seed), scratch_(inner_->max_payload()) {
    spec_.delay = std::min(spec_.delay, kMaxDelay);
    // A datagram and its duplicate each wait for at most `delay` later datagrams, which bounds the number of
    // slots.
    if (spec_.delay > 0) held_.resize(2 * (std::size_t{spec_.delay} + 1));
    for (Held& slot : held_) slot.bytes.resize(inner_->max_payload());
}

std::size_t Interceptor::receive(Nanoseconds now, DeliverDatagram deliver) {
    const std::size_t got = inner_->receive(now, [&](MutableBytes bytes, const SocketAddress& source) {
        intercept(now, bytes, source, deliver);
    });
    release_due(now, deliver);
    return got;
}

Nanoseconds Interceptor::next_deadline() const {
    Nanoseconds earliest = inner_->next_deadline();
    for (std::size_t i = 0; i < held_now_; ++i) earliest = std::min(earliest, held_[i].deadline);
    return earliest;
}

// Draws with this probability. Does not use a standard distribution, because these differ between libraries,
// and a seed must give the same faults everywhere.
bool Interceptor::happens(double percent) {
    if (percent <= 0) return false;
    const double drawn = static_cast<double>(generator_() >> 11) * 0x1p-53;
    return drawn * 100 < percent;
}

bool Interceptor::is_lost() {
    if (spec_.nth > 0 && arrived_ % spec_.nth == 0) return true;
    if (spec_.loss_percent <= 0) return false;
    if (spec_.burst_percent <= 0 || spec_.loss_percent >= 100) return happens(spec_.loss_percent);
    losing_ = happens(losing_ ? spec_.burst_percent : begin_percent(spec_));
    return losing_;
}

void Interceptor::intercept(Nanoseconds now, MutableBytes bytes, const SocketAddress& source,
                            DeliverDatagram deliver) {
    ++arrived_;
    if (!is_lost()) {
        if (!bytes.empty() && happens(spec_.corrupt_percent)) {
            const std::size_t at = generator_() % bytes.size();
            bytes[at] ^= static_cast<std::byte>(1 + generator_() % 255);
        }
        const bool twice = happens(spec_.duplicate_percent);
        if (twice) std::copy(bytes.begin(), bytes.end(), scratch_.begin());
        pass_or_hold(now, bytes, source, deliver);
        if (twice) pass_or_hold(now, MutableBytes(scratch_).first(bytes.size()), source, deliver);
    }
    release_due(now, deliver);
}

void Interceptor::pass_or_hold(Nanoseconds now, MutableBytes bytes, const SocketAddress& source,
                               DeliverDatagram deliver) {
    const std::uint64_t wait = spec_.delay > 0 ? generator_() % (std::uint64_t{spec_.delay} + 1) : 0;
    if (wait == 0 || held_now_ == held_.size()) return deliver(bytes, source);
    Held& slot = held_[held_now_++];
    slot.release_at = arrived_ + wait;
    slot.deadline = now + kMaxHold;
    slot.source = source;
    slot.size = bytes.size();
    std::copy(bytes.begin(), bytes.end(), slot.bytes.begin());
}

void Interceptor::release_due(Nanoseconds now, DeliverDatagram deliver) {
    for (std::size_t i = 0; i < held_now_;) {
        Held& slot = held_[i];
        if (slot.release_at > arrived_ && slot.deadline > now) {
            ++i;
            continue;
        }
        deliver(MutableBytes(slot.bytes.data(), slot.size), slot.source);
        const auto at = held_.begin() + static_cast<std::ptrdiff_t>(i);
        std::rotate(at, at + 1, held_.begin() + static_cast<std::ptrdiff_t>(held_now_--));
    }
}

}  // namespace mcastcoll::transport
