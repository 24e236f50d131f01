#include "report.h"

#include <fmt/format.h>

#include <algorithm>

namespace mcastcoll::doctor {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kMaxInMatrix = 32, kLargeMatrix = 16;

// Breaks at blanks; lines after the first are indented.
std::string wrapped(const std::string& text, std::size_t first, std::size_t indent) {
    std::string out;
    std::size_t column = first;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        if (column + end - at > kWidth && column > indent) {
            out += '\n' + std::string(indent, ' ');
            column = indent;
        } else if (at > 0) {
            out += ' ';
            ++column;
        }
        out.append(text, at, end - at);
        column += end - at;
        at = end + 1;
    }
    return out;
}

class Writer {
  public:
    explicit Writer(bool colour) : colour_(colour) {}

    std::string painted(const char* code, const std::string& text) const {
        return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
    }
    void line(const char* what, const std::string& text) {
        if (text.empty()) return;
        std::string head = fmt::format("     {:<6}", what);
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            out_ += head + wrapped(text.substr(at, end - at), head.size(), head.size()) + '\n';
            head = std::string(head.size(), ' ');
            at = end + 1;
        }
    }
    void finding(const Finding& one) {
        const char* const code = one.severity == Severity::broken   ? "31;1"
                                 : one.severity == Severity::limits ? "33;1"
                                                                    : "36";
        const char* const mark = one.severity == Severity::broken   ? "XX"
                                 : one.severity == Severity::limits ? "!!"
                                                                    : "--";
        std::string title = one.title;
        if (!one.hosts.empty()) title = fmt::format("{}: {}", fmt::join(one.hosts, ", "), title);
        out_ += fmt::format("\n {}  {} {}\n", painted(code, mark), painted("1", wrapped(title, 5, 5)),
                            fmt::format("[{}]", one.id));
        line("why", one.cause);
        line("cost", one.cost);
        line("mend", one.mend);
    }
    void list(const char* head, const std::vector<std::string>& lines, const char* code, const char* mark) {
        if (lines.empty()) return;
        out_ += fmt::format("\n{}\n", painted("1", head));
        for (const std::string& one : lines)
            out_ += fmt::format(" {}  {}\n", painted(code, mark), wrapped(one, 5, 5));
    }
    void text(const std::string& text) { out_ += text; }
    std::string take() { return std::move(out_); }

  private:
    const bool colour_;
    std::string out_;
};

// A cell of the matrix, from all phases but the one after the wait: "." if all datagrams were received, "-"
// if none, else the lost share.
std::string cell(const Host& from, const Host& to, unsigned from_at) {
    std::uint64_t sent = 0, got = 0;
    for (const Stream& stream : from.sent)
        if (stream.phase != Phase::again) sent += stream.datagrams;
    for (const ReceivedStream& received : to.received)
        if (received.from == from_at && received.phase != Phase::again) got += received.datagrams;
    if (sent == 0) return "";
    if (got == 0) return "-";
    if (got >= sent) return ".";
    const double lost = 100 - 100 * static_cast<double>(got) / static_cast<double>(sent);
    return lost < 0.1 ? "<0.1" : fmt::format("{:.1f}", lost);
}

// Whether no datagram was lost between the senders: for people, one sentence then replaces a large table.
bool is_spotless(const Facts& facts, const std::vector<unsigned>& senders) {
    for (const unsigned to : senders)
        for (const unsigned from : senders)
            if (from != to && cell(*facts.hosts[from], *facts.hosts[to], from) != ".") return false;
    return true;
}

std::string matrix(const Facts& facts) {
    std::vector<unsigned> senders;
    for (unsigned i = 0; i < facts.hosts.size(); ++i)
        if (facts.hosts[i] && facts.hosts[i]->sends) senders.push_back(i);
    if (senders.size() < 2) return {};
    if (senders.size() > kLargeMatrix && is_spotless(facts, senders))
        return fmt::format(
            "\nEach of {} hosts receives everything that the other hosts send, at up to {} Mbit/s.\n",
            senders.size(), facts.top_mbit);
    const bool cut = senders.size() > kMaxInMatrix;
    if (cut) senders.resize(kMaxInMatrix);
    const auto names = names_of(facts);
    std::size_t width = 5;
    for (const unsigned i : senders) width = std::max(width, names[i].size() + 1);
    std::string text = fmt::format(
        "\nReception: each line is a receiving host, each column a sending host. "
        "\".\": everything arrived,\n"
        "\"-\": nothing, a number: per cent lost, at up to {} Mbit/s and in bursts.{}\n\n{:{}}",
        facts.top_mbit, cut ? fmt::format(" (the first {} hosts)", kMaxInMatrix) : "", "", width + 1);
    for (const unsigned from : senders) text += fmt::format("{:>{}}", names[from], width);
    text += '\n';
    for (const unsigned to : senders) {
        text += fmt::format(" {:<{}}", names[to], width);
        for (const unsigned from : senders)
            text += fmt::format("{:>{}}", from == to ? "" : cell(*facts.hosts[from], *facts.hosts[to], from),
                                width);
        text += '\n';
    }
    return text;
}

std::vector<std::string> settings_of(const Facts& facts) {
    for (const auto& host : facts.hosts)
        if (host) return host->libraries.settings;
    return {};
}

}  // namespace

const char* name_of(Severity severity) {
    switch (severity) {
        case Severity::note:
            return "note";
        case Severity::limits:
            return "limits";
        case Severity::broken:
            return "broken";
    }
    return "";
}

std::string as_text(const Diagnosis& diagnosis, const Facts& facts, bool colour) {
    Writer writer(colour);
    const char* const code = diagnosis.worst == Severity::broken   ? "31;1"
                             : diagnosis.worst == Severity::limits ? "33;1"
                                                                   : "32;1";
    writer.text(writer.painted(code, wrapped(diagnosis.sentence, 0, 0)) + '\n');
    for (const Finding& one : diagnosis.findings) writer.finding(one);
    writer.list("Correct:", diagnosis.fine, "32", "ok");
    writer.list("Could not be checked:", diagnosis.unseen, "33", "? ");
    writer.list("Settings in effect:", settings_of(facts), "36", "--");
    writer.text(matrix(facts));
    return writer.take();
}

}  // namespace mcastcoll::doctor
