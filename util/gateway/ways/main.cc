// relay_ways: how a gateway had best move bytes, measured on this machine; docs/GATEWAYS.md has what came
// out.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "gateway/secure.h"
#include "gateway/ways/traffic.h"

namespace {

using namespace mcastcoll;
using namespace mcastcoll::ways;

struct Command {
    std::vector<std::string> ways, hosts, addresses{"127.0.0.1", "127.0.0.1"};
    unsigned rounds = 5, messages = 5000;
    double seconds = 0.5;
    std::size_t piece = trunk::kMaxPayload, kept_kib = 4096, small = 64, check_mib = 16;
    std::string json;
    int processor = -1;
    bool list = false;
};

int complain(const std::string& what, int code) {
    fmt::print(stderr, "relay_ways: {}\n", what);
    return code;
}

void add_options(CLI::App& app, Command& command) {
    app.add_option("--ways", command.ways, "names of ways, with commas (--list)")->delimiter(',');
    app.add_option("--rounds", command.rounds, "of all ways in turn")->check(CLI::Range(1, 1000));
    app.add_option("--seconds", command.seconds, "of bulk data for each way and direction in a round")
        ->check(CLI::Range(0.01, 60.0));
    app.add_option("--piece", command.piece, "most bytes of payload in a frame")
        ->check(CLI::Range(std::size_t{1}, trunk::kMaxPayload));
    app.add_option("--kept", command.kept_kib, "KiB of frames that are kept until they are acknowledged")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("--messages", command.messages, "to and fro for each way in a round, 0 for none")
        ->check(CLI::Range(0, 10'000'000));
    app.add_option("--small", command.small, "bytes of such a message")
        ->check(CLI::Range(std::size_t{1}, trunk::kMaxPayload));
    app.add_option("--check", command.check_mib,
                   "MiB of which each byte is looked at before anything is measured")
        ->check(CLI::Range(0, 4096));
    app.add_option("--hosts", command.hosts,
                   "PROCESS,RELAY,PEER: network namespaces to be in; all is on loopback otherwise")
        ->delimiter(',')
        ->expected(3);
    app.add_option("--addresses", command.addresses, "RELAY,PEER: IPv4 addresses of the latter two")
        ->delimiter(',')
        ->expected(2);
    app.add_option(
           "--processor", command.processor,
           "for the relay alone, while its ends have the others; otherwise all run where the kernel likes")
        ->check(CLI::Range(0, CPU_SETSIZE - 1));
    app.add_option("--json", command.json,
                   "file for the results, - for standard output instead of the table");
    app.add_flag("--list", command.list, "name the ways that this build and this kernel have, and end");
}

// Where the sockets come from.
class Place {
  public:
    static Result<Place> of(const Command& command) {
        Place place;
        for (std::size_t i = 0; i < command.hosts.size(); ++i) {
            auto host = Host::open(command.hosts[i]);
            if (!host) return host.error();
            place.hosts_[i] = std::move(host.value());
        }
        for (std::size_t i = 0; i < 2; ++i)
            if (inet_pton(AF_INET, command.addresses[i].c_str(), &place.addresses_[i]) != 1)
                return Error{EINVAL, fmt::format("--addresses: {} is no IPv4 address", command.addresses[i])};
        return place;
    }
    Result<Line> line() const {
        auto near = connect(hosts_[0], hosts_[1], addresses_[0]);
        if (!near) return near.error();
        auto far = connect(hosts_[1], hosts_[2], addresses_[1]);
        if (!far) return far.error();
        return Line{std::move(near.value().from), std::move(near.value().to), std::move(far.value().from),
                    std::move(far.value().to)};
    }
    Result<Line> direct_line() const {
        auto ends = connect(hosts_[0], hosts_[2], addresses_[1]);
        if (!ends) return ends.error();
        Line line;
        line.process = std::move(ends.value().from);
        line.connection = std::move(ends.value().to);
        return line;
    }

  private:
    Host hosts_[3];
    in_addr addresses_[2]{};
};

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// What was measured of one way: a value for each round.
struct Column {
    std::vector<double> rate, relay_cpu, all_cpu, calls;  // GB/s, s/GB, s/GB, 1/MB
    double copied = -1;                                   // share of sends without a copy that were copied

