// Tests the parts of mcastcoll-cp that do not depend on hosts: names and targets, the list of files, chunks,
// and copying a file through reader and writer on a disk.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "cp/catalogue.h"
#include "cp/chunk.h"
#include "cp/packer.h"
#include "cp/pool.h"
#include "cp/queue.h"
#include "cp/sink.h"
#include "cp/source.h"
#include "cp/unpacker.h"

using namespace mcastcoll;
using namespace mcastcoll::cp;

namespace {

std::string joined(const std::vector<std::string>& sources) {
    const auto names = names_of(sources);
    if (!names) return "error";
    std::string all;
    for (const std::string& name : names.value()) all += name + ",";
    return all;
}

Entry file(std::string path, std::uint64_t size, std::int64_t time = 7) {
    Entry entry;
    entry.path = std::move(path);
    entry.size = entry.occupied = size;
    entry.modified_s = time;
    return entry;
}

struct Folder {
    Folder() {
        char name[] = "/tmp/test_copy.XXXXXX";
        cr_assert_not_null(::mkdtemp(name));
        path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

std::string contents(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

// Copies folder `source` to folder `target`; errors are in the sink. `cut`: at most this many chunks.
std::unique_ptr<Sink> carry(
    const std::string& source, const std::string& target, std::size_t cut = SIZE_MAX,
    std::vector<std::uint64_t>* positions = nullptr, bool into = true,
    const std::function<void()>& after_survey = [] {}) {
    std::vector<std::string> complaints;
    const Catalogue catalogue = list_sources({source}, {"s"}, into, complaints);
    auto sink = std::make_unique<Sink>(target, catalogue);
    const auto from = sink->survey();
    if (positions != nullptr) *positions = from;
    after_survey();
    Queue read, some;
    const auto pool = std::make_shared<Pool>(64);
    Source reader(pool, read);
    reader.start_files(catalogue, from);
    while (const Chunk chunk = read.take())
        if (number_of(*chunk) < cut) some.put(chunk);
    some.close();
    sink->start(some);
    sink->finish();
    return sink;
}

}  // namespace

Test(copy, names_of_sources) {
    cr_assert(joined({"a", "/b/c", "d/", "./e//"}) == "a,c,d,e,");
    cr_assert(joined({"."}) == "," && joined({"a/."}) == ",");
    for (const char* bad : {"/", "//", "..", "a/.."}) cr_assert(joined({bad}) == "error", "%s", bad);
    cr_assert(joined({"a/x", "b/x"}) == "error");
}

Test(copy, targets) {
    cr_assert(target_on("/scratch/", "n1").value() == "/scratch/");
    cr_assert(target_on("/nfs/%h/%%/%h", "n1").value() == "/nfs/n1/%/n1");
    for (const char* bad : {"", "%", "a%x", "%H"}) cr_assert_not(target_on(bad, "n1").ok(), "%s", bad);
}

Test(copy, partial_names) {
    const Entry one = file("/d/model.bin", 10);
    const std::string name = partial_name("model.bin", one);
    cr_assert(name_of_partial(name) == "model.bin", "%s", name.c_str());
    cr_assert(name == partial_name("model.bin", one));
    cr_assert(name != partial_name("model.bin", file("/d/model.bin", 11)));
    cr_assert(name != partial_name("model.bin", file("/d/model.bin", 10, 8)));
    cr_assert_leq(partial_name(std::string(255, 'x'), file("", 1)).size(), 255U);
    for (const char* other : {"", ".", "model.bin", ".mcastcoll-0123456789abcdef", ".a.mcastcoll-0123",
                              "a.mcastcoll-0123456789abcdef", ".a.mcastcoll-0123456789abcdeg"})
        cr_assert(name_of_partial(other).empty(), "%s", other);
}

Test(copy, catalogues_come_back) {
    Catalogue catalogue{file("", 5), file("/a/b\nc", UINT64_MAX - 1, -3)};
    catalogue[0].mode = 04755;
    Entry link = file("/l", 0);
    link.kind = Kind::link;
    link.link = "../else where";
    catalogue.push_back(link);
    const std::string bytes = as_bytes_of(catalogue);
    const auto parsed = parse_catalogue(bytes);
    cr_assert(parsed.ok());
    cr_assert_eq(parsed.value().size(), 3U);
    cr_assert_eq(parsed.value()[0].mode, 04755U);
    cr_assert(parsed.value()[1].path == "/a/b\nc" && parsed.value()[1].modified_s == -3);
    cr_assert_eq(parsed.value()[1].size, UINT64_MAX - 1);
    cr_assert(parsed.value()[2].kind == Kind::link && parsed.value()[2].link == "../else where");
    for (std::size_t size = 0; size < bytes.size(); ++size)
        cr_assert_not(parse_catalogue(std::string_view(bytes).substr(0, size)).ok());
}

Test(copy, nothing_leads_out_of_the_target) {
    for (const char* path : {"a", "/..", "/a/../b", "/a/..", "/", "//a", "/a/", "/a//b", "/.", "/a/./b"})
        cr_assert_not(parse_catalogue(as_bytes_of({file(path, 1)})).ok(), "%s", path);
    cr_assert_not(parse_catalogue(as_bytes_of({file(std::string("/a\0b", 4), 1)})).ok());
    for (const char* path : {"", "/a", "/..a", "/a../...", "/.hidden/b"})
        cr_assert(parse_catalogue(as_bytes_of({file(path, 1)})).ok(), "%s", path);
}

Test(copy, chunks_hold_records) {
    const auto pool = std::make_shared<Pool>(1);
    Packer packer(pool->take(), 9);
    packer.begin(3, 77);
    const auto place = packer.data(77, 5);
    std::memcpy(place.data(), "bytes", 5);
    packer.end(Drop::changed, "digest");
    packer.text("text");
    set_size_ahead(*packer.chunk(), 123);
    const std::string chunk = *packer.chunk();
    cr_assert_eq(number_of(chunk), 9U);
    cr_assert_eq(size_ahead(chunk), 123U);
    Unpacker unpacker(chunk);
    auto next = [&] { return *unpacker.next().value(); };
    Record record = next();
    cr_assert(record.act == Act::begin && record.number == 3 && record.position == 77);
    record = next();
    cr_assert(record.act == Act::data && record.number == 77 && record.bytes == "bytes");
    record = next();
    cr_assert(record.act == Act::end && record.number == 1 && record.bytes == "digest");
    record = next();
    cr_assert(record.act == Act::text && record.bytes == "text");
    cr_assert_not(unpacker.next().value().has_value());
    for (std::size_t size = 17; size < chunk.size();
         ++size) {  // a chunk cut anywhere but between records is an error
        Unpacker cut(std::string_view(chunk).substr(0, size));
        auto got = cut.next();
        while (got.ok() && got.value()) got = cut.next();
        cr_assert(!got.ok() || size == 33 || size == 55 || size == 78, "%zu", size);
    }
}

Test(copy, each_chunk_knows_the_second_after_it) {
    for (const std::size_t megabytes : {0U, 3U, 4U, 9U, 21U}) {
        const auto pool = std::make_shared<Pool>(64);
        Queue read;
        Source source(pool, read);
        source.start_text(std::string(megabytes << 20, 't'));
        std::vector<Chunk> chunks;
        while (Chunk chunk = read.take()) chunks.push_back(std::move(chunk));
        cr_assert_eq(chunks.size(), std::max<std::size_t>((megabytes + 4) / 4, 1), "%zu", chunks.size());
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            cr_assert_eq(number_of(*chunks[i]), i);
            cr_assert_eq(size_ahead(*chunks[i]), i + kAhead < chunks.size() ? chunks[i + kAhead]->size() : 0);
        }
    }
}

Test(copy, a_tree_through_reader_and_writer) {
    const Folder from, to;
    const std::string source = from.path + "/s";
    std::filesystem::create_directories(source + "/d");
    std::ofstream(source + "/d/small") << "small";
    std::ofstream(source + "/empty");
    std::ofstream(source + "/large") << std::string(9'000'000, 'l') << "end";
    { std::ofstream(source + "/sparse") << "x"; }
    cr_assert_eq(::truncate((source + "/sparse").c_str(), 50'000'000), 0);
    std::filesystem::create_symlink("nowhere", source + "/link");
    const auto sink = carry(source, to.path);
    cr_assert(sink->failure().empty(), "%s", sink->failure().c_str());
    cr_assert_eq(sink->files_written(), 4U);
    for (const char* name : {"/d/small", "/empty", "/large", "/sparse"})
        cr_assert(contents(source + name) == contents(to.path + "/s" + name), "%s", name);
    cr_assert(std::filesystem::read_symlink(to.path + "/s/link") == "nowhere");
    struct stat sparse {};
    cr_assert_eq(::stat((to.path + "/s/sparse").c_str(), &sparse), 0);
    cr_assert_lt(sparse.st_blocks * 512, 1'000'000);
    // A second copy finds all files complete.
    std::vector<std::uint64_t> positions;
    cr_assert_eq(carry(source, to.path, SIZE_MAX, &positions)->files_written(), 0U);
    cr_assert_eq(std::count(positions.begin(), positions.end(), kComplete), 4);
}

Test(copy, an_interrupted_copy_continues) {
    const Folder from, to;
    const std::string source = from.path + "/s";
    std::string text;
    for (unsigned i = 0; text.size() < 20'000'000; ++i) text += std::to_string(i) + ' ';
    std::ofstream(source) << text;
    cr_assert_eq(carry(source, to.path, 2)->files_written(), 0U);
    cr_assert_not(std::filesystem::exists(to.path + "/s"), "not before all of it is there");
    std::vector<std::uint64_t> positions;
    cr_assert_eq(carry(source, to.path, SIZE_MAX, &positions)->files_written(), 1U);
    cr_assert_gt(positions[0], 8'000'000U);
    cr_assert_lt(positions[0], 8'400'000U);
    cr_assert(contents(to.path + "/s") == text);
}

Test(copy, a_beginning_that_is_wrong_is_found) {
    const Folder from, to;
    const std::string source = from.path + "/s";
    std::ofstream(source) << std::string(20'000'000, 's');
    carry(source, to.path, 2);
    for (const auto& partial : std::filesystem::directory_iterator(to.path)) {
        std::fstream damaged(partial.path());
        damaged.seekp(1000) << 'S';
    }
    const auto sink = carry(source, to.path);
    cr_assert(sink->failure().find("another digest") != std::string::npos, "%s", sink->failure().c_str());
    cr_assert(std::filesystem::is_empty(to.path), "and is of no use");
    cr_assert_eq(carry(source, to.path)->files_written(), 1U);
}

// A copy removes partial files of earlier versions of its own sources, and no other files, whatever their
// names.
Test(copy, bystanders_stay) {
    const Folder from, to;
    const std::string source = from.path + "/s", other = from.path + "/other";
    std::ofstream(source) << std::string(9'000'000, 's');
    std::ofstream(other) << std::string(9'000'000, 'o');
    const std::set<std::string> bystanders{"s.txt", ".hidden", "said.39", ".mcastcoll-0123456789abcdef",
                                           ".t.mcastcoll-0123456789abcdef"};
    for (const std::string& name : bystanders) std::ofstream(to.path + "/" + name) << name;
    const auto left = [&] {
        std::set<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(to.path))
            names.insert(entry.path().filename().string());
        return names;
    };
    carry(source, to.path, 1);                          // a partial file of "s"
    carry(other, to.path + "/one", 1, nullptr, false);  // and of "one"
    cr_assert_eq(left().size(), bystanders.size() + 2);
    std::ofstream(source) << std::string(9'000'001, 's');
    std::ofstream(other) << std::string(9'000'001, 'o');
    carry(other, to.path + "/one", SIZE_MAX, nullptr, false);
    carry(source, to.path);
    std::set<std::string> expected = bystanders;
    expected.insert({"s", "one"});
    cr_assert(left() == expected);
}

Test(copy, a_file_being_written_is_not_stale) {
    const Folder from, to;
    const std::string source = from.path + "/s";
    std::ofstream(source) << std::string(9'000'000, 's');
    carry(source, to.path, 1);
    const std::string partial = std::filesystem::directory_iterator(to.path)->path();
    const FileDescriptor writer(::open(partial.c_str(), O_RDONLY | O_CLOEXEC));
    cr_assert_eq(::flock(writer.get(), LOCK_EX | LOCK_NB), 0);
    std::ofstream(source) << std::string(9'000'001, 's');
    cr_assert_eq(carry(source, to.path)->files_written(), 1U);
    cr_assert(std::filesystem::exists(partial));
}

// Folders below a descriptor are opened, except through a symbolic link, with openat2() and without.
Test(copy, no_folder_is_reached_through_a_link) {
    const Folder top;
    std::filesystem::create_directories(top.path + "/a/b/c");
    std::filesystem::create_directory_symlink("b", top.path + "/a/link");
    std::ofstream(top.path + "/a/file");
    const FileDescriptor base(::open(top.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (const auto open : {open_beneath, open_step_by_step}) {
        for (const char* good : {".", "a", "a/b", "a/b/c"}) {
            const FileDescriptor folder = open(base.get(), good);
            struct stat found {
            }, expected{};
            cr_assert(folder.valid() && ::fstat(folder.get(), &found) == 0, "%s", good);
            cr_assert_eq(::stat((top.path + "/" + good).c_str(), &expected), 0);
            cr_assert_eq(found.st_ino, expected.st_ino);
        }
        for (const char* bad : {"a/link", "a/link/c", "a/file", "a/none"})
            cr_assert_not(open(base.get(), bad).valid(), "%s", bad);
    }
}

// A symbolic link replaces a folder during the copy: files behind the link stay unchanged.
Test(copy, a_link_that_takes_a_folders_place_is_not_followed) {
    const Folder from, to, outside;
    const std::string source = from.path + "/s", folder = to.path + "/s/d";
    std::filesystem::create_directories(source + "/d/e");
    std::ofstream(source + "/d/file") << "new";
    std::ofstream(source + "/d/other") << "same";
    std::filesystem::create_symlink("nowhere", source + "/d/link");
    cr_assert_eq(carry(source, to.path)->failures(), 0U);
    std::ofstream(source + "/d/file") << "newer";
    std::filesystem::create_directory(outside.path + "/e");
    std::filesystem::copy(to.path + "/s/d/other", outside.path + "/other");
    cr_assert_eq(::chmod((outside.path + "/e").c_str(), 0700), 0);
    const auto replace = [&] {
        std::filesystem::rename(folder, folder + ".away");
        std::filesystem::create_directory_symlink(outside.path, folder);
    };
    const auto sink = carry(source, to.path, SIZE_MAX, nullptr, true, replace);
    cr_assert_gt(sink->failures(), 0U);
    cr_assert_eq(sink->files_written(), 0U);
    std::set<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(outside.path))
        left.insert(entry.path().filename());
    cr_assert(left == (std::set<std::string>{"e", "other"}));
    struct stat found {};
    cr_assert(::stat((outside.path + "/e").c_str(), &found) == 0 && (found.st_mode & 07777) == 0700);
}

// A symbolic link replaces a source folder, while the sources are listed or afterwards: files behind the link
// are not read.
Test(copy, a_link_that_takes_a_sources_place_is_not_read) {
    const Folder from, to, outside;
    const std::string source = from.path + "/s", folder = source + "/d";
    std::filesystem::create_directories(folder + "/e");
    std::filesystem::create_directories(outside.path + "/e");
    for (const char* name : {"/file", "/e/file"}) {
        std::ofstream(folder + name) << "open";
        std::ofstream(outside.path + name) << "mine";
        std::filesystem::last_write_time(outside.path + name,
                                         std::filesystem::last_write_time(folder + name));
    }
    cr_assert_eq(carry(source, to.path)->files_written(), 2U);
    std::filesystem::remove_all(to.path + "/s");
    const auto replace = [&] {
        std::filesystem::rename(folder, folder + ".away");
        std::filesystem::create_directory_symlink(outside.path, folder);
    };
    cr_assert_eq(carry(source, to.path, SIZE_MAX, nullptr, true, replace)->files_written(), 0U);
    std::vector<std::string> complaints;
    for (const Entry& entry : list_sources({source}, {"s"}, true, complaints))
        cr_assert(entry.path.find("/d/") == std::string::npos, "%s", entry.path.c_str());
}

namespace {

constexpr uid_t kOtherUser = 65534;

void set_time(const std::string& path, const std::string& like) {
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(like));
}

mode_t mode_of(const std::string& path) {
    struct stat found {};
    cr_assert_eq(::stat(path.c_str(), &found), 0);
    return found.st_mode & 07777;
}

}  // namespace

// Another user's file of the right size and time does not count as the source's, nor does a file with a
// second link.
Test(copy, root_does_not_take_files_planted_by_other_users) {
    if (::geteuid() != 0) return;  // only root writes into other users' folders
    const Folder from, to;
    const std::string source = from.path + "/s", target = to.path + "/s", second = to.path + "/second";
    std::ofstream(source) << "good";
    cr_assert_eq(::chmod(source.c_str(), 04755), 0);
    const auto plant = [&](uid_t owner) {
        std::ofstream(target) << "evil";
        set_time(target, source);
        cr_assert_eq(::chown(target.c_str(), owner, owner), 0);
    };
    plant(kOtherUser);
    cr_assert_eq(carry(source, to.path)->files_written(), 1U);
    cr_assert(contents(target) == "good" && mode_of(target) == 04755);
    // Root's own file without these bits: the bits are set only after the digest was computed.
    std::filesystem::remove(target);
    plant(0);
    cr_assert_eq(carry(source, to.path)->files_written(), 1U);
    cr_assert(contents(target) == "good" && mode_of(target) == 04755);
    cr_assert_eq(carry(source, to.path)->files_written(), 0U);  // now complete
    std::filesystem::create_hard_link(target, second);
    cr_assert_eq(carry(source, to.path)->files_written(), 1U);
    // The other user's file appears during the copy.
    const auto replace = [&] { std::filesystem::remove(target), plant(kOtherUser); };
    cr_assert_gt(carry(source, to.path, SIZE_MAX, nullptr, true, replace)->failures(), 0U);
    cr_assert_neq(mode_of(target), 04755U);
}

// A user may create the partial file in advance and keep a descriptor open: root must write a different file.
Test(copy, root_does_not_write_into_partial_files_of_other_users) {
    if (::geteuid() != 0) return;
    const Folder from, to;
    const std::string source = from.path + "/s";
    std::ofstream(source) << std::string(9'000'000, 's');
    carry(source, to.path, 1);
    const std::string partial = std::filesystem::directory_iterator(to.path)->path();
    const FileDescriptor kept(::open(partial.c_str(), O_RDWR | O_CLOEXEC));
    cr_assert_eq(::fchown(kept.get(), kOtherUser, kOtherUser), 0);
    std::vector<std::uint64_t> positions;
    cr_assert_eq(carry(source, to.path, SIZE_MAX, &positions)->files_written(), 1U);
    cr_assert_eq(positions[0], 0U);
    struct stat mine {
    }, written{};
    cr_assert(::fstat(kept.get(), &mine) == 0 && ::stat((to.path + "/s").c_str(), &written) == 0);
    cr_assert_neq(mine.st_ino, written.st_ino);
    // A symbolic link at that name is not followed.
    std::filesystem::remove(to.path + "/s");
    std::ofstream(to.path + "/victim") << "victim";
    std::filesystem::create_symlink("victim", partial);
    cr_assert_eq(carry(source, to.path)->files_written(), 1U);
    cr_assert(contents(to.path + "/victim") == "victim");
}

// Data beyond the announced size, at any offset, is reported as an error at once.
Test(copy, data_beyond_the_end_is_refused) {
    for (const std::uint64_t offset :
         {std::uint64_t{10}, std::uint64_t{11}, std::uint64_t{1} << 63, UINT64_MAX - 1}) {
        const Folder to;
        Sink sink(to.path, {file("/f", 12)});
        sink.survey();
        const auto pool = std::make_shared<Pool>(1);
        Packer packer(pool->take(), 0);
        packer.begin(0, 0);
        std::memcpy(packer.data(offset, 2).data(), "xy", 2);
        Queue chunks;
        chunks.put(packer.chunk());
        chunks.close();
        sink.start(chunks);
        sink.finish();
        const bool fits = offset <= 10;
        cr_assert_eq(sink.failure().find("longer than its listed size") == std::string::npos, fits, "%s",
                     sink.failure().c_str());
    }
}
