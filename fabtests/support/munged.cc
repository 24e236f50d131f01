#include "support/munged.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

namespace mcastcoll::fabtest {
namespace {

const char* program() {
    for (const char* const path : {"/usr/sbin/munged", "/usr/local/sbin/munged", "/sbin/munged"})
        if (::access(path, X_OK) == 0) return path;
    return nullptr;
}

}  // namespace

Munged::Munged(const std::string& key_of) {
#ifdef MCC_NO_MUNGE
    why_not_ = "this build has no MUNGE";
    return;
#endif
    if (program() == nullptr) {
        why_not_ = "munged is not installed";
        return;
    }
    const char* const temporary = std::getenv("TMPDIR");
    folder_ = std::string(temporary != nullptr ? temporary : "/tmp") + "/mcc-munge-XXXXXX";
    if (::mkdtemp(folder_.data()) == nullptr) {
        why_not_ = "there is no folder for munged";
        return;
    }
    ::chmod(folder_.c_str(), 0711);  // so that processes of other users reach the socket
    why_not_ = make_key(key_of);
    if (why_not_.empty()) start();
}

std::string Munged::make_key(const std::string& key_of) const {
    const std::string key = folder_ + "/key";
    std::error_code error;
    if (!key_of.empty()) {
        std::filesystem::copy_file(key_of + "/key", key, error);
    } else {
        std::random_device random;
        std::string bytes(128, '\0');
        for (char& byte : bytes) byte = static_cast<char>(random());
        std::ofstream(key, std::ios::binary) << bytes;
    }
    return ::chmod(key.c_str(), 0600) == 0 ? "" : "munged has no key";
}

void Munged::start() {
    const std::string key = "--key-file=" + folder_ + "/key", place = "--socket=" + socket(),
                      pid = "--pid-file=" + folder_ + "/pid", seed = "--seed-file=" + folder_ + "/seed";
    const pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ == 0) {
        const int nowhere = ::open("/dev/null", O_RDWR);
        for (const int descriptor : {0, 1, 2}) ::dup2(nowhere, descriptor);
        // Ends munged when the test ends, also when a failing test exits without cleanup.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        ::execl(program(), "munged", "--foreground", "--force", key.c_str(), place.c_str(), pid.c_str(),
                seed.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    }
    if (process_ < 0)
        why_not_ = "munged cannot be started";
    else
        await_socket();
}

void Munged::await_socket() {
    for (int i = 0; i < 1000; ++i) {
        struct stat found {};
        if (::stat(socket().c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) return;
        if (::waitpid(process_, nullptr, WNOHANG) != 0) {
            process_ = -1;
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    why_not_ = "munged does not run here";
}

void Munged::signal(int number) const {
    if (process_ > 0) ::kill(process_, number);
}

Munged::~Munged() {
    if (process_ > 0) {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace mcastcoll::fabtest
