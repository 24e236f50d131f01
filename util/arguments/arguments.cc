#include "arguments/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace mcastcoll {

Arguments::Arguments(std::string program, std::string description, std::string version)
    : app_(std::make_unique<CLI::App>(std::move(description), program)) {
    app_->set_help_flag("-h,--help", "Print the most common options, and exit");
    app_->set_help_all_flag("--help-all", "Print all options, and exit");
    app_->set_version_flag("--version", program + " " + version);
    app_->get_formatter()->column_width(28);
    app_->option_defaults()->always_capture_default();
}

Arguments::~Arguments() = default;

template <typename Value>
Arguments::Option Arguments::option(const std::string& names, Value& value, const std::string& help) {
    CLI::Option* option = app_->add_option(names, value, help);
    if (option->get_default_str() == "[]") option->default_str("");  // a list: no default to show
    return Option(option);
}

template Arguments::Option Arguments::option(const std::string&, std::string&, const std::string&);
template Arguments::Option Arguments::option(const std::string&, int&, const std::string&);
template Arguments::Option Arguments::option(const std::string&, unsigned&, const std::string&);
template Arguments::Option Arguments::option(const std::string&, std::optional<unsigned>&,
                                             const std::string&);
template Arguments::Option Arguments::option(const std::string&, unsigned long&, const std::string&);
template Arguments::Option Arguments::option(const std::string&, double&, const std::string&);
template Arguments::Option Arguments::option(const std::string&, std::vector<std::string>&,
                                             const std::string&);
template Arguments::Option Arguments::option(const std::string&, std::vector<unsigned long>&,
                                             const std::string&);

void Arguments::flag(const std::string& names, bool& value, const std::string& help) {
    app_->add_flag(names, value, help);
}

void Arguments::daily(std::initializer_list<const char*> names, std::string remark) {
    for (const char* name : names) app_->get_option(name);  // throws if the option does not exist
    for (CLI::Option* option : app_->get_options()) {
        const bool own = option == app_->get_help_ptr() || option == app_->get_help_all_ptr() ||
                         option == app_->get_version_ptr() || option->get_positional();
        if (!own && std::none_of(names.begin(), names.end(),
                                 [option](const char* name) { return option->check_name(name); }))
            rare_.push_back(option);
    }
    app_->footer(std::move(remark));
}

// Hides rare options, and the bounds of the others.
void Arguments::shorten_help() {
    for (CLI::Option* option : rare_) option->group("");
    for (CLI::Option* option : app_->get_options()) {
        const std::string type = option->get_type_name(), value = option->get_default_str();
        if (const auto colon = type.find(':'); colon != std::string::npos)
            option->option_text(type.substr(0, colon) + (value.empty() ? "" : "=" + value));
    }
    app_->footer("");
}

std::optional<int> Arguments::parse(int argc, char** argv) {
    try {
        app_->parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::CallForHelp& help) {
        if (!rare_.empty()) shorten_help();
        return app_->exit(help);
    } catch (const CLI::Success& success) {
        return app_->exit(success);
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "{}: {}; see --help\n", app_->get_name(), error.what());
        return 2;
    }
}

bool Arguments::given(const std::string& name) const {
    return app_->count(name) > 0;
}

const std::string& Arguments::program() const {
    return app_->get_name();
}

Arguments::Option& Arguments::Option::whole_range(long min, long max) {
    option_->check(CLI::Range(min, max));
    return *this;
}

Arguments::Option& Arguments::Option::real_range(double min, double max) {
    option_->check(CLI::Range(min, max));
    return *this;
}

Arguments::Option& Arguments::Option::one_of(std::vector<std::string> words) {
    option_->check(CLI::IsMember(std::move(words)));
    return *this;
}

Arguments::Option& Arguments::Option::check(Check what_is_wrong, std::string shown_as) {
    option_->check(CLI::Validator(
        [check = std::move(what_is_wrong)](std::string& word) { return check(word); }, std::move(shown_as)));
    return *this;
}

Arguments::Option& Arguments::Option::an_existing_file() {
    option_->check(CLI::ExistingFile);
    return *this;
}

Arguments::Option& Arguments::Option::commas_between() {
    option_->delimiter(',');
    return *this;
}

Arguments::Option& Arguments::Option::required() {
    option_->required();
    return *this;
}

}  // namespace mcastcoll
