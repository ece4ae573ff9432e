// The files from which documents are read: what the user named, with folders expanded, and each
// file's format according to its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::data {

enum class DocumentFormat {
  kText,       // the file is one document
  kJsonLines,  // each line is an object with a document in one of its keys
  kParquet,    // each row has a document in one of its columns
};
// Whether documents are rows, which are read as JSON lines.
constexpr bool has_rows(DocumentFormat format) {
  return format != DocumentFormat::kText;
}

enum class Compression { kNone, kGzip, kZstd };

// The key or column of the text, unless another one is named.
inline constexpr const char* kUsualColumn = "text";

std::vector<std::string> document_format_names();  // "text", "jsonl", "parquet"
base::Result<DocumentFormat> parse_document_format(std::string_view name);

struct InputFile {
  std::string path;  // "-" is standard input
  DocumentFormat format = DocumentFormat::kText;
  Compression compression = Compression::kNone;
  std::uint64_t bytes = 0;       // on disk
  std::int64_t modified_ns = 0;  // since 1970
};

struct InputFiles {
  std::vector<InputFile> files;
  std::uint64_t left_out = 0;  // files in folders that were skipped because of their names
};

// Files in the given order; folders are expanded recursively, in path order. From folders only
// files named .txt, .text, .md, .jsonl or .ndjson (also with .gz or .zst) and .parquet are taken,
// no hidden ones. `format`, if given, applies to all files regardless of their names.
base::Result<InputFiles> input_files(const std::vector<std::string>& paths,
                                     std::optional<DocumentFormat> format);

// An error if a column was named, but all files are text, which has none.
base::Result<void> check_column(const std::string& where, const InputFiles& inputs,
                                const std::string& column);

// Total size on disk; nothing if standard input is among the files.
std::optional<std::int64_t> total_bytes(const std::vector<InputFile>& files);

}  // namespace assay::data
