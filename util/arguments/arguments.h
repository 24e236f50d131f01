// Command-line arguments of a program.
//
// A narrow interface to CLI11: CLI11 takes six seconds to compile, so only one source file includes it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace mcastcoll {

class Arguments {
  public:
    // Checks one value of an option: returns an error message, or an empty string if the value is right.
    using Check = std::function<std::string(const std::string&)>;

    // Restricts the values of an option, after Arguments::option() has added it.
    class Option {
      public:
        explicit Option(CLI::Option* option) : option_(option) {}
        // Inclusive bounds.
        template <typename Number>
        Option& range(Number min, Number max) {
            if constexpr (std::is_floating_point_v<Number>)
                return real_range(min, max);
            else
                return whole_range(static_cast<long>(min), static_cast<long>(max));
        }
        Option& one_of(std::vector<std::string> words);
        Option& check(Check what_is_wrong, std::string shown_as);
        Option& an_existing_file();
        Option& commas_between();  // separates the values of a list
        Option& required();

      private:
        Option& whole_range(long min, long max);
        Option& real_range(double min, double max);
        CLI::Option* option_;
    };

    Arguments(std::string program, std::string description, std::string version);
    ~Arguments();
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;

    // `names` is "--count" or "-n,--count"; `value` has the default, shown in the help. The type Value is a
    // string, a number, a std::optional of either, or a vector of either.
    template <typename Value>
    Option option(const std::string& names, Value& value, const std::string& help);
    void flag(const std::string& names, bool& value, const std::string& help);
    // Makes --help show only these options, in the order in which they were added, on one screen; --help-all
    // then shows all options, their bounds, and the remark. Call after all options; without this call --help
    // shows all options.
    void daily(std::initializer_list<const char*> names, std::string remark = {});

    // Parses the command line. Returns an exit status if the program must end at once: 0 after --help or
    // --version, 2 after an error message on stderr.
    std::optional<int> parse(int argc, char** argv);
    bool given(const std::string& name) const;
    const std::string& program() const;

  private:
    void shorten_help();
    std::unique_ptr<CLI::App> app_;
    std::vector<CLI::Option*> rare_;
};

}  // namespace mcastcoll
