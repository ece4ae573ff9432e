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
// path; else, unless the content is empty, the newest that left it at any path (the file was moved
// or copied unseen). Failing that, jobs that began later but before the reader ended count too. An
// input without digest goes by its path alone.
class Producers {
 public:
  static base::Result<Producers> prepare(Store& store);

  base::Result<std::optional<FileAt>> of(const Job& reader, const Input& input);
  // All inputs, of any job, whose producer is this output of `job`. FileAt is the reader's.
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
