// Contents and paths: which job left or read them. Every question here is answered from an index.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hash/digest.h"
#include "store/job.h"
#include "store/store.h"

namespace assay::store {

// A file as a job left or read it.
struct FileAt {
  JobId job = 0;
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

// The file at this path as the newest job that left it did, or else as the newest job that read it.
// A path whose last job deleted it has no content.
base::Result<std::optional<FileAt>> latest_at(Store& store, std::string_view path);

// Who made what a job read, and who read what it made.
//
// The producer of an input is the newest job before the reader that left this very content at this
// path; failing that, the first that began later but before the reader ended. An input without
// digest goes by its path alone. The same content at another path makes no producer: files are
// alike by chance (a `0`, a header, a copy of the raw data). It is worth a remark: twin().
class Producers {
 public:
  static base::Result<Producers> prepare(Store& store);

  base::Result<std::optional<FileAt>> of(const Job& reader, const Input& input);
  // The newest successful job before the reader that left this content, which is not empty, at
  // another path, and did not have it from here.
  base::Result<std::optional<FileAt>> twin(const Job& reader, const Input& input);
  // All inputs, of any job, whose producer is this output of `job`, and the files that were written
  // into (needs.h). FileAt is the reader's.
  base::Result<std::vector<FileAt>> readers(const Job& job, const Output& output);

 private:
  Producers(Store& store, std::vector<Statement> statements)
      : store_(&store), statements_(std::move(statements)) {}
  base::Result<std::optional<FileAt>> ask(std::size_t which, const Job& reader, const Input& input);

  base::Result<const Job*> head(JobId id);
  // Whether any job began while the reader ran.
  base::Result<bool> has_contemporaries(const Job& reader);

  Store* store_;
  std::vector<Statement> statements_;
  // Of the readers seen so far.
  std::map<JobId, Job> heads_;
  std::map<JobId, bool> contemporaries_;
};

}  // namespace assay::store
