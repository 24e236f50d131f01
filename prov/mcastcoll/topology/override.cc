#include "topology/override.h"

#include <algorithm>
#include <cerrno>

namespace mcastcoll::topology {
namespace {

struct Token {
    std::string_view text;
    std::size_t at = 0;  // in its line or expression, from 0

    Token part(std::size_t from, std::size_t size = std::string_view::npos) const {
        return {text.substr(from, size), at + from};
    }
};

constexpr std::string_view kBlanks = " \t\r";

std::vector<Token> split(std::string_view text, std::string_view separators) {
    std::vector<Token> tokens;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
        tokens.push_back({text.substr(at, end - at), at});
        at = end + 1;
    }
    return tokens;
}

Token trim(Token token) {
    const std::size_t first = token.text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return token.part(0, 0);
    return token.part(first, token.text.find_last_not_of(kBlanks) - first + 1);
}

std::string quote(std::string_view text) {
    return '"' + std::string(text) + '"';
}

constexpr std::string_view kWords =
    "allowed are auto, flat, -LEVEL, ALGORITHM@LEVEL, and site=, segment= or host= with NAME or "
    "NAME:SUBNET,...";
constexpr std::string_view kLines =
    "a line must begin with auto, flat, level, algorithm, site, segment or host";

}  // namespace

// Builds an Override from statements and keeps the first error.
class OverrideParser {
  public:
    std::string where;  // prefix of each error message

    bool good() const { return complaint_.empty(); }
    Result<Override> finish() && {
        if (!good()) return Error{EINVAL, complaint_};
        return std::move(override_);
    }
    void complain(Token at, const std::string& what) {
        if (good()) complaint_ = where + "character " + std::to_string(at.at + 1) + ": " + what;
    }

    void take_flat() { override_.policy_.flat = true; }
    void take_switch(Token name, bool on) {
        const auto level = level_named(name.text);
        if (!level || *level == Level::wan)
            return complain(name, quote(name.text) + " is not a level that can be switched; allowed are " +
                                      level_names());
        if (on)
            override_.policy_.off.remove(*level);
        else
            override_.policy_.off.add(*level);
    }
    void take_algorithm(Token level_name, Token name) {
        const auto level = level_named(level_name.text);
        if (!level)
            return complain(level_name,
                            quote(level_name.text) + " is not a level; allowed are wan, " + level_names());
        const auto algorithm = algorithm_named(name.text);
        if (!algorithm || !algorithm->allowed_at(*level))
            return complain(name, quote(name.text) + " is not an algorithm of the level " +
                                      std::string(name_of(*level)) + "; allowed are " +
                                      algorithm_names(*level));
        override_.policy_.algorithms.set(*level, *algorithm);
    }
    static std::optional<Level> named_level(std::string_view name) {
        const auto level = level_named(name);
        if (level && *level >= Level::site && *level <= Level::host) return level;
        return std::nullopt;
    }
    void take_own_name(Level level, Token name) {
        if (check_name(level, name)) override_.own_[index_of(level)] = Name(name.text);
    }
    void take_subnet(Level level, Token name, Token text) {
        if (!check_name(level, name)) return;
        auto subnet = Subnet::parse(text.text);
        if (!subnet) return complain(text, subnet.error().message);
        for (const auto& known : override_.assignments_)
            if (known.level == level && known.subnet == subnet.value() && !(known.name == Name(name.text)))
                return complain(text, quote(text.text) + " is in " + std::string(name_of(level)) + ' ' +
                                          std::string(known.name.view()) + " already");
        override_.assignments_.push_back({level, Name(name.text), subnet.value()});
    }

