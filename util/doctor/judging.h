// Common functions of the parts of the judge.
#pragma once

#include <functional>

#include "judge.h"

namespace mcastcoll::doctor {

class Judging {
  public:
    explicit Judging(const Facts& facts);
    const Facts& facts() const { return facts_; }
    // Indices of the members with facts.
    const std::vector<unsigned>& present() const { return present_; }
    const Host& host(unsigned at) const { return *facts_.hosts[at]; }
    const std::string& name(unsigned at) const { return names_[at]; }
    // The senders of the experiment, one per host.
    std::vector<unsigned> senders() const;
    std::string names(const std::vector<unsigned>& hosts) const;

    // Records a finding about these hosts; equal findings of several hosts become one.
    void find(Finding finding, const std::vector<unsigned>& hosts = {});
    void fine(std::string line);
    // Records `finding` for the present members where `wrong` is true; if there are none, records `otherwise`
    // as fine.
    void find_where(const std::function<bool(const Host&)>& wrong,
                    const std::function<Finding(const Host&)>& finding, const std::string& otherwise = {});
    void unseen(const std::string& what, const std::string& why);
    bool found(std::string_view id) const;
    // If a group of several hosts worked, reduces findings about multicast to limits of performance. Returns
    // whether there are such findings.
    bool soften();
    Diagnosis end(std::string sentence);

  private:
    const Facts& facts_;
    std::vector<std::string> names_;
    std::vector<unsigned> present_;
    std::vector<std::vector<unsigned>> where_;  // of each finding
    Diagnosis diagnosis_;
};

void judge_libraries(Judging& judging);  // judge_libraries.cc
void judge_machine(Judging& judging);    // judge_host.cc
void judge_memory(Judging& judging);     // judge_host.cc
void judge_rdma(Judging& judging);       // judge_host.cc
void judge_interface(Judging& judging);  // judge_interface.cc
void judge_reception(Judging& judging);  // judge_reception.cc
void judge_querier(Judging& judging);    // judge_group.cc
void judge_group(Judging& judging);      // judge_group.cc

// Returns a size with a binary unit: "4 MiB" for 4194304.
std::string size_text(std::uint64_t bytes);

}  // namespace mcastcoll::doctor
