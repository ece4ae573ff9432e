#include "lineage/record/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "base/unique_fd.h"
#include "lineage/redact/command.h"

namespace assay::lineage {
namespace {

using base::Json;

constexpr std::size_t kLongestMetricsLine = 1 << 20;
constexpr std::size_t kLongestMetricName = 200;
constexpr std::size_t kMostRows = 10'000'000;
constexpr std::size_t kRowsAtOnce = 10'000;
constexpr int kMostTries = 30;  // of a second each, while others write to the store

std::filesystem::path metrics_file_in(const std::filesystem::path& spool) {
  return spool / "metrics.jsonl";
}

bool is_usable_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestMetricName &&
         name.find_first_of("\n\t,=") == std::string::npos;
}

// Accepts numbers, true and false, and null for a number that is not finite.
std::optional<store::Metric> metric_of(const std::string& name, const Json& value) {
  if (!is_usable_name(name)) return std::nullopt;
  if (value.is_boolean()) return store::Metric{name, store::kFlag, value.get<bool>() ? 1.0 : 0.0};
  if (value.is_null()) return store::Metric{name, "", std::numeric_limits<double>::quiet_NaN()};
  if (!value.is_number()) return std::nullopt;
  return store::Metric{name, "", value.get<double>()};
}

std::string parameter_text(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool read_metrics_line(std::string_view line, Reported& reported) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return false;
  const auto parameters = json.find("parameters");
  const auto metrics = json.find("metrics");
  if (parameters == json.end() && metrics == json.end()) return false;
  if (parameters != json.end()) {
    if (!parameters->is_object()) return false;
    for (const auto& [name, value] : parameters->items()) {
      if (!is_usable_name(name) || value.is_structured()) return false;
    }
  }
  store::MetricRow row;
  if (metrics != json.end()) {
    const Json step = json.value("step", Json(0));
    const bool whole = step.is_number_integer() &&
                       (!step.is_number_unsigned() ||
                        step.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
    if (!metrics->is_object() || !whole) return false;
    row.step = step.get<std::int64_t>();
    for (const auto& [name, value] : metrics->items()) {
      auto metric = metric_of(name, value);
      if (!metric) return false;
      row.values.push_back(*std::move(metric));
    }
  }
  if (parameters != json.end()) {
    for (const auto& [name, value] : parameters->items()) {
      reported.parameters[redact_patterns(name)] = redact_value(name, parameter_text(value));
    }
  }
  if (!row.values.empty()) reported.rows.push_back(std::move(row));
  return true;
}

void offer_metrics_file(const std::filesystem::path& spool, base::Environment& environment) {
  const std::filesystem::path file = metrics_file_in(spool);
  // The variable may be that of an enclosing run.
  environment.unset(kMetricsVariable);
  const base::UniqueFd made(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made.valid()) environment.set(kMetricsVariable, file.native());
}

namespace {

// Calls visit(line) for every line; one that is too long is cut.
void each_line_of(const std::filesystem::path& file,
                  const std::function<bool(std::string_view line)>& visit) {
  // The command may have replaced the file, by a FIFO for example, on which opening must not block.
  const auto fd = base::open_regular(file);
  if (!fd) return;
  std::string line;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(fd->get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
      if (c != '\n') {
        if (line.size() <= kLongestMetricsLine) line += c;
        continue;
      }
      if (!visit(line)) return;
      line.clear();
    }
  }
  if (!line.empty()) visit(line);
}

Reported read_metrics_file(const std::filesystem::path& file) {
  Reported reported;
  std::int64_t number = 0;
  std::int64_t bad = 0;
  std::int64_t first_bad = 0;
  each_line_of(file, [&](std::string_view line) {
    ++number;
    const bool good =
        line.empty() || (line.size() <= kLongestMetricsLine && read_metrics_line(line, reported));
    if (!good && ++bad == 1) first_bad = number;
    return reported.rows.size() < kMostRows;
  });
  if (bad > 0) {
    reported.problem = fmt::format(
        "{} of {} lines that the command reported are not metrics, the first is line {}", bad,
        number, first_bad);
  } else if (reported.rows.size() == kMostRows) {
    reported.problem = fmt::format("only the first {} metrics were stored", kMostRows);
  }
  return reported;
}

base::Result<void> write_rows(store::Store& store, const std::string& uid,
                              std::span<const store::MetricRow> rows) {
  if (rows.empty()) return {};
  ASSAY_TRY(store::MetricWriter writer, store::MetricWriter::begin(store, uid));
  for (int tries = 0; !rows.empty();) {
    const auto some = rows.first(std::min(rows.size(), kRowsAtOnce));
    ASSAY_TRY(const bool written, writer.write(some));
    if (written) {
      rows = rows.subspan(some.size());
    } else if (++tries == kMostTries) {
      return base::fail(base::unfit_error("the store", "is locked by another process"));
    }
  }
  return {};
}

}  // namespace

std::string store_metrics_file(store::Store& store, const store::RunRecord& run) {
  const Reported reported = read_metrics_file(metrics_file_in(run.spool));
  auto stored = store::write_parameters(store, run.id, reported.parameters);
  if (stored) stored = write_rows(store, run.uid, reported.rows);
  if (!stored) return "what the command reported could not be stored: " + stored.error().line();
  return reported.problem;
}

}  // namespace assay::lineage
