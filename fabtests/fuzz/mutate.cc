// Runs a fuzzer without libFuzzer: the given inputs, then as many mutations as the time allows, always in the
// same order.  It does not measure coverage, so finding new inputs is left to libFuzzer.
//
//     fuzz_NAME [--seconds N] [--seed N] [--findings PREFIX] [FILE or FOLDER ...]
//
// An input that breaks the fuzzer is written to PREFIX-SEED-NUMBER.
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Text = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

constexpr std::size_t kMaxBytes = 1024;
constexpr unsigned kMaxSeconds = 25;  // limit for one input

Text current;
char finding[512];

void keep_finding() {
    const int file = ::open(finding, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file >= 0 && ::write(file, current.data(), current.size()) >= 0) (void)::close(file);
    std::fprintf(stderr, "the input is in %s\n", finding);
}

void on_signal(int number) {
    std::fprintf(stderr, "ended by signal %d%s\n", number, number == SIGALRM ? ": it takes too long" : "");
    keep_finding();
    ::_exit(1);
}

std::size_t below(Random& random, std::size_t bound) {
    return bound == 0 ? 0 : random() % bound;
}

// Numbers are at the end, so most changes are made there.
void change_once(Random& random, Text& text, const Text& other) {
    const bool late = random() % 2 == 0;
    const std::size_t last = std::min<std::size_t>(text.size(), 48);
    const std::size_t at = late ? text.size() - below(random, last + 1) : below(random, text.size() + 1);
    const auto place = text.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 7) {
        case 0:
            if (at < text.size()) *place ^= static_cast<std::uint8_t>(1U << random() % 8);
            break;
        case 1:
            if (at < text.size()) *place = static_cast<std::uint8_t>(random());
            break;
        case 2:
            text.insert(place, 1 + below(random, 16), static_cast<std::uint8_t>(random()));
            break;
        case 3:
            text.erase(place, place + static_cast<std::ptrdiff_t>(below(random, text.size() - at + 1)));
            break;
        case 4:
            for (std::size_t count = 1 + below(random, 32); count > 0; --count)
                text.insert(text.begin() + static_cast<std::ptrdiff_t>(at),
                            static_cast<std::uint8_t>(random()));
            break;
        case 5: {
            const std::size_t from = below(random, other.size() + 1);
            text.insert(place, other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
            break;
        }
        case 6:
            if (at < text.size()) *place = static_cast<std::uint8_t>(random() % 2 == 0 ? 0 : 255);
            break;
    }
    if (text.size() > kMaxBytes) text.resize(kMaxBytes);
}

void run(const std::string& prefix, const std::string& name) {
    std::snprintf(finding, sizeof finding, "%s-%s", prefix.c_str(), name.c_str());
    ::alarm(kMaxSeconds);
    // The memory has no spare bytes, so that sanitizers detect accesses beyond the end.
    const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[current.size()]);
    std::ranges::copy(current, exact.get());
    (void)LLVMFuzzerTestOneInput(exact.get(), current.size());
}

void add(std::vector<Text>& all, const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int count, char** arguments) {
    double seconds = 0;
    std::uint64_t seed = 1;
    std::string prefix = "finding";
    std::vector<std::filesystem::path> paths;
    for (int i = 1; i < count; ++i) {
        const std::string word = arguments[i];
        const char* const value = i + 1 < count ? arguments[i + 1] : "";
        if (word == "--seconds")
            seconds = std::atof(value), ++i;
        else if (word == "--seed")
            seed = std::strtoull(value, nullptr, 0), ++i;
        else if (word == "--findings")
            prefix = value, ++i;
        else if (std::filesystem::is_directory(word))
            for (const auto& entry : std::filesystem::directory_iterator(word)) paths.push_back(entry.path());
        else
            paths.emplace_back(word);
    }
    std::ranges::sort(paths);
    std::vector<Text> all{Text()};
    for (const auto& path : paths) add(all, path);
    ::__sanitizer_set_death_callback(keep_finding);
    for (const int number : {SIGABRT, SIGALRM}) (void)::signal(number, on_signal);
    for (std::size_t i = 0; i < all.size(); ++i) {
        current = all[i];
        run(prefix, i == 0 ? "empty" : paths[i - 1].filename().string());
    }
    Random random(seed);
    std::uint64_t executed = all.size();
    const auto begun = std::chrono::steady_clock::now();
    const auto end = begun + std::chrono::duration<double>(seconds);
    for (std::uint64_t number = 0; std::chrono::steady_clock::now() < end; ++number, ++executed) {
        current = all[below(random, all.size())];
        const Text& other = all[below(random, all.size())];
        for (std::size_t changes = 1 + below(random, 6); changes > 0; --changes)
            change_once(random, current, other);
        run(prefix, std::to_string(seed) + "-" + std::to_string(number));
    }
    std::printf("%llu executions\n", static_cast<unsigned long long>(executed));
    return 0;
}
