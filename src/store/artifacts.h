// Contents and paths: which run left or read them. Every question here is answered from an index.
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

// A file as a run left or read it.
struct FileAt {
  RunId run = 0;
  std::string path;
  std::optional<hash::Digest> blake3;
  std::int64_t size = 0;
};

// Contents whose digest starts with these hexadecimal digits (either case, 1 to 64 of them), at
// most `limit`, sorted.
base::Result<std::vector<hash::Digest>> contents_starting(Store& store, std::string_view hex,
                                                          std::int64_t limit);

// Newest first.
base::Result<std::vector<FileAt>> producers_of(Store& store, const hash::Digest& content,
                                               std::int64_t limit = -1);
base::Result<std::vector<FileAt>> consumers_of(Store& store, const hash::Digest& content,
                                               std::int64_t limit = -1);

// The file at this path as the newest run that left it did, or else as the newest run that read it.
// A path whose last run deleted it has no content.
base::Result<std::optional<FileAt>> latest_at(Store& store, std::string_view path);

// The files below a folder as the newest runs left them, sorted by path; without those that the
// last run removed.
base::Result<std::vector<FileAt>> files_below(Store& store, std::string_view folder);

// Which run made an input, and which runs read an output.
//
// The producer of an input is the newest run before the reader that left this very content at this
// path; failing that, the first that began later but before the reader ended. An input without
// digest goes by its path alone. The same content at another path is no producer: files can be
// equal by chance (a `0`, a header, a copy of the raw data). same_content() finds those.
class Producers {
 public:
  static base::Result<Producers> prepare(Store& store);

  base::Result<std::optional<FileAt>> of(const RunRecord& reader, const Input& input);
  // The newest successful run before the reader that left this content, which is not empty, at
  // another path, and did not have it from here.
  base::Result<std::optional<FileAt>> same_content(const RunRecord& reader, const Input& input);
  // All inputs, of any run, whose producer is this output of `run`, and the files that were written
  // into (run_dependencies.h). FileAt is the reader's.
  base::Result<std::vector<FileAt>> readers(const RunRecord& run, const Output& output);

 private:
  Producers(Store& store, std::vector<Statement> statements)
      : store_(&store), statements_(std::move(statements)) {}
  base::Result<std::optional<FileAt>> ask(std::size_t which, const RunRecord& reader,
                                          const Input& input);

  base::Result<const RunRecord*> head(RunId id);
  // Whether any run began while the reader ran.
  base::Result<bool> has_contemporaries(const RunRecord& reader);

  Store* store_;
  std::vector<Statement> statements_;
  // Of the readers seen so far.
  std::map<RunId, RunRecord> heads_;
  std::map<RunId, bool> contemporaries_;
};

}  // namespace assay::store
