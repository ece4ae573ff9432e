#include "lineage/record/run_results.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "base/text.h"
#include "lineage/packages/interpreter.h"
#include "lineage/redact/command.h"
#include "share/limits.h"

namespace assay::lineage {
namespace {

// For up to this many files of a rule, the store keeps the paths.
constexpr std::int64_t kMostPaths = 1000;

// One staged file: this, then path and from.
struct Staged {
  bool is_output = false;
  bool has_digest = false;
  bool has_before = false;
  store::OutputStatus status = store::OutputStatus::kCreated;
  hash::Digest digest;
  hash::Digest before;
  std::int64_t size = 0;
  std::uint32_t path_length = 0;
  std::uint32_t from_length = 0;
};

void put(std::FILE* file, Staged staged, const std::optional<hash::Digest>& digest,
         const std::string& path, const std::string& from) {
  staged.has_digest = digest.has_value();
  staged.digest = digest.value_or(hash::Digest{});
  staged.path_length = static_cast<std::uint32_t>(path.size());
  staged.from_length = static_cast<std::uint32_t>(from.size());
  // A failed write is detected with ferror() at the end.
  std::fwrite(&staged, sizeof staged, 1, file);
  std::fwrite(path.data(), 1, path.size(), file);
  std::fwrite(from.data(), 1, from.size(), file);
}

bool get(std::FILE* file, std::string& text, std::size_t length) {
  text.resize(length);
  return std::fread(text.data(), 1, length, file) == length;
}

}  // namespace

base::Result<StagedResults> StagedResults::create(const std::filesystem::path& folder,
                                                  bool explain) {
  const std::string path = folder / "results";
  File file(std::fopen(path.c_str(), "w+e"));
  if (!file) return base::fail(base::system_error(path, "cannot stage the results", errno));
  File explained(explain ? std::fopen((folder / "explained").c_str(), "w+e") : nullptr);
  return StagedResults(std::move(file), path, std::move(explained));
}

void StagedResults::explain(const std::function<void(const std::string& line)>& print) {
  if (!explained_) return;
  std::rewind(explained_.get());
  std::string line;
  for (int c = 0; (c = std::getc(explained_.get())) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    print(line);
    line.clear();
  }
}

void StagedResults::count(std::string_view what, const std::string& path, const FilterRule& rule) {
  store::FileRule& counted = rules_[rule.name];
  if (counted.files++ == 0) {
    counted.name = rule.name;
    counted.keep = rule.keep;
    counted.sentence = rule.sentence;
  }
  if (counted.files <= kMostPaths) {
    counted.paths.push_back(path);
  } else {
    counted.paths.clear();
  }
  if (!explained_) return;
  const std::string line =
      fmt::format("{:<8} {}  ({}: {})\n", what, base::printable(path), rule.name, rule.sentence);
  std::fwrite(line.data(), 1, line.size(), explained_.get());
}

void StagedResults::input(store::Input input, const FilterRule& rule) {
  ++inputs_;
  others_ = others_ || !expected_.contains(input.path);
  packages_.add(input.path);
  count("input", input.path, rule);
  put(file_.get(), {.is_output = false, .size = input.size}, input.blake3, input.path, {});
}

void StagedResults::output(store::Output output, const FilterRule& rule) {
  ++outputs_;
  others_ = others_ || !expected_.contains(output.path);
  count("output", output.path, rule);
  if (output.status != store::OutputStatus::kDeleted) folders_.add_output(output.path);
  put(file_.get(),
      {.is_output = true,
       .has_before = output.before.has_value(),
       .status = output.status,
       .before = output.before.value_or(hash::Digest{}),
       .size = output.size},
      output.blake3, output.path, output.from);
}

void StagedResults::left_out(LeftOut file, const FilterRule& rule) {
  if (file.read) packages_.add(file.path);
  count("left out", file.path, rule);
}

void StagedResults::process(store::ProcessRecord process) {
  process.arguments = redact_arguments(process.arguments);
  processes_.push_back(std::move(process));
}

void StagedResults::missed(store::Missed missed) {
  missed_.push_back(std::move(missed));
}

void StagedResults::find_created_folders(std::int64_t started_ns) {
  for (std::string& folder : folders_.created_since(started_ns)) {
    facts_.push_back({store::PathFact::Kind::kMadeFolder, std::move(folder)});
  }
}

void StagedResults::find_interpreters(const std::string& search_path, const std::string& directory,
                                      std::int64_t started_ns) {
  for (const Interpreter& one : interpreters_of(processes_, search_path, directory)) {
    if (one.changed_unix_ns < started_ns + one.used_ns) {
      facts_.push_back(to_fact(one));
      continue;
    }
    missed(
        {"interpreter",
         fmt::format("{} was changed after the command started it: the version that ran is unknown",
                     one.real)});
  }
}

void StagedResults::note_absent(const std::vector<std::string>& paths) {
  constexpr std::size_t kMost = 10'000;
  std::size_t noted = 0;
  for (const std::string& path : paths) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 || errno != ENOENT) continue;
    facts_.push_back({store::PathFact::Kind::kAbsent, path});
    if (++noted == kMost) return;
  }
}

