// Which runs wrote or read a content or a path. Every query here uses an index.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hash/digest.h"
#include "store/run.h"
#include "store/store.h"

namespace assay::store {

// A file as a run wrote or read it.
struct FileAt {
  RunId run = 0;
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;
};

// Contents whose digest starts with these 1 to 64 hexadecimal digits (either case); sorted, at most
// `limit`.
base::Result<std::vector<hash::Digest>> contents_starting(Store& store, std::string_view hex,
                                                          std::int64_t limit);

// Newest first.
base::Result<std::vector<FileAt>> producers_of(Store& store, const hash::Digest& content,
                                               std::int64_t limit = -1);
base::Result<std::vector<FileAt>> consumers_of(Store& store, const hash::Digest& content,
                                               std::int64_t limit = -1);

// The file at this path as the newest run that wrote it left it; if none wrote it, as the newest
// run that read it saw it. If the last run to change the path deleted it, there is no content.
base::Result<std::optional<FileAt>> latest_at(Store& store, std::string_view path);

// The files below a folder as the newest run that wrote each of them left it, sorted by path. Files
// that were deleted last are left out.
base::Result<std::vector<FileAt>> files_below(Store& store, std::string_view folder);

// Which run made an input, and which runs read an output.
//
// The producer of an input is the newest run before the reader that left the same content at the
// same path; failing that, the first run that began after the reader began and before it ended. An
// input without a digest is matched by path alone. A run that left the same content at another path
// is not a producer, because files can be equal by chance (a `0`, a header, a copy of the raw
// data); same_content() finds those.
class Producers {
 public:
  static base::Result<Producers> prepare(Store& store);

  base::Result<std::optional<FileAt>> of(const RunRecord& reader, const Input& input);
  // The newest successful run before the reader that left this content at another path. Empty files
  // do not count, nor do runs that read the content from the input's own path.
  base::Result<std::optional<FileAt>> same_content(const RunRecord& reader, const Input& input);
  // All inputs, of any run, whose producer is this output of `run`, including files that a run
  // modified in place (run_dependencies.h). Each FileAt names the reading run.
  base::Result<std::vector<FileAt>> readers(const RunRecord& run, const Output& output);

 private:
  Producers(Store& store, std::vector<Statement> statements)
      : store_(&store), statements_(std::move(statements)) {}
  base::Result<std::optional<FileAt>> query_file(std::size_t which, const RunRecord& reader,
                                                 const Input& input);

  base::Result<const RunRecord*> head(RunId id);
  // Whether any run began while the reader ran.
  base::Result<bool> has_overlapping_runs(const RunRecord& reader);

  Store* store_;
  std::vector<Statement> statements_;
  // For the readers seen so far.
  std::map<RunId, RunRecord> heads_;
  std::map<RunId, bool> overlapping_;
};

}  // namespace assay::store
