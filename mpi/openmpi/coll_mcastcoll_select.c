// Selection rules, one per line:
//
//     OPERATION MEMBERS HOSTS BYTES here|previous|measured [PML]
//
// OPERATION is a collective (both forms), a collective with a preceding "i" (only its non-blocking form), or
// "all". The grammar is that of the provider's table of algorithms (base/rule_line.h). BYTES counts the
// message or vector, or one block. PML names Open MPI's point-to-point layer for which the rule applies; the
// layer is the same on every rank. The first matching rule counts; the rules of a file come before the
// built-in rules. Without a match, the group serves ("here"). A # starts a comment. "measured": the group and
// the previous module serve some of a communicator's blocking calls of a size class in turn, and the faster
// side serves the rest (MccTrial). Non-blocking forms follow the blocking ones.
//
// When a communicator is considered, its rules become steps by bytes, so that a call costs a few comparisons.

#include "base/rule_line.h"
#include "coll_mcastcoll.h"

// The built-in rules. Some apply within one site only, which is known once the group has formed: over several
// sites, Open MPI's algorithms cross the links between the sites repeatedly.
static const struct {
    const char* text;
    bool in_site;
} kBuiltIn[] = {
    // Whether multicast speeds up a long broadcast depends on links and processors. Multicast is faster on
    // slow links. Where receivers share cores, TCP copies the bytes once and the provider copies twice.
    {"bcast                * 2- 65536- measured\n", true},
    // The pml cm always sends through the messages of its library, which are slower than the provider's
    // algorithms: a long allreduce over TCP by 20 times and more. Only long blocks with different data for
    // each receiver gain nothing from the provider. In general, multicast gains if many members receive the
    // same data. Different blocks travel point-to-point in any case, as with Open MPI. Within a host,
    // collectives use shared memory and stay here.
    {"scatter              * 2- 65537-1048575 previous cm\n"
     "alltoall             * 2- 65537- previous cm\n"
     "all                  * 2- * here cm\n"
     "gather               * 2- * previous\n"
     "scatter              * 2- * previous\n"
     "alltoall             * 2- * previous\n"
     "reduce_scatter       * 2- * previous\n"
     "reduce_scatter_block * 2- * previous\n",
     false},
    // Each member receives the same number of long blocks either way. Sending each block once is a gain only
    // if processors do not have to copy the block twice for that. A long vector is better divided among the
    // members, so that each combines one part. Reductions are not measured, because the two sides round sums
    // differently.
    {"allgather            * 2- 65537- measured\n"
     "allgatherv           * 2- 65537- measured\n"
     "reduce               * 2- 262145- previous\n"
     "allreduce            * 2- 262145- previous\n",
     true}};

enum { kMaxRules = 1000, kLineBytes = 1024, kTextBytes = 160, kPmlBytes = 16 };

typedef struct {
    uint32_t operations[kMccForms];  // a bit for each collective
    MccRuleRange members, hosts, bytes;
    MccRoute route;
    bool in_site;
    char pml[kPmlBytes];  // empty: any
    char text[kTextBytes];
} Rule;

struct MccRules {
    size_t count;
    Rule rules[];
};

static bool parse_operation(MccRuleWord word, Rule* rule) {
    const uint32_t all = (1U << kMccCollectives) - 1;
    const MccRuleWord after_i = {word.text + 1, word.bytes - 1};
    if (mcc_rule_is(word, "all")) {
        rule->operations[kMccBlocking] = rule->operations[kMccNonblocking] = all;
        return true;
    }
    for (int i = 0; i < kMccCollectives; ++i) {
        const bool both = mcc_rule_is_operation(word, mcc_collective_names[i]);
        if (!both && !('i' == *word.text && mcc_rule_is_operation(after_i, mcc_collective_names[i])))
            continue;
        if (both) rule->operations[kMccBlocking] = 1U << i;
        rule->operations[kMccNonblocking] = 1U << i;
        return true;
    }
    return false;
}

static bool parse_route(MccRuleWord word, MccRoute* route) {
    static const char* const kWords[] = {
        [kMccPrevious] = "previous", [kMccHere] = "here", [kMccMeasured] = "measured"};
    for (size_t i = 0; i < sizeof(kWords) / sizeof(kWords[0]); ++i) {
        *route = (MccRoute)i;
        if (mcc_rule_is(word, kWords[i])) return true;
    }
    return false;
}

