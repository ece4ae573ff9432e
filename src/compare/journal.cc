#include "compare/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <fstream>

#include "base/file.h"

namespace assay::compare {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr const char* kJournalName = "runs.jsonl";
constexpr base::Bytes kLargestJournal(std::int64_t{4} << 30U);

base::Result<Measured> measured_from(std::string_view text) {
  Measured measured;
  bool first = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const Json json = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    begin = end + 1;
    if (json.is_discarded() || !json.is_object()) {
      return base::fail(base::unfit_error("", "has a line that is not a JSON object"));
    }
    try {
      if (first) {
        ASSAY_TRY(measured.experiment, experiment_from_json(json.at("experiment")));
      } else {
        ASSAY_TRY_VOID(add_line(json, measured));
      }
    } catch (const Json::exception& error) {
      return base::fail(base::unfit_error("", "has a line with missing keys"));
    }
    first = false;
  }
  return measured;
}

// The text up to its last newline: what follows was being written when the program was killed.
std::string_view whole_lines(std::string_view text) {
  return text.substr(0, text.rfind('\n') + 1);
}

base::Result<Measured> measured_in(const fs::path& file, std::string_view text) {
  if (text.empty()) {
    return base::fail(base::unfit_error(file,
                                        "has no complete first line: assay compare was killed "
                                        "before it had recorded the experiment",
                                        "nothing was measured; start it again with the same -o"));
  }
  auto read = measured_from(text);
  if (read) return read;
  read.error().where = file;
  return base::fail(std::move(read).error());
}

// Two processes must not append to one journal.
base::Result<void> lock(int fd, const fs::path& file) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
  return base::fail(base::unfit_error(file, "another assay compare is writing it"));
}

}  // namespace

bool has_begun(const fs::path& directory) {
  const fs::path file = directory / kJournalName;
  std::ifstream in(file);
  std::error_code ignored;
  if (!in) return fs::exists(file, ignored);  // whatever it is, it must not be replaced
  std::string line;
  return std::getline(in, line) && !in.eof();  // at the end of the file, there was no newline
}

base::Result<Journal> Journal::create(const fs::path& directory, const Experiment& experiment) {
  std::error_code error;
  fs::create_directories(directory / "out", error);
  if (error) {
    return base::fail(base::system_error(directory, "cannot be created", error.value()));
  }
  const fs::path file = directory / kJournalName;
  const auto taken = [&] {
    return base::fail(base::usage_error(directory, "already contains an experiment",
                                        "continue it with --resume, or choose another folder"));
  };
  if (has_begun(directory)) return taken();
  base::UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return base::fail(base::system_error(file, "cannot be written", errno));
  ASSAY_TRY_VOID(lock(fd.get(), file));
  // Again, because another process may have written it before the lock was taken. What there is
  // without a complete line was left by a process that was killed at its very start.
  if (has_begun(directory)) return taken();
  if (::ftruncate(fd.get(), 0) != 0) {
    return base::fail(base::system_error(file, "cannot be truncated", errno));
  }
  Journal journal(directory, std::move(fd));
  ASSAY_TRY_VOID(journal.append({{"experiment", to_json(experiment)}}));
  ASSAY_TRY_VOID(journal.sync());
  return journal;
}

base::Result<Journal> Journal::open(const fs::path& directory, Measured& measured) {
  const fs::path file = directory / kJournalName;
  base::UniqueFd fd(::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd.valid()) {
    return base::fail(base::usage_error(directory, "contains no experiment to resume",
                                        "a folder written by assay compare has runs.jsonl"));
  }
  ASSAY_TRY_VOID(lock(fd.get(), file));
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestJournal));
  const std::string_view whole = whole_lines(text);
  ASSAY_TRY(measured, measured_in(file, whole));
  if (whole.size() < text.size() && ::ftruncate(fd.get(), static_cast<off_t>(whole.size())) != 0) {
    return base::fail(base::system_error(file, "cannot be truncated", errno));
  }
  return Journal(directory, std::move(fd));
}

base::Result<Measured> read_journal(const fs::path& directory) {
  const fs::path file = directory / kJournalName;
  ASSAY_TRY(const std::string text, base::read_file(file, kLargestJournal));
  return measured_in(file, whole_lines(text));
}

base::Result<void> Journal::add(const ArmRun& run) {
  return append(to_json(run));
}

base::Result<void> Journal::add(const FailedRun& run) {
  return append({{"failed", to_json(run)}});
}

base::Result<void> Journal::add(const HostMark& mark) {
  return append(to_json(mark));
}

base::Result<void> Journal::add(const SessionRecord& session) {
  return append({{"session", to_json(session)}});
}

base::Result<void> Journal::add(const RuleChange& change) {
  return append({{"rules", to_json(change)}});
}

base::Result<void> Journal::add(const InterimAnalysis& analysis) {
  return append({{"analysis", to_json(analysis)}});
}

fs::path Journal::output(std::int64_t run, const std::string& arm, const char* extension) const {
  return directory_ / "out" / fmt::format("{:04}-{}.{}", run, arm, extension);
}

base::Result<void> Journal::append(const Json& line) {
  if (base::write_all(fd_.get(), base::json_line(line))) return {};
  return base::fail(base::system_error(directory_ / kJournalName, "cannot be written", errno));
}

base::Result<void> Journal::sync() {
  if (::fdatasync(fd_.get()) == 0) return {};
  return base::fail(base::system_error(directory_ / kJournalName, "cannot be written", errno));
}

}  // namespace assay::compare