    void add(const Bulk& bulk) {
        const double gb = static_cast<double>(bulk.bytes) * 1e-9;
        rate.push_back(gb / bulk.seconds);
        relay_cpu.push_back(bulk.relay_cpu_s / gb);
        all_cpu.push_back(bulk.all_cpu_s / gb);
        calls.push_back(static_cast<double>(bulk.counters.calls) / gb * 1e-3);
        if (bulk.counters.without_copy > 0)
            copied = static_cast<double>(bulk.counters.copied_all_same) /
                     static_cast<double>(bulk.counters.without_copy);
    }
    nlohmann::ordered_json as_json() const {
        nlohmann::ordered_json object;
        object["GB_per_s"] = rate;
        object["relay_cpu_s_per_GB"] = relay_cpu;
        object["all_cpu_s_per_GB"] = all_cpu;
        object["calls_per_MB"] = calls;
        if (copied >= 0) object["copied_all_the_same"] = copied;
        return object;
    }
};

struct Measured {
    Column out, in;
    std::vector<double> added_us;  // by the relay, one way
};

struct Results {
    std::map<std::string, Measured> ways;
    std::vector<double> direct_us;
    double seal_s_per_gb = 0, open_s_per_gb = 0;
};

Result<void> check(const NamedWay& named, const Place& place, const Command& command,
                   const Settings& settings) {
    for (const Direction direction : {Direction::out, Direction::in}) {
        auto line = place.line();
        if (!line) return line.error();
        const auto way = named.make(settings);
        const auto right = check_bytes(*way, line.value(), direction, command.check_mib << 20, settings);
        if (!right)
            return Error{right.error().code,
                         fmt::format("{}, {}: {}", named.name, direction == Direction::out ? "out" : "in",
                                     right.error().message)};
    }
    return {};
}

Result<void> measure(const NamedWay& named, const Place& place, const Command& command,
                     const Settings& settings, double direct_us, Measured& to) {
    for (const Direction direction : {Direction::out, Direction::in}) {
        auto line = place.line();
        if (!line) return line.error();
        const auto way = named.make(settings);
        const auto bulk = measure_bulk(*way, line.value(), direction, command.seconds, settings);
        if (!bulk) return bulk.error();
        (direction == Direction::out ? to.out : to.in).add(bulk.value());
    }
    if (command.messages == 0) return {};
    auto line = place.line();
    if (!line) return line.error();
    const auto way = named.make(settings);
    const auto half = measure_latency(way.get(), line.value(), command.small, command.messages, settings);
    if (!half) return half.error();
    to.added_us.push_back(half.value() - direct_us);
    return {};
}

Result<void> measure_all(const std::vector<NamedWay>& ways, const Place& place, const Command& command,
                         const Settings& settings, Results& results) {
    if (command.check_mib > 0)
        for (const NamedWay& way : ways)
            if (auto right = check(way, place, command, settings); !right) return right;
    for (unsigned round = 0; round < command.rounds; ++round) {
        double direct_us = 0;
        if (command.messages > 0) {
            auto line = place.direct_line();
            if (!line) return line.error();
            const auto half =
                measure_latency(nullptr, line.value(), command.small, command.messages, settings);
            if (!half) return half.error();
            direct_us = half.value();
            results.direct_us.push_back(direct_us);
        }
        for (std::size_t i = 0; i < ways.size(); ++i) {
            // Each round begins with another, so that none always follows the same one.
            const NamedWay& way = ways[(i + round) % ways.size()];
            if (auto done = measure(way, place, command, settings, direct_us, results.ways[way.name]); !done)
                return Error{done.error().code, way.name + ": " + done.error().message};
        }
    }
    return {};
}

// What a key costs on top, whatever the way: sealing into another buffer and opening in place, by the
// gateway's own code.
void measure_seals(Results& results, std::size_t piece) {
    const auto clock = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
    constexpr std::size_t kTotal = 256 << 20;
    const gateway::Secret key{};
    gateway::Sealer sealer(key);
    gateway::Opener opener(key);
    const std::vector<std::byte> plain(trunk::kHeaderSize + piece);
    std::vector<std::byte> record;
    double sealing = 0, opening = 0;
    for (std::size_t done = 0; done < kTotal; done += piece) {
        record.clear();
        const double start = clock();
        sealer.seal(plain, record);
        const double sealed = clock();
        opener.open_record(record);
        sealing += sealed - start;
        opening += clock() - sealed;
    }
    results.seal_s_per_gb = sealing / (kTotal * 1e-9);
    results.open_s_per_gb = opening / (kTotal * 1e-9);
}

void print_table(const std::vector<NamedWay>& ways, const Results& results) {
    fmt::print("{:17} {:>9} {:>11} {:>9} {:>9} | {:>9} {:>11} {:>9} {:>9} | {:>9}\n", "", "out: GB/s",
               "relay s/GB", "all s/GB", "calls/MB", "in: GB/s", "relay s/GB", "all s/GB", "calls/MB",
               "small, us");
    for (const NamedWay& way : ways) {
        const Measured& one = results.ways.at(way.name);
        fmt::print("{:17} {:9.2f} {:11.3f} {:9.3f} {:9.1f} | {:9.2f} {:11.3f} {:9.3f} {:9.1f} | {:9.2f}",
                   way.name, median(one.out.rate), median(one.out.relay_cpu), median(one.out.all_cpu),
                   median(one.out.calls), median(one.in.rate), median(one.in.relay_cpu),
                   median(one.in.all_cpu), median(one.in.calls), median(one.added_us));
        if (one.out.copied >= 0) fmt::print("   {:.0f} % copied all the same", one.out.copied * 100);
        fmt::print("\n");
    }
    fmt::print(
        "a small message directly: {:.2f} us one way; sealing with a key: {:.3f} s/GB, opening: {:.3f}\n",
        median(results.direct_us), results.seal_s_per_gb, results.open_s_per_gb);
}

nlohmann::ordered_json as_json(const std::vector<NamedWay>& ways, const Command& command,
                               const Results& results) {
    nlohmann::ordered_json object;
    object["piece"] = command.piece;
    object["kept_KiB"] = command.kept_kib;
    object["seconds"] = command.seconds;
    object["small"] = command.small;
    object["hosts"] = command.hosts;
    object["processor"] = command.processor;
    for (const NamedWay& way : ways) {
        const Measured& one = results.ways.at(way.name);
        nlohmann::ordered_json& to = object["ways"][way.name];
        to["out"] = one.out.as_json();
        to["in"] = one.in.as_json();
        to["added_us"] = one.added_us;
    }
    object["direct_us"] = results.direct_us;
    object["seal_s_per_GB"] = results.seal_s_per_gb;
    object["open_s_per_GB"] = results.open_s_per_gb;
    return object;
}

// Those asked for, in the order of all.
Result<std::vector<NamedWay>> chosen(const std::vector<std::string>& names) {
    std::vector<NamedWay> all = all_ways(), some;
    if (names.empty()) return all;
    for (const std::string& name : names)
        if (std::none_of(all.begin(), all.end(), [&](const NamedWay& way) { return way.name == name; }))
            return Error{EINVAL, fmt::format("--ways: there is no {} here; see --list", name)};
    for (NamedWay& way : all)
        if (std::find(names.begin(), names.end(), way.name) != names.end()) some.push_back(std::move(way));
    return some;
}

int run(int argc, char** argv) {
    CLI::App app("Relays bytes as a gateway does, in several ways in turn, and says what each costs.",
                 "relay_ways");
    app.get_formatter()->column_width(28);
    Command command;
    add_options(app, command);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        return complain(fmt::format("{}; see --help", error.what()), 2);
    }
    const auto ways = chosen(command.ways);
    if (!ways) return complain(ways.error().message, 2);
    if (command.list) {
        for (const NamedWay& way : ways.value()) fmt::print("{:17} {}\n", way.name, way.about);
        return 0;
    }
    const auto place = Place::of(command);
    if (!place) return complain(place.error().message, 2);
    if (auto started = gateway::start_cryptography(); !started) return complain(started.error().message, 1);
    // As the gateway does: frames' memory is kept.
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    const Settings settings{command.piece, command.kept_kib << 10, command.processor};
    if (command.processor >= 0)
        if (auto off = stay_off(command.processor); !off) return complain(off.error().message, 1);
    Results results;
    if (auto done = measure_all(ways.value(), place.value(), command, settings, results); !done)
        return complain(done.error().message, 1);
    measure_seals(results, command.piece);
    if (command.json != "-") print_table(ways.value(), results);
    if (command.json.empty()) return 0;
    const std::string text = as_json(ways.value(), command, results).dump(1) + "\n";
    if (command.json == "-") {
        fmt::print("{}", text);
        return 0;
    }
    std::ofstream file(command.json);
    file << text;
    file.close();
    return file ? 0 : complain("cannot write " + command.json, 1);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        return complain(error.what(), 1);
    }
}