// Parses a line. Returns 1 for a rule, 0 for an empty line, -1 for an invalid line.
static int parse_line(const char* text, Rule* rule) {
    const MccRuleLine line = mcc_rule_line(text, strlen(text));
    const MccRuleWord *words = line.words, *pml = &words[kMccRuleMore];
    memset(rule, 0, sizeof(*rule));
    if (0 == line.count) return 0;
    if (line.count <= kMccRuleChoice || line.count > kMccRuleWords || 0 != line.wrong) return -1;
    if (pml->bytes >= sizeof(rule->pml)) return -1;
    if (pml->bytes > 0) memcpy(rule->pml, pml->text, pml->bytes);
    rule->members = line.ranges[kMccRuleMembers];
    rule->hosts = line.ranges[kMccRuleHosts];
    rule->bytes = line.ranges[kMccRuleBytes];
    if (!parse_operation(words[kMccRuleOperation], rule) || !parse_route(words[kMccRuleChoice], &rule->route))
        return -1;
    size_t end = 0;
    for (int i = 0; i <= kMccRuleChoice && end < sizeof(rule->text); ++i)
        end += (size_t)snprintf(rule->text + end, sizeof(rule->text) - end, "%.*s ", (int)words[i].bytes,
                                words[i].text);
    if (end >= sizeof(rule->text)) return -1;
    snprintf(rule->text + end, sizeof(rule->text) - end, "%s", rule->pml);
    return 1;
}

static bool add(MccRules** rules, const Rule* rule) {
    const size_t count = (*rules)->count;
    MccRules* larger = realloc(*rules, sizeof(**rules) + (count + 1) * sizeof(Rule));
    if (NULL == larger) return false;
    larger->rules[count] = *rule;
    larger->count = count + 1;
    *rules = larger;
    return true;
}

static bool read_from(MccRules** rules, FILE* stream, const char* name, bool in_site, char* reason) {
    char line[kLineBytes];
    bool good = NULL != stream;
    if (!good) snprintf(reason, kMccReasonBytes, "coll_mcastcoll_selection: %.100s cannot be opened", name);
    for (int number = 1; good && NULL != fgets(line, sizeof(line), stream); ++number) {
        Rule rule;
        const bool whole = NULL != strchr(line, '\n') || feof(stream);
        const int found = whole ? parse_line(line, &rule) : -1;
        if (0 == found) continue;
        rule.in_site = in_site;
        if (found > 0 && (*rules)->count < kMaxRules) {
            if (add(rules, &rule)) continue;
            break;
        }
        snprintf(reason, kMccReasonBytes,
                 "coll_mcastcoll_selection: %.60s, line %d: not OPERATION MEMBERS HOSTS BYTES "
                 "here|previous|measured [PML]",
                 name, number);
        good = false;
    }
    if (good && !feof(stream)) {
        snprintf(reason, kMccReasonBytes, "coll_mcastcoll_selection: %.100s cannot be read", name);
        good = false;
    }
    if (NULL != stream) (void)fclose(stream);
    return good;
}

MccRules* mcc_rules_read(const char* path, char* reason) {
    MccRules* rules = calloc(1, sizeof(*rules));
    bool good = NULL != rules;
    if (!good) snprintf(reason, kMccReasonBytes, "coll_mcastcoll_selection: no memory");
    if (good && NULL != path && '\0' != path[0])
        good = read_from(&rules, fopen(path, "r"), path, false, reason);
    for (size_t i = 0; good && i < sizeof(kBuiltIn) / sizeof(kBuiltIn[0]); ++i) {
        char* text = (char*)(uintptr_t)kBuiltIn[i].text;
        good = read_from(&rules, fmemopen(text, strlen(text), "r"), "the built-in table", kBuiltIn[i].in_site,
                         reason);
    }
    if (good) return rules;
    free(rules);
    return NULL;
}

uint64_t mcc_rules_digest(const MccRules* rules, uint64_t state) {
    for (size_t i = 0; NULL != rules && i < rules->count; ++i)
        state = mcc_digest(state, rules->rules[i].text, strlen(rules->rules[i].text) + 1);
    return state;
}

void mcc_rules_print(const MccRules* rules) {
    const int output = mcc_component.output;
    opal_output(output, "coll/mcastcoll selection: operation members hosts bytes where pml");
    for (size_t i = 0; i < rules->count; ++i)
        opal_output(output, "  %s%s", rules->rules[i].text, rules->rules[i].in_site ? "  # in one site" : "");
    opal_output(output, "  all * * * here");
}

static bool is_in(size_t value, MccRuleRange range) {
    return value >= range.min && value <= range.max;
}

static bool fits(const Rule* rule, const MccModule* m, MccForm form, int collective, size_t members) {
    return 0 != (rule->operations[form] >> collective & 1) && is_in(members, rule->members) &&
           is_in((size_t)m->hosts, rule->hosts) && (!rule->in_site || 1 == m->sites) &&
           ('\0' == rule->pml[0] || mcc_pml_is(rule->pml));
}

