// A column of a Parquet file as JSON lines, read by Python's pyarrow in a separate process.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "train/data/documents/byte_source.h"

namespace assay::data {

// Each row becomes a line with the column as its only key.
// The interpreter is python3, or the one that ASSAY_PARQUET_PYTHON names. A file without the
// column, or with a column that is not text, is an error that lists the columns; so is a reader
// that is silent for longer than `timeout`.
base::Result<std::unique_ptr<ByteSource>> open_parquet(
    const InputFile& file, const std::string& column, const std::atomic<bool>* stop,
    std::chrono::milliseconds timeout = std::chrono::minutes(10));

}  // namespace assay::data
