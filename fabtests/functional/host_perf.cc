// Times of host::Team's collectives: the last member's end minus the start (the root's entry for broadcast,
// the last entry for the others), median over separated operations, in microseconds; and operations back to
// back.
//
// Variants of the settings run alternately in one job, in blocks of operations, because the speed of a shared
// machine changes from one second to the next.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "arguments/arguments.h"
#include "base/clock.h"
#include "config.h"
#include "host_members.h"
#include "host_shapes.h"

using namespace mcastcoll;
using host::Kind;
using host::Operation;

namespace {

constexpr std::size_t kMaxSamples = 10'000;
constexpr std::size_t kBlocks = 5;

struct Variant {
    std::string label = "default";
    test::MembersOptions options;
    host::TeamConfig config;
};

struct Workload {
    std::vector<std::string> operations{"barrier", "broadcast", "reduce", "allreduce", "allgather"};
    std::vector<std::size_t> sizes{8, 64, 1024, 8192, 65'536, 1'048'576};
    std::size_t count = 1000;
    std::vector<Variant> variants;
};

// Start and end times of every member, in shared memory.
struct Samples {
    std::int64_t begin[kMaxSamples];
    std::int64_t end[kMaxSamples];
};

struct Row {
    std::string operation;
    std::size_t bytes;
    std::string variant;
    double median_us, p10_us, p90_us, back_to_back_us;
};

void add(void* out, const void* one, const void* other, std::size_t elements) {
    const auto *first = static_cast<const double*>(one), *second = static_cast<const double*>(other);
    for (std::size_t i = 0; i < elements; ++i) static_cast<double*>(out)[i] = first[i] + second[i];
}

void apply(host::TeamConfig& config, const std::string& key, std::uint64_t value) {
    if (key == "slots")
        config.slots = static_cast<std::uint32_t>(value);
    else if (key == "slot_bytes")
        config.slot_bytes = static_cast<std::uint32_t>(value);
    else if (key == "single_copy_from")
        config.thresholds.single_copy_from = value;
    else if (key == "both_copy_from")
        config.thresholds.both_copy_from = value;
    else if (key == "share_from")
        config.thresholds.share_from = value;
    else if (key == "blocks_direct_from")
        config.thresholds.blocks_direct_from = value;
    else if (key == "reduce_direct_from")
        config.thresholds.reduce_direct_from = value;
    else if (key == "single_copy")
        config.single_copy = value != 0;
    else if (key == "crowded")
        config.crowding =
            value != 0 ? host::TeamConfig::Crowding::crowded : host::TeamConfig::Crowding::roomy;
    else
        throw std::invalid_argument(
            "'" + key +
            "' is none of slots, slot_bytes, single_copy_from, both_copy_from, "
            "share_from, blocks_direct_from, reduce_direct_from, single_copy, crowded");
}

// Parses the settings of a variant: "slots=4,slot_bytes=4096".
Variant parse_variant(const std::string& text) {
    Variant variant;
    variant.label = text;
    std::stringstream words(text);
    std::string word;
    while (std::getline(words, word, ',')) {
        const std::size_t at = word.find('=');
        if (at == std::string::npos) throw std::invalid_argument("'" + word + "' is not KEY=NUMBER");
        std::uint64_t value = 0;
        const char* const end = word.data() + word.size();
        if (std::from_chars(word.data() + at + 1, end, value).ptr != end || at + 1 == word.size())
            throw std::invalid_argument("'" + word + "' is not KEY=NUMBER");
        apply(variant.options.config, word.substr(0, at), value);
    }
    return variant;
}

class Meter {
  public:
    Meter(host::Team& outer, const Workload& workload, Samples* samples)
        : outer_(outer), workload_(workload), samples_(samples) {}

