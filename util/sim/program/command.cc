#include "command.h"

#include <fmt/format.h>

#include <bit>
#include <list>

#include "arguments/arguments.h"
#include "figures/figure.h"
#include "text.h"

namespace mcastcoll::sim {
namespace {

constexpr std::uint32_t kMaxRanks = 1 << 20;

// Raw values of the options, before parsing.
struct Words {
    std::string root = "rotate", arrival = "together", faults = "none", root_sync = "none",
                redundancy = "auto", size = "8", kill;
    std::list<std::string> times;
    std::vector<std::string> collectives;
    double gigabits = 0;
};

std::string take_time(const std::string& text, Nanoseconds& time) {
    const auto value = parse_time(text);
    if (value) time = *value;
    return value ? std::string{} : "'" + text + "' is not a time; write it like 500ns, 20us or 1.5ms";
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    unsigned shift = 0;
    if (text.ends_with('K')) shift = 10;
    if (text.ends_with('M')) shift = 20;
    if (text.ends_with('G')) shift = 30;
    if (shift > 0) text.remove_suffix(1);
    const auto value = parse<std::uint64_t>(text);
    if (!value || *value > (std::uint64_t{1} << 30) >> shift) return std::nullopt;
    return *value << shift;
}

std::string take_arrival(const std::string& text, Arrival& arrival) {
    static constexpr const char* kPatterns[] = {"together", "skew", "root-first", "root-late", "one-late"};
    const auto parts = split(text, ':');
    const auto by = parts.size() == 2 ? parse_time(parts[1]) : std::nullopt;
    for (std::uint8_t i = 0; i < std::size(kPatterns) && parts.size() == (by ? 2U : 1U); ++i) {
        if (parts[0] != kPatterns[i] || by.has_value() != (i > 0)) continue;
        arrival = {static_cast<Arrival::Pattern>(i), by.value_or(Nanoseconds{})};
        return {};
    }
    return fmt::format(
        "--arrival '{}': allowed are together, skew:TIME, root-first:TIME, root-late:TIME, one-late:TIME",
        text);
}

std::string take_root_sync(const std::string& text, Experiment& experiment) {
    const auto parts = split(text, ':');
    const auto delay = parts.size() == 2 ? parse_time(parts[1]) : std::nullopt;
    for (std::uint8_t i = 0; i < engine::kRootSyncCount && parts.size() == (delay ? 2U : 1U); ++i) {
        const auto sync = static_cast<engine::RootSync>(i);
        if (parts[0] != engine::name_of(sync) || delay.has_value() != (sync == engine::RootSync::delay))
            continue;
        experiment.root_sync = sync;
        experiment.root_delay = delay.value_or(Nanoseconds{});
        return {};
    }
    return fmt::format("--root-sync '{}': allowed are none, delay:TIME, random, adaptive", text);
}

std::string take_root(const std::string& text, Experiment& experiment) {
    if (text == "rotate") return {};
    const auto rank = parse<std::uint64_t>(text);
    if (!rank || *rank >= experiment.ranks)
        return fmt::format("--root '{}': allowed are 0 to {}, and rotate", text, experiment.ranks - 1);
    experiment.root = static_cast<std::uint32_t>(*rank);
    return {};
}

// Parses the value of --kill: RANK:OPERATION, or RANK alone. Returns an error message or "".
std::string take_kill(const std::string& text, Command& command) {
    if (text.empty()) return {};
    const auto parts = split(text, ':');
    const auto rank = parse<std::uint64_t>(parts[0]);
    const auto operation = parts.size() == 2 ? parse<std::uint64_t>(parts[1]) : std::uint64_t{0};
    const std::uint64_t max = command.collectives.size() * command.experiment.operations - 1;
    if (!rank || *rank >= command.experiment.ranks || !operation || *operation >= max || parts.size() > 2)
        return fmt::format(
            "--kill '{}': allowed are a rank below {}, and, behind a colon, an operation before the last of "
            "{}",
            text, command.experiment.ranks, max + 1);
    command.kill = {static_cast<std::uint32_t>(*rank), *operation};
    return {};
}

// Checks options that exist only for whole groups, or only for engines alone.
std::string take_group(const Arguments& arguments, const Words& words, Command& command) {
    if (!command.hosts) {
        for (const char* name : {"--per-host", "--collectives", "--kill"})
            if (arguments.given(name)) return fmt::format("{}: allowed only with --hosts", name);
        return {};
    }
    for (const char* name : {"--ranks", "--groups", "--slots", "--window", "--fragment",
                             "--retransmit-buffer", "--root-sync", "--arrival"})
        if (arguments.given(name)) return fmt::format("{}: not allowed with --hosts", name);
    if (command.policy == "binomial")
        return "--policy 'binomial': allowed with --hosts are push, pull, sync, auto";
    const std::uint32_t max = kMaxRanks / *command.hosts;
    if (command.per_host > max)
        return fmt::format("--per-host {}: allowed with --hosts {} are 1 to {}", command.per_host,
                           *command.hosts, max);
    command.experiment.ranks = *command.hosts * command.per_host;
    if (!words.collectives.empty()) command.collectives.clear();
    for (const std::string& name : words.collectives) command.collectives.push_back(*kind_named(name));
    return take_kill(words.kill, command);
}

// Parses the values; returns an error message or "".
std::string digest(const Arguments& arguments, const Words& words, Command& command) {
    Experiment& experiment = command.experiment;
    if (std::string wrong = take_group(arguments, words, command); !wrong.empty()) return wrong;
    const auto size = parse_size(words.size);
    if (!size) return fmt::format("--size '{}': allowed are 0 to 1G bytes, with K, M or G", words.size);
    experiment.bytes = *size;
    if (std::string wrong = take_root(words.root, experiment); !wrong.empty()) return wrong;
    if (std::string wrong = take_arrival(words.arrival, experiment.arrival); !wrong.empty()) return wrong;
    if (std::string wrong = take_root_sync(words.root_sync, experiment); !wrong.empty()) return wrong;
    auto faults = parse_faults(words.faults);
    if (!faults) return fmt::format("--faults {}", faults.error().message);
    experiment.faults = faults.value();
    if (command.loss_percent > 0) experiment.faults.loss = command.loss_percent / 100;
    if (words.gigabits > 0) experiment.model.ns_per_byte = 8 / words.gigabits;
    experiment.model.receive_overhead = experiment.model.send_overhead;
    if (experiment.slots && !std::has_single_bit(*experiment.slots))
        return fmt::format("--slots {}: allowed are powers of two from 8 to 1024", *experiment.slots);
    if (command.policy == "binomial") return {};
    for (std::uint8_t i = 0; i < engine::kRedundancyCount; ++i)
        if (words.redundancy == engine::name_of(static_cast<engine::Redundancy>(i)))
            experiment.redundancy = static_cast<engine::Redundancy>(i);
    for (std::uint8_t i = 0; i < engine::kRepairCount; ++i)
        if (command.policy == engine::name_of(static_cast<engine::Repair>(i)))
            experiment.policy = static_cast<engine::Repair>(i);
    return {};
}

std::vector<std::string> collective_names() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kCollectiveKinds; ++i)
        names.emplace_back(name_of(static_cast<CollectiveKind>(i)));
    return names;
}

