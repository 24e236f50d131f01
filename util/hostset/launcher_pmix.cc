#include <fmt/format.h>
#include <pmix.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "hostset/launcher.h"

namespace mcastcoll::hostset {
namespace {

constexpr const char* kKey = "mcastcoll.hostset";

pmix_proc_t self;

Error failed(const char* what, pmix_status_t status) {
    return {EPROTO, fmt::format("the launcher's PMIx: {}: {}", what, PMIx_Error_string(status))};
}

// Ends this process if a PMIx call takes too long: such calls wait for all processes, and not every launcher
// honours their timeout.
extern "C" void give_up(int) {
    constexpr char kText[] =
        "the launcher's other processes did not join in time: check that all of them run this program\n";
    (void)!::write(STDERR_FILENO, kText, sizeof kText - 1);
    ::_exit(2);
}

}  // namespace

bool is_launched() {
    return std::getenv("PMIX_NAMESPACE") != nullptr && std::getenv("PMIX_RANK") != nullptr;
}

Result<Launched> connect_launcher(unsigned wait_s) {
    ::signal(SIGALRM, give_up);
    ::alarm(wait_s);
    if (const auto status = PMIx_Init(&self, nullptr, 0); status != PMIX_SUCCESS)
        return failed("PMIx_Init", status);
    pmix_proc_t all = self;
    all.rank = PMIX_RANK_WILDCARD;
    pmix_value_t* size = nullptr;
    if (const auto status = PMIx_Get(&all, PMIX_JOB_SIZE, nullptr, 0, &size); status != PMIX_SUCCESS)
        return failed(PMIX_JOB_SIZE, status);
    const Launched launched{self.rank, size->data.uint32};
    PMIX_VALUE_RELEASE(size);
    return launched;
}

Result<std::string> publish_from_head(const Launched& launched, const std::string& mine) {
    if (launched.rank == 0) {
        pmix_value_t value;
        PMIX_VALUE_CONSTRUCT(&value);
        value.type = PMIX_BYTE_OBJECT;
        value.data.bo.bytes = const_cast<char*>(mine.data());
        value.data.bo.size = mine.size();
        if (const auto status = PMIx_Put(PMIX_GLOBAL, kKey, &value); status != PMIX_SUCCESS)
            return failed("PMIx_Put", status);
        if (const auto status = PMIx_Commit(); status != PMIX_SUCCESS) return failed("PMIx_Commit", status);
    }
    pmix_info_t collect;
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    if (const auto status = PMIx_Fence(nullptr, 0, &collect, 1); status != PMIX_SUCCESS)
        return failed("PMIx_Fence", status);
    std::string published = mine;
    if (launched.rank != 0) {
        pmix_proc_t head = self;
        head.rank = 0;
        pmix_value_t* value = nullptr;
        if (const auto status = PMIx_Get(&head, kKey, nullptr, 0, &value); status != PMIX_SUCCESS)
            return failed("PMIx_Get", status);
        published.assign(value->data.bo.bytes, value->data.bo.size);
        PMIX_VALUE_RELEASE(value);
    }
    ::alarm(0);
    PMIx_Finalize(nullptr, 0);
    return published;
}

}  // namespace mcastcoll::hostset