    int run() {
        for (const Variant& variant : workload_.variants) {
            host::TeamConfig config = variant.config;
            config.self = outer_.self();
            auto team = test::join(config);
            if (!team) return fmt::print(stderr, "{}\n", team.error().message), 1;
            teams_.push_back(std::move(team).value());
        }
        for (const std::string& name : workload_.operations)
            for (const std::size_t bytes : workload_.sizes) {
                measure(name, kind_named(name) == Kind::barrier ? 0 : bytes);
                if (kind_named(name) == Kind::barrier) break;
            }
        meet(outer_);
        return 0;
    }
    const std::vector<Row>& rows() const { return rows_; }
    const std::vector<std::unique_ptr<host::Team>>& teams() const { return teams_; }

  private:
    // Returns zeroed memory that begins on a page.
    static std::unique_ptr<std::byte, decltype(&std::free)> pages(std::size_t bytes) {
        const std::size_t rounded = (bytes / 4096 + 1) * 4096;
        auto* data = static_cast<std::byte*>(std::aligned_alloc(4096, rounded));
        std::memset(data, 0, rounded);
        return {data, &std::free};
    }

    static void meet(host::Team& team) {
        Operation barrier;
        team.run(barrier);
    }

    Operation operation(Kind kind, std::size_t bytes) {
        Operation made;
        made.kind = kind;
        made.buffer = buffer_.get();
        made.input = input_.get();
        made.bytes = made.ready = bytes;
        made.combiner = {add, sizeof(double)};
        return made;
    }

    void measure(const std::string& name, std::size_t bytes) {
        const Kind kind = *kind_named(name);
        const test::Shape shape =
            test::shape_of({kind, 0, bytes / sizeof(double), outer_.self(), outer_.size()});
        buffer_ = pages(std::max(bytes, shape.output * sizeof(double)));
        input_ = pages(std::max(bytes, shape.input * sizeof(double)));
        const std::size_t parts = kind < Kind::allgather || kind == Kind::reduce_scatter ? 1 : outer_.size();
        const std::size_t cost = 1 + bytes * parts / 4096 + outer_.size() / 4;
        const std::size_t block =
            std::clamp<std::size_t>(workload_.count / kBlocks / cost, 4, kMaxSamples / kBlocks);
        std::vector<std::vector<double>> times(teams_.size());
        std::vector<std::vector<double>> rates(teams_.size());
        for (std::size_t turn = 0; turn < kBlocks; ++turn)
            for (std::size_t which = 0; which < teams_.size(); ++which) {
                separated(*teams_[which], kind, bytes, block, times[which]);
                rates[which].push_back(back_to_back(*teams_[which], kind, bytes, block));
            }
        for (std::size_t which = 0; which < teams_.size() && outer_.self() == 0; ++which) {
            std::sort(times[which].begin(), times[which].end());
            std::sort(rates[which].begin(), rates[which].end());
            const auto at = [&](double share) {
                return times[which]
                            [static_cast<std::size_t>(share * static_cast<double>(times[which].size() - 1))];
            };
            rows_.push_back({name, bytes, workload_.variants[which].label, at(0.5), at(0.1), at(0.9),
                             rates[which][rates[which].size() / 2]});
        }
    }

    void separated(host::Team& team, Kind kind, std::size_t bytes, std::size_t count,
                   std::vector<double>& times_us) {
        meet(outer_);
        Samples& own = samples_[outer_.self()];
        for (std::size_t i = 0; i < count; ++i) {
            meet(team);
            Operation op = operation(kind, bytes);
            own.begin[i] = monotonic_now().value;
            team.run(op);
            own.end[i] = monotonic_now().value;
        }
        meet(outer_);
        if (outer_.self() == 0)
            for (std::size_t i = 0; i < count; ++i) {
                std::int64_t begin = samples_[0].begin[i], end = 0;
                for (std::uint32_t member = 0; member < outer_.size(); ++member) {
                    end = std::max(end, samples_[member].end[i]);
                    if (kind != Kind::broadcast) begin = std::max(begin, samples_[member].begin[i]);
                }
                times_us.push_back(static_cast<double>(end - begin) / 1e3);
            }
        meet(outer_);
    }