  private:
    bool check_name(Level level, Token name) {
        const bool fits = !name.text.empty() && name.text.size() <= Name::kMax && name.text[0] != '-' &&
                          std::all_of(name.text.begin(), name.text.end(), [](char c) {
                              return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                     (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
                          });
        if (!fits)
            complain(name, quote(name.text) + " is not the name of a " + std::string(name_of(level)) +
                               ": 1 to " + std::to_string(Name::kMax) +
                               " letters, digits, '.', '_' and '-', the first no '-'");
        return fits;
    }

    Override override_;
    std::string complaint_;
};

namespace {

// Parses NAME or NAME:SUBNET. Returns true for NAME:SUBNET, which more items of this form may follow.
bool take_value(OverrideParser& parser, Level level, Token value) {
    const std::size_t colon = value.text.find(':');
    if (colon == std::string_view::npos) return parser.take_own_name(level, value), false;
    parser.take_subnet(level, value.part(0, colon), value.part(colon + 1));
    return true;
}

void take_line(OverrideParser& parser, std::span<const Token> words) {
    const Token first = words.front();
    const auto expect = [&](std::size_t count, const char* form) {
        if (words.size() == count) return true;
        parser.complain(words[std::min(count, words.size() - 1)], std::string("the line must read ") + form);
        return false;
    };
    if (const auto level = OverrideParser::named_level(first.text)) {
        if (words.size() == 2) return parser.take_own_name(*level, words[1]);
        if (words.size() < 2) return parser.complain(first, quote(first.text) + " needs a name");
        for (const Token subnet : words.subspan(2)) parser.take_subnet(*level, words[1], subnet);
    } else if (first.text == "auto") {
        expect(1, "auto");
    } else if (first.text == "flat") {
        if (expect(1, "flat")) parser.take_flat();
    } else if (first.text == "level") {
        if (!expect(3, "level LEVEL on|off")) return;
        if (words[2].text != "on" && words[2].text != "off")
            return parser.complain(words[2], quote(words[2].text) + ": allowed are on and off");
        parser.take_switch(words[1], words[2].text == "on");
    } else if (first.text == "algorithm") {
        if (expect(3, "algorithm LEVEL ALGORITHM")) parser.take_algorithm(words[1], words[2]);
    } else {
        parser.complain(first, quote(first.text) + " is not known; " + std::string(kLines));
    }
}

}  // namespace

Result<Override> Override::parse_words(std::string_view text) {
    OverrideParser parser;
    Level list = Level::wan;  // level of the preceding LEVEL=NAME:SUBNET, which may continue; wan: no list
    for (const Token raw : split(text, ",")) {
        if (!parser.good()) break;
        const Token token = trim(raw);
        const std::size_t equals = token.text.find('=');
        const std::size_t at_sign = token.text.find('@');
        const bool goes_on = list != Level::wan && equals == std::string_view::npos &&
                             at_sign == std::string_view::npos &&
                             token.text.find(':') != std::string_view::npos;
        if (goes_on) {
            take_value(parser, list, token);
            continue;
        }
        list = Level::wan;
        if (token.text.empty() && text.find_first_not_of(kBlanks) == std::string_view::npos) break;
        if (token.text == "auto") continue;
        if (token.text == "flat") {
            parser.take_flat();
        } else if (token.text.starts_with('-')) {
            parser.take_switch(token.part(1), false);
        } else if (equals != std::string_view::npos) {
            const auto level = OverrideParser::named_level(token.text.substr(0, equals));
            if (!level)
                parser.complain(token, quote(token.text.substr(0, equals)) +
                                           " is not allowed; allowed are site=, segment= and host=");
            else if (take_value(parser, *level, token.part(equals + 1)))
                list = *level;
        } else if (at_sign != std::string_view::npos) {
            parser.take_algorithm(token.part(at_sign + 1), token.part(0, at_sign));
        } else {
            parser.complain(token, quote(token.text) + " is not known; " + std::string(kWords));
        }
    }
    return std::move(parser).finish();
}

Result<Override> Override::parse_file(std::string_view text, std::string_view file) {
    OverrideParser parser;
    std::size_t number = 0;
    for (const Token line : split(text, "\n")) {
        parser.where = std::string(file) + " line " + std::to_string(++number) + ", ";
        std::vector<Token> words = split(line.text.substr(0, line.text.find('#')), kBlanks);
        std::erase_if(words, [](const Token& word) { return word.text.empty(); });
        if (!words.empty()) take_line(parser, words);
        if (!parser.good()) break;
    }
    return std::move(parser).finish();
}

Name Override::name_at(Level level, Bytes address) const {
    if (!own_[index_of(level)].empty()) return own_[index_of(level)];
    const Assignment* best = nullptr;
    for (const Assignment& one : assignments_)
        if (one.level == level && one.subnet.contains(address) &&
            (best == nullptr || one.subnet.prefix_bits() > best->subnet.prefix_bits()))
            best = &one;
    return best == nullptr ? Name() : best->name;
}

bool Override::places_sites() const {
    return std::any_of(assignments_.begin(), assignments_.end(),
                       [](const Assignment& one) { return one.level == Level::site; });
}

void Override::apply(Place& place, Bytes address) const {
    for (const Level level : {Level::site, Level::segment})
        if (const Name name = name_at(level, address); !name.empty()) place.set_named(level, name.view());
    const Name host = name_at(Level::host, address);
    if (host.empty() || !place.at(Level::host)) return;
    // Combines both identities, since the name divides the real host and never joins two hosts.
    const std::uint64_t part = Place::id_of_name(host.view());
    place.set(Level::host, place.at(Level::host)->id ^ part, host.view());
}

}  // namespace mcastcoll::topology
