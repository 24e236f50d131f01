// The entries of a copy: the files, folders and links of the sources, in the order in which they are made,
// and the parsing of targets. Only list_sources() reads the disk; the other functions are pure.
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
    std::string link;  // the contents of a symbolic link
    // The following fields are used on the head only.
    std::string source;
    std::size_t named = 0;       // length of the prefix given by the user; below it, no link is followed
    std::uint64_t occupied = 0;  // bytes outside holes
};

using Catalogue = std::vector<Entry>;

// Returns the last component of each source, which is its name below the target: "" for ".", which means the
// contents. Returns an error for "/" and "..", and for two sources with the same name.
Result<std::vector<std::string>> names_of(const std::vector<std::string>& sources);

// Lists all entries of the sources. If `into` is true, each source is copied below the target under its name;
// otherwise the target itself becomes the copy of the only source. A source that cannot be read, or is
// neither file, folder nor symbolic link, is left out, with a line in `complaints`.
Catalogue list_sources(const std::vector<std::string>& sources, const std::vector<std::string>& names,
                       bool into, std::vector<std::string>& complaints);

std::string as_bytes_of(const Catalogue& catalogue);
// Parses the output of as_bytes_of(). Rejects entries that lead out of the target.
Result<Catalogue> parse_catalogue(std::string_view bytes);

// Returns the target on one host: replaces %h by the host's name, and %% by a percent sign.
Result<std::string> target_on(std::string_view target, std::string_view host);

// The temporary name of an incomplete file. The name depends on the source's size and time, so the partial
// file of an earlier version of the source is not continued.
std::string partial_name(std::string_view name, const Entry& entry);
// The name of the file to which a partial file belongs; "" for other names.
std::string_view name_of_partial(std::string_view name);

}  // namespace mcastcoll::cp
