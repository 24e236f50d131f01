// The permissions and the length of the file with a group's secret.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include "provider/key_file.h"

using namespace mcastcoll;

namespace {

struct File {
    explicit File(std::size_t bytes, char with = 'k') : File("", bytes, with) {}
    File(const std::string& end, std::size_t bytes, char with = 'k') {
        const int descriptor = mkstemp(path.data());
        std::string text;
        for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(with + i % 16);
        text += end;
        cr_assert(descriptor >= 0 &&
                  write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        close(descriptor);
    }
    ~File() { unlink(path.c_str()); }
    std::string refusal() const {
        const auto key = provider::read_key_file(path);
        if (!key) cr_assert_eq(key.error().code, EACCES);
        return key ? "" : key.error().message;
    }
    std::string path = "/tmp/mcc-key-XXXXXX";
};

bool has(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

Test(key_file, none_is_no_key) {
    const auto key = provider::read_key_file("");
    cr_assert(key && !key.value());
}

Test(key_file, munge_is_distinguished_from_paths) {
    cr_assert(provider::munge_socket("munge:") == "");
    cr_assert(provider::munge_socket("munge:/run/munge/other.socket") == "/run/munge/other.socket");
    for (const char* const path : {"", "munge", "./munge:", "/munge:", "MUNGE:", "mung"})
        cr_assert(!provider::munge_socket(path), "%s", path);
}

// The length of a key is tested at limit - 1, limit and limit + 1.
Test(key_file, lengths) {
    for (const std::size_t good : {16, 17, 4095, 4096}) cr_assert_eq(File(good).refusal(), "", "%zu", good);
    for (const std::size_t bad : {0, 15, 4097})
        cr_assert(has(File(bad).refusal(), "16 to 4096 bytes"), "%zu", bad);
}

// The number of different bytes in a key is tested at minimum - 1, minimum and minimum + 1.
Test(key_file, what_can_be_guessed_is_refused) {
    for (const std::size_t different : {1, 7, 8, 9}) {
        std::string text;
        for (std::size_t i = 0; i < 32; ++i) text += static_cast<char>('a' + i % different);
        const std::string refusal = File(text, 0).refusal();
        cr_assert_eq(refusal.empty(), different >= 8, "%s", refusal.c_str());
        if (different < 8) cr_assert(has(refusal, "/dev/urandom"));
    }
}

Test(key_file, line_breaks_at_its_end_do_not_count) {
    const File plain(32), edited("\r\n", 32), short_one("\n", 15);
    cr_assert(*provider::read_key_file(plain.path).value() == *provider::read_key_file(edited.path).value());
    cr_assert(has(short_one.refusal(), "16 to 4096 bytes"));
}

Test(key_file, others_may_not_have_it) {
    const File file(32);
    for (const mode_t open : {0640U, 0604U, 0620U, 0602U, 0610U}) {
        cr_assert_eq(chmod(file.path.c_str(), open), 0);
        cr_assert(has(file.refusal(), "chmod 600"), "%o", open);
    }
    cr_assert_eq(chmod(file.path.c_str(), 0400), 0);
    cr_assert_eq(file.refusal(), "");
    if (geteuid() != 0) return;  // only root can change a file's owner
    cr_assert_eq(chown(file.path.c_str(), 12345, 12345), 0);
    cr_assert(has(file.refusal(), "belongs to another user"));
}

Test(key_file, what_is_no_file_is_refused) {
    const auto folder = provider::read_key_file("/tmp");
    cr_assert(!folder && has(folder.error().message, "not a regular file"));
    const auto nothing = provider::read_key_file("/tmp/there is no such file");
    cr_assert(!nothing && nothing.error().code == ENOENT);
}

Test(key_file, other_contents_are_another_key) {
    const File one(32, 'a'), same(32, 'a'), other(32, 'b');
    cr_assert(*provider::read_key_file(one.path).value() == *provider::read_key_file(same.path).value());
    cr_assert(*provider::read_key_file(one.path).value() != *provider::read_key_file(other.path).value());
}

// The kernel shows MADV_DONTDUMP as "dd" among the flags of a mapping.
Test(key_file, core_dumps_leave_the_key_out) {
    const File file(32);
    const auto key = provider::read_key_file(file.path).value();
    const auto at = reinterpret_cast<std::uintptr_t>(key.get());
    std::ifstream maps("/proc/self/smaps");
    std::uintptr_t first = 0, end = 0;
    char dash = 0;
    bool found = false;
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        if (words >> std::hex >> first >> dash >> end && dash == '-' && first <= at && at < end) found = true;
        if (!found || !line.starts_with("VmFlags:")) continue;
        cr_assert(has(line, " dd"), "%s", line.c_str());
        return;
    }
    cr_assert_fail("the key's memory is not in /proc/self/smaps");
}
