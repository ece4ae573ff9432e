// Which files documents are read from: what the user named, with folders opened, and what each file
// is, by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::data {

enum class DocumentFormat {
  kText,       // the file is a document
  kJsonLines,  // each line is an object with a document in one of its keys
  kParquet,    // each row has a document in one of its columns
};
// Whether documents are rows, which are read as lines of JSON.
constexpr bool has_rows(DocumentFormat format) {
  return format != DocumentFormat::kText;
}

enum class Compression { kNone, kGzip, kZstd };

std::vector<std::string> document_format_names();  // "text", "jsonl", "parquet"
base::Result<DocumentFormat> parse_document_format(std::string_view name);

struct InputFile {
  std::string path;  // "-" is standard input
  DocumentFormat format = DocumentFormat::kText;
  Compression compression = Compression::kNone;
  std::uint64_t bytes = 0;       // as they are on disk
  std::int64_t modified_ns = 0;  // since 1970
};

struct InputFiles {
  std::vector<InputFile> files;
  std::uint64_t left_out = 0;  // files in folders whose names do not say that they have documents
};

// Files in the given order; those of a folder, and of the folders in it, by their paths. Of a
// folder only files named .txt, .text, .md, .jsonl, .ndjson, also with .gz or .zst, and .parquet
// are taken, no hidden ones. `format`: of all files, whatever they are named.
base::Result<InputFiles> input_files(const std::vector<std::string>& paths,
                                     std::optional<DocumentFormat> format);

// On disk, of all files; nothing if standard input is one of them.
std::optional<std::int64_t> total_bytes(const std::vector<InputFile>& files);

}  // namespace assay::data