    double back_to_back(host::Team& team, Kind kind, std::size_t bytes, std::size_t count) {
        meet(outer_);
        const std::int64_t begin = monotonic_now().value;
        for (std::size_t i = 0; i < count; ++i) {
            Operation op = operation(kind, bytes);
            team.run(op);
        }
        meet(team);
        return static_cast<double>(monotonic_now().value - begin) / 1e3 / static_cast<double>(count);
    }

    host::Team& outer_;
    const Workload& workload_;
    Samples* samples_;
    std::vector<std::unique_ptr<host::Team>> teams_;
    std::unique_ptr<std::byte, decltype(&std::free)> buffer_{nullptr, &std::free};
    std::unique_ptr<std::byte, decltype(&std::free)> input_{nullptr, &std::free};
    std::vector<Row> rows_;
};

void print(const std::vector<Row>& rows, std::uint32_t members, bool json) {
    if (json) {
        nlohmann::json all = nlohmann::json::array();
        for (const Row& row : rows)
            all.push_back({{"members", members},
                           {"operation", row.operation},
                           {"bytes", row.bytes},
                           {"variant", row.variant},
                           {"median_us", row.median_us},
                           {"p10_us", row.p10_us},
                           {"p90_us", row.p90_us},
                           {"back_to_back_us", row.back_to_back_us}});
        fmt::print("{}\n", all.dump(1));
        return;
    }
    fmt::print("{:>7} {:<10} {:>9} {:>10} {:>10} {:>10} {:>12}  {}\n", "members", "operation", "bytes",
               "median us", "p10", "p90", "back to back", "variant");
    for (const Row& row : rows)
        fmt::print("{:>7} {:<10} {:>9} {:>10.2f} {:>10.2f} {:>10.2f} {:>12.2f}  {}\n", members, row.operation,
                   row.bytes, row.median_us, row.p10_us, row.p90_us, row.back_to_back_us, row.variant);
}

}  // namespace

int main(int argc, char** argv) {
    Workload workload;
    test::MembersOptions options;
    std::vector<std::string> variants;
    bool json = false, explain = false;
    unsigned limit_s = 600;
    Arguments arguments("fi_mcc_host_perf", "Time of collectives in shared memory", PACKAGE_VERSION);
    arguments.option("-m,--members", options.count, "members, 1 to 1024").range(1U, host::kMaxMembers);
    arguments.option("--op", workload.operations, "operations")
        .commas_between()
        .check(
            [](const std::string& name) {
                return kind_named(name) ? std::string() : "'" + name + "' is no collective, such as alltoall";
            },
            "OPERATION");
    arguments.option("--size", workload.sizes, "sizes in bytes, multiples of 8").commas_between();
    arguments.option("-n,--count", workload.count, "operations measured of the smallest").range(20, 10'000);
    arguments.option("--variant", variants, "settings, as slots=4,slot_bytes=4096; several run alternately");
    arguments.flag("--json", json, "machine-readable");
    arguments.flag("--explain", explain, "what each variant's team has chosen");
    arguments.option("--timeout", limit_s, "seconds until it counts as hanging");
    if (const auto ended = arguments.parse(argc, argv)) return *ended;
    if (variants.empty()) workload.variants.emplace_back();
    try {
        for (const std::string& text : variants) workload.variants.push_back(parse_variant(text));
    } catch (const std::exception& error) {
        fmt::print(stderr, "fi_mcc_host_perf: --variant: {}\n", error.what());
        return 2;
    }
    for (Variant& variant : workload.variants) {
        variant.options.count = options.count;
        variant.config = test::fresh_config(variant.options);
    }
    void* shared = ::mmap(nullptr, options.count * sizeof(Samples), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    ::alarm(limit_s);
    const int failures = test::run_members(options, [&](host::Team& team) {
        ::alarm(limit_s);
        Meter meter(team, workload, static_cast<Samples*>(shared));
        const int result = meter.run();
        if (result == 0 && team.self() == 0) {
            for (const auto& each : meter.teams())
                if (explain) fmt::print(stderr, "{}\n", each->explain());
            print(meter.rows(), options.count, json);
        }
        return result;
    });
    return failures == 0 ? 0 : 1;
}
