#include "assay-train/metrics_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

bool is_before(const std::string& line, std::int64_t first_step) {
  const base::Json row = base::Json::parse(line, nullptr, false);
  if (!row.is_object()) return false;
  const auto step = row.find("step");
  return step != row.end() && step->is_number_integer() && step->get<std::int64_t>() < first_step;
}

}  // namespace

base::Result<MetricsFile> MetricsFile::open(fs::path path) {
  MetricsFile file(std::move(path));
  ASSAY_TRY_VOID(file.append());
  return file;
}

base::Result<void> MetricsFile::append() {
  file_.reset(std::fopen(path_.c_str(), "ae"));
  if (file_ == nullptr) return base::fail(base::system_error(path_, "cannot be written", errno));
  return {};
}

base::Result<void> MetricsFile::set_aside() {
  std::error_code error;
  if (fs::file_size(path_, error) == 0) return {};
  fs::path aside;
  for (int number = 1; aside.empty() || fs::exists(aside, error); ++number) {
    aside = path_;
    aside.replace_extension(fmt::format("{}{}", number, path_.extension().string()));
  }
  fs::rename(path_, aside, error);
  if (error) return base::fail(base::unfit_error(path_, "cannot be renamed: " + error.message()));
  return append();
}

// Writes to another file first, so that a run killed now loses no line.
base::Result<void> MetricsFile::begin(std::int64_t first_step) {
  std::error_code error;
  if (fs::file_size(path_, error) == 0) return {};
  const fs::path kept = path_.string() + ".kept";
  bool dropped = false;
  {
    std::ifstream from(path_);
    std::ofstream to(kept, std::ios::trunc);
    for (std::string line; std::getline(from, line);) {
      // A line without a line end is incomplete, even if it can be parsed.
      const bool whole = !from.eof() && is_before(line, first_step);
      if (whole) to << line << '\n';
      dropped = dropped || !whole;
    }
    if (!to.flush()) {
      fs::remove(kept, error);
      return base::fail(base::unfit_error(kept, "cannot be written"));
    }
  }
  if (!dropped) {
    fs::remove(kept, error);
    return {};
  }
  fs::rename(kept, path_, error);
  if (error) return base::fail(base::unfit_error(path_, "cannot be replaced: " + error.message()));
  return append();
}

void MetricsFile::write(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), file_.get());
  std::fflush(file_.get());
}

}  // namespace assay::cli
