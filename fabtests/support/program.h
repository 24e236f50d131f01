// A functional test program: a list of cases, each run by a fresh team of processes, and their common command
// line.
//
//     Program program("fi_mcc_barrier", "what the cases check");
//     program.add({"name of the case", [](Member& me) { ... }});
//     return program.run(argc, argv);
//
// The program prints a line per case and exits with 0, with 1 if any case failed, or with 77 if all were
// skipped.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "arguments/arguments.h"
#include "support/launcher.h"
#include "support/member.h"
#include "support/options.h"

namespace mcastcoll::fabtest {

struct Case {
    std::string name;
    std::function<void(Member&)> body;
    Opening opening{};
    unsigned members = 0;             // 0: as on the command line
    unsigned timeout_s = 0;           // 0: as on the command line
    std::vector<unsigned> victims{};  // members to be killed
    // Environment variables of the processes, unless the caller has set the variable.
    std::map<std::string, std::string> environment{};
    std::string places{};                                    // --places; empty: as on the command line
    bool only_mcastcoll = false;                             // skipped with providers that lack the feature
    bool only_large = false;                                 // only with --large
    std::function<void(Board&, const Options&)> outsider{};  // runs in a process beside the members
    std::function<void()> after{};  // runs in the launcher after all processes have ended successfully
};

class Program {
  public:
    Program(std::string name, std::string description);

    const Options& options() const { return options_; }
    // The command line, to which a program may add its own options.
    Arguments& arguments() { return arguments_; }
    void add(Case one) { cases_.push_back(std::move(one)); }
    int run(int argc, char** argv);

  private:
    Outcome run_case(const Case& one);
    int be_process(const Case& one, Board& board, unsigned index, unsigned members) const;
    void set_environment(const Case& one, unsigned index, unsigned members) const;
    bool wanted(const Case& one) const;
    void take_places();

    Arguments arguments_;
    Options options_;
    unsigned hosts_ = 0;  // hosts of the cluster
    std::vector<Case> cases_;
};

}  // namespace mcastcoll::fabtest
