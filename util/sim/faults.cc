#include "faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "text.h"

namespace mcastcoll::sim {
namespace {

bool apart(const Faults::Partition& partition, std::uint32_t a, std::uint32_t b) {
    return (a < partition.cut) != (b < partition.cut);
}

}  // namespace

Weather::Weather(const Faults& faults, std::uint32_t hosts, std::uint64_t seed)
    : faults_(faults),
      fair_for_multicasts_(faults.loss <= 0 && faults.switch_loss <= 0 && faults.burst_begin <= 0 &&
                           faults.nth == 0 && faults.receiver_loss.empty() && faults.duplicate <= 0 &&
                           faults.corrupt <= 0 && faults.reorder <= 0 && faults.silences.empty() &&
                           faults.partitions.empty() && faults.jitter.value <= 0 && !faults.drop),
      fair_for_messages_(faults.message_loss <= 0 && faults.spike <= 0 && faults.jitter.value <= 0 &&
                         faults.partitions.empty()),
      random_(seed),
      in_burst_(faults.burst_begin > 0 ? hosts : 0) {
    if (!faults.receiver_loss.empty()) receiver_loss_.resize(hosts);
    for (const Faults::AtHost& one : faults.receiver_loss)
        if (one.host < hosts) receiver_loss_[one.host] = one.amount;
}

bool Weather::silenced(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) const {
    for (const Faults::Silence& silence : faults_.silences) {
        const bool theirs = (silence.sender == kAnybody || silence.sender == sender) &&
                            (silence.receiver == kAnybody || silence.receiver == receiver);
        if (theirs && silence.when.covers(now)) return true;
    }
    return std::any_of(faults_.partitions.begin(), faults_.partitions.end(), [&](const auto& partition) {
        return partition.when.covers(now) && apart(partition, sender, receiver);
    });
}

bool Weather::loses_copy(Nanoseconds now, std::uint32_t sender, std::uint32_t receiver) {
    if (healed(now)) return false;
    if (random_.chance(faults_.loss)) return true;
    if (silenced(now, sender, receiver)) return true;
    if (!receiver_loss_.empty() && random_.chance(receiver_loss_[receiver])) return true;
    if (faults_.nth > 0 && ++copies_ % faults_.nth == 0) return true;
    if (in_burst_.empty()) return false;
    in_burst_[receiver] =
        in_burst_[receiver] ? !random_.chance(faults_.burst_end) : random_.chance(faults_.burst_begin);
    return in_burst_[receiver] && random_.chance(faults_.burst_loss);
}

Nanoseconds Weather::copy_delay(Nanoseconds now) {
    if (healed(now)) return {};
    const Nanoseconds late = random_.up_to(faults_.jitter);
    return random_.chance(faults_.reorder) ? late + faults_.reorder_delay : late;
}

Nanoseconds Weather::message_arrival(Nanoseconds at, std::uint32_t sender, std::uint32_t receiver,
                                     Nanoseconds retransmission) {
    if (fair_for_messages_) return at;
    const Nanoseconds planned = at;
    if (!healed(at)) {
        at = at + random_.up_to(faults_.jitter);
        if (random_.chance(faults_.spike) && faults_.spikes.covers(planned)) at = at + faults_.spike_delay;
        // A retransmission can be lost like the first attempt, and waits longer each time.
        for (int doubled = 0; doubled < 6 && random_.chance(faults_.message_loss); ++doubled)
            at = at + Nanoseconds{retransmission.value << doubled};
        for (const Faults::Partition& partition : faults_.partitions)
            if (partition.messages && partition.when.covers(planned) && apart(partition, sender, receiver))
                at = std::max(at, std::min(partition.when.to, faults_.heal_at) + retransmission);
    }
    if (faults_.messages_overtake) return at;
    const std::uint64_t pair = std::uint64_t{sender} << 32 | receiver;
    const auto held = held_until_.find(pair);
    if (held != held_until_.end()) {
        at = std::max(at, held->second + Nanoseconds{1});
        if (at == planned) {  // the late one is in
            held_until_.erase(held);
            return at;
        }
    }
    if (at > planned) held_until_[pair] = at;
    return at;
}

// The little language in which faults are written on the command line and in reports: words of the form
// key=value, separated by commas. Parsing what to_string() wrote gives the same faults.
namespace {

using Parts = std::vector<std::string_view>;

// "1ms-5ms", or "1ms-" without an end.
bool read(std::string_view text, Window& window) {
    const std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) return false;
    const auto from = parse_time(text.substr(0, dash));
    const std::string_view end = text.substr(dash + 1);
    const auto to = end.empty() ? kNever : parse_time(end);
    if (!from || !to || *to < *from) return false;
    window = {*from, *to};
    return true;
}
bool read(std::string_view text, double& share) {
    const auto value = parse_share(text);
    if (value) share = *value;
    return value.has_value();
}
bool read(std::string_view text, std::uint32_t& number) {
    const auto value = parse_count(text);
    if (!value || *value >= UINT32_MAX) return false;
    number = static_cast<std::uint32_t>(*value);
    return true;
}
bool read(std::string_view text, Nanoseconds& time) {
    const auto value = parse_time(text);
    if (value) time = *value;
    return value.has_value();
}

// Each part into a field.
template <auto... fields>
bool take(Faults& faults, const Parts& parts) {
    std::size_t at = 0;
    return parts.size() == sizeof...(fields) && (read(parts[at++], faults.*fields) && ...);
}

bool read_partition(Faults& faults, const Parts& parts, bool messages) {
    Faults::Partition partition;
    partition.messages = messages;
    const bool good = parts.size() == 2 && read(parts[0], partition.cut) && read(parts[1], partition.when);
    if (!good || (messages && partition.when.to == kNever)) return false;  // messages never wait for ever
    faults.partitions.push_back(partition);
    return true;
}

bool read_silence(Faults& faults, const Parts& parts, std::uint32_t Faults::Silence::*who) {
    Faults::Silence silence;
    if (who != nullptr && (parts.size() != 2 || !read(parts[0], silence.*who))) return false;
    if (who == nullptr && parts.size() != 1) return false;
    if (!read(parts.back(), silence.when)) return false;
    faults.silences.push_back(silence);
    return true;
}

bool read_slow(Faults& faults, const Parts& parts) {
    Faults::AtHost slow;
    if (parts.size() != 2 || !read(parts[0], slow.host)) return false;
    const auto factor = parse_number(parts[1]);
    if (!factor || *factor < 1 || *factor > 10'000) return false;
    slow.amount = *factor;
    faults.slow.push_back(slow);
    return true;
}

bool read_receiver(Faults& faults, const Parts& parts) {
    Faults::AtHost receiver;
    if (parts.size() != 2 || !read(parts[0], receiver.host) || !read(parts[1], receiver.amount)) return false;
    faults.receiver_loss.push_back(receiver);
    return true;
}

bool read_burst(Faults& faults, const Parts& parts) {
    return take<&Faults::burst_begin, &Faults::burst_end, &Faults::burst_loss>(faults, parts) &&
           faults.burst_end > 0;
}

struct Word {
    const char *key, *value, *meaning;
    bool (*take)(Faults&, const Parts&);
};
constexpr Word kWords[] = {
    {"loss", "SHARE", "each receiver loses that share of the multicasts", take<&Faults::loss>},
    {"switch-loss", "SHARE", "all receivers lose the same datagrams", take<&Faults::switch_loss>},
    {"burst", "BEGIN:END:LOSS", "Gilbert-Elliott: odds to begin and to end a burst per datagram, loss in it",
     read_burst},
    {"nth", "N", "every Nth copy is lost", take<&Faults::nth>},
    {"receiver", "HOST:SHARE", "loss of one receiver", read_receiver},
    {"duplicate", "SHARE", "copies that come twice", take<&Faults::duplicate>},
    {"corrupt", "SHARE", "copies with a wrong byte", take<&Faults::corrupt>},
    {"reorder", "SHARE:TIME", "copies that are late by a time",
     take<&Faults::reorder, &Faults::reorder_delay>},
    {"dead", "FROM-TO", "the multicast carries nothing between two times; '1ms-' has no end",
     [](Faults& f, const Parts& p) { return read_silence(f, p, nullptr); }},
    {"deaf", "HOST:FROM-TO", "one receiver hears nothing",
     [](Faults& f, const Parts& p) { return read_silence(f, p, &Faults::Silence::receiver); }},
    {"mute", "HOST:FROM-TO", "nobody hears one sender",
     [](Faults& f, const Parts& p) { return read_silence(f, p, &Faults::Silence::sender); }},
    {"partition", "CUT:FROM-TO", "no multicast between hosts below CUT and the others",
     [](Faults& f, const Parts& p) { return read_partition(f, p, false); }},
    {"split", "CUT:FROM-TO", "the same, and messages wait for its end",
     [](Faults& f, const Parts& p) { return read_partition(f, p, true); }},
    {"message-loss", "SHARE", "messages that wait for a retransmission", take<&Faults::message_loss>},
    {"spike", "SHARE:TIME", "messages that are late by a time", take<&Faults::spike, &Faults::spike_delay>},
    {"overtake", "", "messages of a pair may overtake each other",
     [](Faults& f, const Parts& p) { return p.empty() && (f.messages_overtake = true); }},
    {"delay", "TIME", "everything is late by up to a time", take<&Faults::jitter>},
    {"slow", "HOST:FACTOR", "all that a host does takes that many times as long", read_slow},
    {"backpressure", "SHARE", "of the times that sending is refused",
     [](Faults& f, const Parts& p) { return take<&Faults::backpressure>(f, p) && f.backpressure < 1; }},
    {"heal", "TIME", "from here on nothing goes wrong any more", take<&Faults::heal_at>},
};

std::string from_to(const Window& when) {
    return to_string(when.from) + "-" + (when.to == kNever ? "" : to_string(when.to));
}

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
        const Parts parts = equals == std::string_view::npos ? Parts{} : split(item.substr(equals + 1), ':');
        const Word* word = nullptr;
        for (const Word& candidate : kWords)
            if (item.substr(0, equals) == candidate.key) word = &candidate;
        if (word == nullptr) {
            std::string keys;
            for (const Word& candidate : kWords) keys += fmt::format(" {}", candidate.key);
            return Error{EINVAL, fmt::format("'{}' is no fault; there are:{}", item.substr(0, equals), keys)};
        }
        if (!word->take(faults, parts))
            return Error{EINVAL, *word->value == '\0' ? fmt::format("'{}' takes no value", word->key)
                                                      : fmt::format("'{}': expected {}={} ({})", item,
                                                                    word->key, word->value, word->meaning)};
    }
    return faults;
}