base::Result<void> StagedResults::write_files(store::RunWriter& writer) {
  std::rewind(file_.get());
  Staged staged;
  std::string path;
  std::string from;
  for (std::int64_t at = 0; at < inputs_ + outputs_; ++at) {
    if (std::fread(&staged, sizeof staged, 1, file_.get()) != 1 ||
        !get(file_.get(), path, staged.path_length) ||
        !get(file_.get(), from, staged.from_length)) {
      return base::fail(base::system_error(path_, "cannot read the staged results", errno));
    }
    const auto digest = staged.has_digest ? std::optional(staged.digest) : std::nullopt;
    if (staged.is_output) {
      const auto before = staged.has_before ? std::optional(staged.before) : std::nullopt;
      ASSAY_TRY_VOID(writer.add_output({path, digest, staged.size, staged.status, from, before}));
    } else {
      ASSAY_TRY_VOID(writer.add_input({path, digest, staged.size}));
    }
  }
  return {};
}

base::Result<void> StagedResults::write(store::RunWriter& writer) {
  if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0) {
    return base::fail(base::system_error(path_, "cannot stage the results", errno));
  }
  ASSAY_TRY_VOID(write_files(writer));
  for (const store::PathFact& fact : facts_) ASSAY_TRY_VOID(writer.add_fact(fact));
  for (const store::ProcessRecord& process : processes_)
    ASSAY_TRY_VOID(writer.add_process(process));
  for (const store::Missed& missed : missed_) ASSAY_TRY_VOID(writer.add_missed(missed));
  for (const auto& [name, rule] : rules_) ASSAY_TRY_VOID(writer.add_rule(rule));
  for (const store::Package& package : packages_.packages()) {
    ASSAY_TRY_VOID(writer.add_package(package));
  }
  return {};
}

namespace {

// Bounds memory. Digests beyond this are not cached, so the next run hashes those files again.
constexpr std::size_t kMostFresh = 200'000;

}  // namespace

base::Result<StoredDigests> StoredDigests::open(store::Store& store) {
  ASSAY_TRY(store::HashCache cache, store::HashCache::prepare(store));
  return StoredDigests(std::move(cache));
}

std::optional<hash::Digest> StoredDigests::find(const hash::FileStamp& stamp) {
  auto found = cache_.find(stamp);
  return found ? *found : std::nullopt;  // an unreadable cache is an empty one
}

void StoredDigests::insert(const hash::FileStamp& stamp, const hash::Digest& digest) {
  if (fresh_.size() >= kMostFresh) return;
  fresh_.push_back({stamp, digest, base::system_clock().wall_ns()});
}

base::Result<void> StoredDigests::write() {
  ASSAY_TRY_VOID(cache_.insert(fresh_));
  fresh_.clear();
  return {};
}

store::GpuWork stored_gpu_work(const collect::GpuReport& report,
                               std::vector<store::Missed>& problems) {
  store::GpuWork work;
  for (std::size_t i = 0; i < wire::kGpuQuantities; ++i) {
    const wire::GpuTotals::Total& total = report.totals.of[i];
    if (total.calls == 0) continue;
    work.use.push_back({wire::name_of(static_cast<wire::GpuQuantity>(i)),
                        static_cast<std::int64_t>(total.calls),
                        static_cast<std::int64_t>(total.amount)});
  }
  for (const collect::GpuReport::Memory& memory : report.memory) {
    work.memory.push_back({memory.uuid, static_cast<std::int64_t>(memory.peak_bytes)});
  }
  for (const collect::GpuReport::Share& one : report.shares) {
    store::GpuShareUse share{.device = one.uuid,
                             .priority = std::string(share::name_of(one.share.priority)),
                             .borrow = one.share.borrow,
                             .busy_ns = static_cast<std::int64_t>(one.busy_ns),
                             .waited_ns = static_cast<std::int64_t>(one.waited_ns)};
    if (one.byte_limit != 0) {
      share.memory_bytes = static_cast<std::int64_t>(
          std::min<std::uint64_t>(one.byte_limit, std::numeric_limits<std::int64_t>::max()));
    }
    if (one.share.thousandths < wire::kGpuWholeShare) {
      share.share_thousandths = one.share.thousandths;
    }
    work.shares.push_back(std::move(share));
  }
  for (const collect::GpuReport::Collective& row : report.collectives) {
    work.collectives.push_back(
        {fmt::format("{:016x}", row.communicator), static_cast<std::int64_t>(row.ranks),
         wire::name_of(row.operation), wire::nccl_type_name(row.type),
         static_cast<std::int64_t>(row.calls), static_cast<std::int64_t>(row.bytes)});
  }
  if (report.lost > 0) {
    problems.push_back(
        {"gpu", fmt::format("{} threads had no slot for counting GPU work: the counts are too low",
                            report.lost)});
  }
  return work;
}

}  // namespace assay::lineage