// Returns the side that serves a message of `bytes`. *next is the next larger size for which the other side
// may serve, or SIZE_MAX.
static MccRoute decide(const MccRules* rules, const MccModule* m, MccForm form, int collective,
                       size_t members, size_t bytes, size_t* next) {
    *next = SIZE_MAX;
    for (size_t i = 0; i < rules->count; ++i) {
        const Rule* rule = &rules->rules[i];
        if (bytes > rule->bytes.max || !fits(rule, m, form, collective, members)) continue;
        if (bytes < rule->bytes.min && rule->bytes.min < *next) *next = rule->bytes.min;
        if (bytes < rule->bytes.min) continue;
        if (rule->bytes.max < *next) *next = rule->bytes.max + 1;
        return rule->route;
    }
    return kMccHere;
}

static bool make_steps(const MccRules* rules, MccModule* m, MccForm form, int collective, size_t members) {
    MccSteps* steps = &m->selection[form][collective];
    size_t next;
    MccRoute last = steps->route = decide(rules, m, form, collective, members, 0, &next);
    bool measured = kMccMeasured == last;
    for (size_t from = next; from < SIZE_MAX; from = next) {
        const MccRoute route = decide(rules, m, form, collective, members, from, &next);
        if (route == last) continue;
        MccStep* more = realloc(steps->more, (steps->count + 1) * sizeof(*more));
        if (NULL == more) return false;
        steps->more = more;
        more[steps->count++] = (MccStep){from, route};
        measured |= kMccMeasured == (last = route);
    }
    if (!measured || kMccBlocking != form) return true;
    steps->trials = calloc(kMccTrialClasses, sizeof(*steps->trials));
    for (unsigned i = 0; NULL != steps->trials && i < kMccTrialClasses; ++i)
        steps->trials[i].wait = kMccTrialFirst;
    return NULL != steps->trials;
}

bool mcc_select(const MccRules* rules, MccModule* m, int members) {
    bool good = true;
    mcc_select_free(m);
    for (int form = 0; form < kMccForms; ++form)
        for (int i = 0; good && i < kMccCollectives; ++i)
            good = make_steps(rules, m, (MccForm)form, i, (size_t)members);
    return good;
}

void mcc_select_free(MccModule* m) {
    for (int form = 0; form < kMccForms; ++form)
        for (int i = 0; i < kMccCollectives; ++i) {
            free(m->selection[form][i].more);
            free(m->selection[form][i].trials);
            m->selection[form][i] = (MccSteps){0};
        }
}

MccRoute mcc_selected(const MccModule* m, MccForm form, MccCollective collective, size_t bytes) {
    const MccSteps* steps = &m->selection[form][collective];
    MccRoute route = steps->route;
    for (size_t i = 0; i < steps->count && bytes >= steps->more[i].from_bytes; ++i)
        route = steps->more[i].route;
    if (kMccMeasured != route || kMccBlocking == form) return route;
    const MccTrial* trials = m->selection[kMccBlocking][collective].trials;
    return NULL != trials && kMccSidePrevious == trials[mcc_trial_class(bytes)].better ? kMccPrevious
                                                                                       : kMccHere;
}

void mcc_trial_note(MccTrial* t, uint64_t ns) {
    const unsigned call = t->calls / kMccSides;
    if (call > 0 && call <= kMccTrialCalls) t->ns[mcc_trial_side(t)][call - 1] = ns;
    ++t->calls;
}

uint64_t mcc_trial_median(const MccTrial* t, MccSide side) {
    uint64_t sorted[kMccTrialCalls];
    memcpy(sorted, t->ns[side], sizeof(sorted));
    qsort(sorted, kMccTrialCalls, sizeof(*sorted), mcc_compare);
    return sorted[kMccTrialCalls / 2];
}

static void pause_for(MccTrial* t, unsigned calls) {
    t->wait = t->pause = calls < kMccTrialLongestPause ? calls : kMccTrialLongestPause;
}

void mcc_trial_decide(MccTrial* t) {
    const uint64_t group = mcc_trial_median(t, kMccSideGroup),
                   previous = mcc_trial_median(t, kMccSidePrevious);
    const MccSide faster =
        previous + previous * kMccTrialPerCent / 100 < group ? kMccSidePrevious : kMccSideGroup;
    const bool again = t->contradicted;
    t->calls = 0;
    t->contradicted = faster != t->better && !again;
    if (t->contradicted) {
        t->wait = kMccTrialShortPause;
    } else if (faster == t->better && t->pause != 0) {
        pause_for(t, 2 * t->pause);
    } else {
        t->better = faster;
        pause_for(t, kMccTrialPause);
    }
}
