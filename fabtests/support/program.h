// A functional test program: a list of cases, each run by a fresh team of processes, and the command line
// they share.
//
//     Program program("fi_mcc_barrier", "what the cases check");
//     program.add({"name of the case", [](Member& me) { ... }});
//     return program.run(argc, argv);
//
// It prints a line per case and exits with 0, 1 if any failed, or 77 if all were skipped.
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
    unsigned members = 0;                              // 0: as the command line says
    unsigned timeout_s = 0;                            // 0: as the command line says
    std::vector<unsigned> victims{};                   // members that are to be killed
    std::map<std::string, std::string> environment{};  // of the processes, unless the caller has set it
    std::string places{};                              // of the members; empty: as the command line says
    bool only_mcastcoll = false;                       // other providers do not do it
    bool only_large = false;                           // only with --large
    std::function<void(Board&, const Options&)> outsider{};  // one more process that is no member
    std::function<void()> after{};  // in the launcher, when all processes have ended well
};

class Program {
  public:
    Program(std::string name, std::string description);

    const Options& options() const { return options_; }
    // For options that one program has beyond all others'.
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
    unsigned hosts_ = 0;  // of the cluster
    std::vector<Case> cases_;
};

}  // namespace mcastcoll::fabtest
