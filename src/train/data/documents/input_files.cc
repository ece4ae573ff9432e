#include "train/data/documents/input_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/suggestion.h"

namespace assay::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kTextEndings = {".txt", ".text", ".md"};
constexpr std::array<std::string_view, 2> kJsonEndings = {".jsonl", ".ndjson"};

bool ends_in(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
}

// What a file's name implies; no format if it implies none.
struct NamedKind {
  std::optional<DocumentFormat> format;
  Compression compression = Compression::kNone;
};

NamedKind kind_of(std::string_view name) {
  NamedKind kind;
  if (name.ends_with(".gz")) {
    kind.compression = Compression::kGzip;
    name.remove_suffix(3);
  } else if (name.ends_with(".zst")) {
    kind.compression = Compression::kZstd;
    name.remove_suffix(4);
  }
  if (ends_in(name, kTextEndings)) kind.format = DocumentFormat::kText;
  if (ends_in(name, kJsonEndings)) kind.format = DocumentFormat::kJsonLines;
  if (name.ends_with(".parquet")) kind.format = DocumentFormat::kParquet;
  return kind;
}

base::Result<InputFile> named_file(const std::string& path, std::optional<DocumentFormat> format) {
  InputFile file{.path = path};
  if (path == "-") {
    file.format = format.value_or(DocumentFormat::kText);
    return file;
  }
  const NamedKind kind = kind_of(path);
  file.format = format ? *format : kind.format.value_or(DocumentFormat::kText);
  file.compression = kind.compression;
  // Opened rather than only looked up, so that a missing or unreadable file is found before work
  // begins.
  ASSAY_TRY(const base::UniqueFd fd, base::open_regular(path));
  ASSAY_TRY(const struct stat status, base::regular_status(fd.get(), path));
  file.bytes = static_cast<std::uint64_t>(status.st_size);
  file.modified_ns = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return file;
}

base::Result<void> add_folder(const std::string& folder, std::optional<DocumentFormat> format,
                              InputFiles& found) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) {
      at.disable_recursion_pending();
    } else if (std::error_code ignored; at->is_regular_file(ignored)) {
      if (format || kind_of(at->path().string()).format) {
        paths.push_back(at->path().string());
      } else {
        ++found.left_out;
      }
    }
  }
  if (error) return base::fail(base::system_error(folder, "cannot list", error.value()));
  if (paths.empty()) {
    return base::fail(base::usage_error(
        folder, "has no documents: no files named .txt, .text, .md, .jsonl, .ndjson or .parquet",
        "name the files, or add --format"));
  }
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    ASSAY_TRY(InputFile file, named_file(path, format));
    found.files.push_back(std::move(file));
  }
  return {};
}

}  // namespace

std::vector<std::string> document_format_names() {
  return {"text", "jsonl", "parquet"};
}

base::Result<DocumentFormat> parse_document_format(std::string_view name) {
  if (name == "text") return DocumentFormat::kText;
  if (name == "jsonl") return DocumentFormat::kJsonLines;
  if (name == "parquet") return DocumentFormat::kParquet;
  return base::fail(base::usage_error("--format", fmt::format("unknown format '{}'", name),
                                      base::suggestion(name, document_format_names())));
}

base::Result<InputFiles> input_files(const std::vector<std::string>& paths,
                                     std::optional<DocumentFormat> format) {
  InputFiles found;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (path != "-" && fs::is_directory(path, ignored)) {
      ASSAY_TRY_VOID(add_folder(path, format, found));
    } else {
      ASSAY_TRY(InputFile file, named_file(path, format));
      found.files.push_back(std::move(file));
    }
  }
  return found;
}

base::Result<void> check_column(const std::string& where, const InputFiles& inputs,
                                const std::string& column) {
  const bool all_text = std::all_of(inputs.files.begin(), inputs.files.end(), [](const auto& file) {
    return file.format == DocumentFormat::kText;
  });
  if (column == kUsualColumn || !all_text || inputs.files.empty()) return {};
  return base::fail(base::usage_error(
      where, fmt::format("there is no '{}': the files are text, one document each", column),
      "leave it out; files of JSON lines end in .jsonl"));
}

std::optional<std::int64_t> total_bytes(const std::vector<InputFile>& files) {
  std::int64_t total = 0;
  for (const InputFile& file : files) {
    if (file.path == "-") return std::nullopt;
    total += static_cast<std::int64_t>(file.bytes);
  }
  return total;
}

}  // namespace assay::data
