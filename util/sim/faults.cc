#include "faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "text.h"

namespace mcastcoll::sim {

// The syntax of faults on the command line and in reports: words of the form key=value, separated by commas.
// Parsing the output of to_string() gives the same faults.
namespace {

using Parts = std::vector<std::string_view>;

template <typename T>
bool keep(const std::optional<T>& value, T& kept) {
    if (value) kept = *value;
    return value.has_value();
}
// "1ms-5ms", or "1ms-" without an end.
bool read(std::string_view text, Faults::Window& window) {
    const Parts parts = split(text, '-');
    if (parts.size() != 2 || !keep(parse_time(parts[0]), window.from)) return false;
    return (parts[1].empty() || keep(parse_time(parts[1]), window.to)) && window.to >= window.from;
}
bool read(std::string_view text, double& share) {
    return keep(parse_share(text), share);
}
bool read(std::string_view text, float& factor) {
    const double value = parse_number(text).value_or(0);
    factor = static_cast<float>(value);
    return value >= 1 && value <= 10'000;
}
bool read(std::string_view text, std::uint32_t& number) {
    return keep(parse<std::uint32_t>(text), number) && number < UINT32_MAX;
}
bool read(std::string_view text, Nanoseconds& time) {
    return keep(parse_time(text), time);
}

// A word without a value.
bool read(std::string_view text, bool& yes) {
    return text.empty() && (yes = true);
}
std::string show(bool yes) {
    return yes ? "" : "no";
}

template <typename Number>
std::string show(Number number) {
    return fmt::format("{}", number);
}
std::string show(Nanoseconds time) {
    return to_string(time);
}
std::string show(const Faults::Window& when) {
    return to_string(when.from) + "-" + (when.to == kNever ? "" : to_string(when.to));
}

// The fields of a structure, separated by colons.
template <auto... fields, typename T>
bool read_fields(T& something, const Parts& parts) {
    std::size_t at = 0;
    return parts.size() == sizeof...(fields) && (read(parts[at++], something.*fields) && ...);
}
template <auto... fields, typename T>
std::string show_fields(const T& something) {
    return fmt::format("{}", fmt::join(std::initializer_list<std::string>{show(something.*fields)...}, ":"));
}

// A word that may occur once, and is omitted from the output while its first field has the default value.
template <auto first, auto... others>
struct Once {
    static bool take(Faults& faults, const Parts& parts) {
        return read_fields<first, others...>(faults, parts);
    }
    static std::vector<std::string> words(const Faults& faults) {
        if (show(faults.*first) == show(Faults{}.*first)) return {};
        return {show_fields<first, others...>(faults)};
    }
};

template <auto list, auto... fields>
struct Each {
    static bool take(Faults& faults, const Parts& parts) {
        return read_fields<fields...>((faults.*list).emplace_back(), parts);
    }
    static std::vector<std::string> words(const Faults& faults) {
        std::vector<std::string> words;
        for (const auto& one : faults.*list) words.push_back(show_fields<fields...>(one));
        return words;
    }
};
template <auto outages>
using AtHost = Each<outages, &Faults::Outage::host, &Faults::Outage::when>;

// Values that must be rejected: messages that wait forever, a burst or a refusal that never ends.
bool endless(const Faults& f) {
    return f.burst_end <= 0 || f.fade >= 1 || f.fade_length <= Nanoseconds{} || f.backpressure >= 1 ||
           std::ranges::any_of(f.splits, [](const auto& split) { return split.when.to == kNever; });
}

struct Word {
    const char *key, *value, *meaning;
    bool (*take)(Faults&, const Parts&);
    std::vector<std::string> (*words)(const Faults&);  // the values of each
};
template <typename Form>
constexpr Word word(const char* key, const char* value, const char* meaning) {
    return {key, value, meaning, Form::take, Form::words};
}
constexpr Word kWords[] = {
    word<Once<&Faults::loss>>("loss", "SHARE", "each receiver loses this share of the multicasts"),
    word<Once<&Faults::switch_loss>>("switch-loss", "SHARE", "all receivers lose the same datagrams"),
    word<Once<&Faults::burst_begin, &Faults::burst_end, &Faults::burst_loss>>(
        "burst", "BEGIN:END:LOSS",
        "Gilbert-Elliott: odds per datagram to begin and to end a burst, loss in a burst"),
    word<Once<&Faults::fade, &Faults::fade_length>>(
        "fade", "SHARE:TIME",
        "each receiver receives no multicast for this share of the time, with this mean length"),
    word<Once<&Faults::nth>>("nth", "N", "every Nth copy is lost"),
    word<Each<&Faults::receiver_loss, &Faults::AtHost::host, &Faults::AtHost::loss>>("receiver", "HOST:SHARE",
                                                                                     "loss of one receiver"),
    word<Once<&Faults::duplicate>>("duplicate", "SHARE", "copies that arrive twice"),
    word<Once<&Faults::corrupt>>("corrupt", "SHARE", "copies with a wrong byte"),
    word<Once<&Faults::reorder, &Faults::reorder_delay>>("reorder", "SHARE:TIME",
                                                         "copies that arrive late by a time"),
    word<Each<&Faults::dead, &Faults::Outage::when>>(
        "dead", "FROM-TO", "the multicast carries nothing between two times; '1ms-' has no end"),
    word<AtHost<&Faults::deaf>>("deaf", "HOST:FROM-TO", "one receiver receives no multicast"),
    word<AtHost<&Faults::mute>>("mute", "HOST:FROM-TO", "the multicasts of one sender are lost"),
    word<AtHost<&Faults::partitions>>("partition", "CUT:FROM-TO",
                                      "no multicast between hosts below CUT and the others"),
    word<AtHost<&Faults::splits>>("split", "CUT:FROM-TO", "like partition, and messages wait for its end"),
    word<Once<&Faults::message_loss>>("message-loss", "SHARE", "messages that wait for a retransmission"),
    word<Once<&Faults::spike, &Faults::spike_delay>>("spike", "SHARE:TIME",
                                                     "messages that arrive late by a time"),
    word<Once<&Faults::messages_overtake>>("overtake", "", "messages of a pair may overtake each other"),
    word<Once<&Faults::jitter>>("delay", "TIME", "everything is late by up to a time"),
    word<Each<&Faults::slow, &Faults::Slow::host, &Faults::Slow::factor>>(
        "slow", "HOST:FACTOR", "everything on a host takes this many times as long"),
    word<Once<&Faults::backpressure>>("backpressure", "SHARE", "share of the sends that are refused"),
    word<Once<&Faults::heal_at>>("heal", "TIME", "from this time on there are no faults"),
};

}  // namespace

const char* faults_help() {
    static const std::string help = [] {
        std::string text;
        for (const Word& word : kWords)
            text += fmt::format("  {:<28} {}\n",
                                fmt::format("{}{}{}", word.key, *word.value == '\0' ? "" : "=", word.value),
                                word.meaning);
        return text;
    }();
    return help.c_str();
}

Result<Faults> parse_faults(std::string_view text) {
    Faults faults;
    if (text.empty() || text == "none") return faults;
    for (std::string_view item : split(text, ',')) {
        const std::size_t equals = item.find('=');
        const Parts parts = split(equals == std::string_view::npos ? "" : item.substr(equals + 1), ':');
        const Word* word = nullptr;
        for (const Word& candidate : kWords)
            if (item.substr(0, equals) == candidate.key) word = &candidate;
        if (word == nullptr) {
            std::string keys;
            for (const Word& candidate : kWords) keys += fmt::format(" {}", candidate.key);
            return Error{EINVAL,
                         fmt::format("'{}' is not a fault; the faults are:{}", item.substr(0, equals), keys)};
        }
        if (!word->take(faults, parts) || endless(faults))
            return Error{EINVAL, *word->value == '\0' ? fmt::format("'{}' takes no value", word->key)
                                                      : fmt::format("'{}': expected {}={} ({})", item,
                                                                    word->key, word->value, word->meaning)};
    }
    return faults;
}

std::string to_string(const Faults& faults) {
    std::string text;
    for (const Word& word : kWords)
        for (const std::string& value : word.words(faults))
            text +=
                fmt::format("{}{}{}{}", text.empty() ? "" : ",", word.key, value.empty() ? "" : "=", value);
    return text.empty() ? "none" : text;
}

}  // namespace mcastcoll::sim