void add_options(Arguments& arguments, Words& words, Command& command) {
    Experiment& e = command.experiment;
    const auto time = [&](const char* name, Nanoseconds& taken, const char* what) {
        arguments.option(name, words.times.emplace_back(), what)
            .check([&taken](const std::string& text) { return take_time(text, taken); }, "TIME");
    };
    arguments.option("--ranks", e.ranks, "number of processes, one on each host").range(2U, kMaxRanks);
    arguments
        .option("--hosts", command.hosts,
                "number of hosts of a whole group, which joins, runs the collectives, and leaves")
        .range(1, 65'536);
    arguments.option("--per-host", command.per_host, "processes on each of --hosts").range(1, 1024);
    arguments
        .option("--collectives", words.collectives,
                "comma-separated collectives of a whole group, each --ops times [broadcast]")
        .commas_between()
        .one_of(collective_names());
    arguments.option(
        "--kill", words.kill,
        "RANK or RANK:OPERATION: a rank of a whole group that dies during an operation (counted from 0 over "
        "all collectives [0], not the last one); all other ranks must detect the death");
    arguments.option("--size", words.size, "bytes of a broadcast, or of one member's part, with K, M or G");
    arguments.option("--ops", e.operations, "number of broadcasts, or of operations of each of --collectives")
        .range(1, 1'000'000);
    arguments.option("--loss", command.loss_percent, "percentage of the multicasts that each receiver loses")
        .range(0.0, 100.0);
    arguments
        .option("--policy", command.policy,
                "repair policy, or binomial: a tree of messages without an engine")
        .one_of({"push", "pull", "sync", "auto", "binomial"});
    arguments
        .option("--redundancy", words.redundancy,
                "whether copies or parity are multicast: depending on losses, never, always")
        .one_of({"auto", "off", "on"});
    arguments.option("--seed", e.seed, "seed of all random choices: the same seed gives the same run");
    arguments.option("--root", words.root, "root: a rank, or rotate (every rank in turn)");
    arguments.option(
        "--arrival", words.arrival,
        "when the ranks enter an operation: together, skew:TIME (each up to TIME late), root-first:TIME (the "
        "others TIME late), root-late:TIME, one-late:TIME (another rank each time)");
    arguments.option("--faults", words.faults, "faults to inject; --help-all lists the words");
    arguments.option("--root-sync", words.root_sync,
                     "delay of a root before it multicasts: none, delay:TIME, random, adaptive");
    arguments
        .option("--groups", e.groups, "number of groups over the same hosts, which work at the same time")
        .range(1, 64);
    arguments.option("--slots", e.slots, "maximum of operations between the slowest and the fastest member")
        .range(8, 1024);
    arguments.option("--window", e.window, "fragments a root may be ahead").range(16, 4096);
    arguments.option("--fragment", e.fragment_bytes, "bytes of payload in a datagram").range(64, 8192);
    arguments
        .option("--retransmit-buffer", e.retransmit_bytes,
                "maximum bytes of a small message, the size of its retransmit buffer")
        .range(64, 1 << 20);
    // Before options that change parts of the network: options are applied in this order.
    arguments
        .option("--network", command.network,
                fmt::format("name of the network: {}", fmt::join(names_of(all_networks()), ", ")))
        .check(
            [&e](const std::string& name) {
                const NamedNetwork* network = named(all_networks(), name);
                if (network != nullptr) e.model = network->model;
                return network != nullptr ? std::string{}
                                          : fmt::format("'{}': allowed are {}", name,
                                                        fmt::join(names_of(all_networks()), ", "));
            },
            "NAME");
    time("--latency", e.model.latency, "latency of the wires between two hosts [10us]");
    time("--overhead", e.model.send_overhead, "processor time for each packet sent or received [1us]");
    time("--gap", e.model.gap, "time between two packets of an adapter [500ns]");
    arguments.option("--bandwidth", words.gigabits, "in Gbit/s [10]").range(0.001, 10'000.0);
    arguments.option("--port-buffer", e.model.port_buffer,
                     "bytes of multicast that an output port of the switch can buffer");
    arguments.option("--socket-buffer", e.model.socket_buffer, "datagrams that a host can buffer");
    time("--retransmission", e.model.retransmission,
         "time until a lost message is sent again [4 round trips]");
    time("--settle", e.settle, "pause between two operations [200us]");
    arguments.flag("--json", command.json, "print one JSON object instead of a table");
    arguments
        .option("--campaign", command.campaign.seeds,
                "number of seeds to run, each with its own scenario, with all checks")
        .range(1, 1'000'000'000);
    arguments.option("--first", command.campaign.first, "the first seed of a campaign");
    arguments.option("--jobs", command.campaign.jobs, "number of processes of a campaign").range(1, 1024);
    arguments.option("--figure", command.figure,
                     "compute a figure of the literature from this engine; list names them");
    arguments.option("--out", command.out,
                     "output of a figure: FILE.csv, FILE.svg (needs gnuplot), or both with a comma");
    arguments
        .option("--largest", command.largest,
                "ranks of the largest group in the figure growth [65536, 256 with --quick]")
        .range(16, 65'536);
    arguments.flag("--quick", command.quick, "fewer and smaller points in a figure or in --acceptance");
    arguments.flag("--acceptance", command.acceptance, "check the acceptance criteria of the protocol");
    arguments.flag("--full", command.full, "--acceptance with up to 65,536 ranks");
    arguments.daily(
        {"--ranks", "--hosts", "--per-host", "--collectives", "--size", "--ops", "--loss", "--policy",
         "--seed", "--faults", "--json", "--campaign", "--jobs", "--figure", "--out", "--acceptance"},
        std::string(
            "Words of --faults, separated by commas; a SHARE is 0..1 or a percentage, a TIME has a unit:\n") +
            faults_help());
}

}  // namespace

int complain(const std::string& what) {
    fmt::print(stderr, "mcastcoll-sim: {}\n", what);
    return 2;
}

std::optional<int> parse(int argc, char** argv, Command& command) {
    Arguments arguments(
        "mcastcoll-sim",
        "Runs the protocol engine of mcastcoll in a simulated network, in virtual time.\n\n"
        "  mcastcoll-sim --ranks 64 --size 64K --loss 1      broadcasts, 1 % of the datagrams lost\n"
        "  mcastcoll-sim --figure size --out size.svg        a chart of many runs\n"
        "  mcastcoll-sim --campaign 600 --jobs 2             random faults, every rule checked\n",
        MCC_VERSION);
    Words words;
    add_options(arguments, words, command);
    command.replay = "mcastcoll-sim";
    for (int i = 1; i < argc; ++i) command.replay += fmt::format(" {}", argv[i]);
    if (const auto ended = arguments.parse(argc, argv)) return ended;
    if (std::string wrong = digest(arguments, words, command); !wrong.empty()) return complain(wrong);
    return std::nullopt;
}

}  // namespace mcastcoll::sim