std::string to_string(const Faults& f) {
    std::string text;
    auto add = [&text](std::string word) { text += (text.empty() ? "" : ",") + word; };
    auto share = [&](const char* key, double value) {
        if (value > 0) add(fmt::format("{}={}", key, value));
    };
    share("loss", f.loss);
    share("switch-loss", f.switch_loss);
    if (f.burst_begin > 0) add(fmt::format("burst={}:{}:{}", f.burst_begin, f.burst_end, f.burst_loss));
    if (f.nth > 0) add(fmt::format("nth={}", f.nth));
    for (const auto& one : f.receiver_loss) add(fmt::format("receiver={}:{}", one.host, one.amount));
    share("duplicate", f.duplicate);
    share("corrupt", f.corrupt);
    if (f.reorder > 0) add(fmt::format("reorder={}:{}", f.reorder, to_string(f.reorder_delay)));
    for (const auto& silence : f.silences) {
        const std::string when = from_to(silence.when);
        if (silence.receiver != kAnybody)
            add(fmt::format("deaf={}:{}", silence.receiver, when));
        else if (silence.sender != kAnybody)
            add(fmt::format("mute={}:{}", silence.sender, when));
        else
            add("dead=" + when);
    }
    for (const auto& partition : f.partitions)
        add(fmt::format("{}={}:{}", partition.messages ? "split" : "partition", partition.cut,
                        from_to(partition.when)));
    share("message-loss", f.message_loss);
    if (f.spike > 0) add(fmt::format("spike={}:{}", f.spike, to_string(f.spike_delay)));
    if (f.messages_overtake) add("overtake");
    if (f.jitter.value > 0) add("delay=" + to_string(f.jitter));
    for (const auto& slow : f.slow) add(fmt::format("slow={}:{}", slow.host, slow.amount));
    share("backpressure", f.backpressure);
    if (f.heal_at != kNever) add("heal=" + to_string(f.heal_at));
    return text.empty() ? "none" : text;
}

}  // namespace mcastcoll::sim
