#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <fstream>

#include "base/deadline.h"
#include "base/file_descriptor.h"
#include "probes.h"

namespace mcastcoll::doctor {
namespace {

struct Pipe {
    FileDescriptor reading, writing;
    static std::optional<Pipe> open() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) return {};
        return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
    }
};

bool is_of_a_launcher(std::string_view variable) {
    for (const std::string_view prefix : {"PMIX_", "PMI_", "OMPI_COMM_", "OMPI_UNIVERSE", "SLURM_"})
        if (variable.starts_with(prefix)) return true;
    return false;
}

std::vector<std::string> environment_for(const std::vector<std::string>& more) {
    std::vector<std::string> all = more;
    for (char** at = environ; *at != nullptr; ++at)
        if (!is_of_a_launcher(*at)) all.emplace_back(*at);
    return all;
}

std::vector<char*> as_array(std::vector<std::string>& words) {
    std::vector<char*> array;
    for (std::string& word : words) array.push_back(word.data());
    array.push_back(nullptr);
    return array;
}

// Reads until both ends are closed or the time is over.
bool read_both(const Pipe& out, const Pipe& err, Ran& ran, const Deadline& deadline) {
    pollfd ends[2] = {{out.reading.get(), POLLIN, 0}, {err.reading.get(), POLLIN, 0}};
    std::string* const texts[2] = {&ran.output, &ran.complaint};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (::poll(ends, 2, deadline.left_ms()) <= 0 && deadline.over()) return false;
        for (int i = 0; i < 2; ++i) {
            if (ends[i].fd < 0 || ends[i].revents == 0) continue;
            char bytes[16384];
            const ssize_t got = ::read(ends[i].fd, bytes, sizeof bytes);
            if (got > 0)
                texts[i]->append(bytes, static_cast<std::size_t>(got));
            else if (got == 0 || errno != EINTR)
                ends[i].fd = -1;
        }
    }
    return true;
}

}  // namespace

Look<std::string> first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!file) return Look<std::string>::failed(fmt::format("cannot read {}: {}", path, ::strerror(errno)));
    std::getline(file, line);
    return line;
}

Look<std::uint64_t> number_in(const std::string& path) {
    const auto line = first_line(path);
    if (!line) return Look<std::uint64_t>::failed(line.why_not);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars((*line).data(), (*line).data() + (*line).size(), value);
    if (error != std::errc())
        return Look<std::uint64_t>::failed(fmt::format("{} contains \"{}\"", path, *line));
    return value;
}

Ran run_program(const std::vector<std::string>& words, unsigned seconds,
                const std::vector<std::string>& more_environment) {
    Ran ran;
    auto out = Pipe::open(), err = Pipe::open();
    if (!out || !err) return ran.complaint = ::strerror(errno), ran;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out->writing.get(), 1);
    ::posix_spawn_file_actions_adddup2(&actions, err->writing.get(), 2);
    std::vector<std::string> copy = words, environment = environment_for(more_environment);
    pid_t child = 0;
    const int failed = ::posix_spawnp(&child, copy[0].c_str(), &actions, nullptr, as_array(copy).data(),
                                      as_array(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return ran.complaint = fmt::format("{}: {}", words[0], ::strerror(failed)), ran;
    out->writing.reset();
    err->writing.reset();
    const bool ended = read_both(*out, *err, ran, Deadline(static_cast<int>(seconds * 1000)));
    if (!ended) ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!ended) ran.complaint = fmt::format("{} did not end within {} s", words[0], seconds);
    if (ended && WIFEXITED(status)) ran.code = WEXITSTATUS(status);
    return ran;
}

}  // namespace mcastcoll::doctor
