// What is copied, and where to: the entries of the sources, in the order in which they are made, and what a
// user writes of the target. The parts with text are pure; list_sources() looks at the disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mcastcoll::cp {

enum class Kind : std::uint8_t { directory, file, link };

struct Entry {
    Kind kind = Kind::file;
    std::string path;  // below the target: "" for the target itself, or "/..."
    std::uint32_t mode = 0, user = 0, group = 0;
    std::int64_t modified_s = 0, modified_ns = 0;
    std::uint64_t size = 0;
    std::string link;  // where a symbolic link leads
    // Of the head alone.
    std::string source;
    std::size_t named = 0;       // so many characters of it the user has named; below, no link is followed
    std::uint64_t occupied = 0;  // bytes that are no hole
};

using Catalogue = std::vector<Entry>;

// The last name of a source: what it is called below the target. "" of ".", whose contents are meant; an
// error of "/" and "..", and of two sources with the same name.
Result<std::vector<std::string>> names_of(const std::vector<std::string>& sources);

// `into`: below the target by their names; else the one source is what the target is. Each that cannot be
// read, or is neither file, folder nor symbolic link, is left out, and complained about.
Catalogue list_sources(const std::vector<std::string>& sources, const std::vector<std::string>& names,
                       bool into, std::vector<std::string>& complaints);

std::string as_bytes_of(const Catalogue& catalogue);
// Nothing of it leads out of the target.
Result<Catalogue> parse_catalogue(std::string_view bytes);

// The target on one host: %h is the host's name, %% a percent sign.
Result<std::string> target_on(std::string_view target, std::string_view host);

// What a file of this name is called until all of it is there. It tells the source by size and time: another
// one's is another file.
std::string partial_name(std::string_view name, const Entry& entry);
// The name of the file that a partial one is for; "" of others.
std::string_view name_of_partial(std::string_view name);

}  // namespace mcastcoll::cp
