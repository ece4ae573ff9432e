#include "store/streams.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "store/column_encoding.h"

namespace assay::store {
namespace {

std::set<std::string> paths_after(const std::vector<std::string>& redirects,
                                  std::string_view sign) {
  std::set<std::string> paths;
  for (const std::string& redirect : redirects) {
    const std::size_t path = redirect.find('/');
    if (path == std::string::npos) continue;
    if (std::string_view(redirect).substr(0, path).ends_with(sign)) {
      paths.insert(redirect.substr(path));
    }
  }
  return paths;
}

template <class... Values>
base::Result<bool> any(Database& database, std::string_view sql, const Values&... values) {
  ASSAY_TRY(Statement select, database.prepare(sql));
  ASSAY_TRY_VOID(select.bind(values...));
  return select.next_row();
}

// A run has read, at this path, what this run or another has left there.
constexpr const char* kIsRead =
    "SELECT 1 FROM listed_input i CROSS JOIN run_list u ON u.list = i.list"
    " WHERE i.path = ?1 AND (u.run = ?2 OR i.blake3 = ?3 OR EXISTS"
    " (SELECT 1 FROM run_output o WHERE substr(o.blake3, 1, 8) = substr(i.blake3, 1, 8)"
    " AND o.blake3 = i.blake3 AND o.path = i.path AND o.run <> u.run)) LIMIT 1";
// Another run's output is what the file held before. ?4: this run's file was handed down; ?5: how
// the other's redirections say so.
constexpr const char* kChangesOutput =
    "SELECT 1 FROM run_output o JOIN run j ON j.id = o.run WHERE o.path = ?1 AND o.blake3 = ?3"
    " AND o.run <> ?2 AND o.stream = 0 AND (NOT ?4 OR instr(j.redirects, ?5) = 0) LIMIT 1";

// What a run read that was a stream of another, found from the shorter list.
constexpr const char* kReadStreams =
    "SELECT o.run, o.path, o.before FROM run_input i CROSS JOIN run_output o ON o.path = i.path"
    " WHERE i.run = ?1 AND o.stream = 1 AND o.run <> ?1 AND o.blake3 = i.blake3";
constexpr const char* kStreamsRead =
    "SELECT o.run, o.path, o.before FROM run_output o CROSS JOIN listed_input i ON i.path = o.path"
    " CROSS JOIN run_list u ON u.list = i.list WHERE u.run = ?1 AND o.stream = 1 AND o.run <> ?1 "
    "AND o.blake3 = i.blake3";
constexpr std::int64_t kFewInputs = 1000;
// What it held before, if that is a stream.
constexpr const char* kEarlierContent =
    "SELECT run, path, before FROM run_output WHERE path = ?1 AND blake3 = ?2 AND run < ?3"
    " AND stream = 1";

struct Stream {
  RunId run = 0;
  std::string path;
  std::optional<hash::Digest> before;
};

base::Result<void> add_streams(Statement& select, std::vector<Stream>& streams) {
  return select.each([&](const Statement& row) {
    streams.push_back({row.integer(0), row.text(1), digest_at(row, 2)});
  });
}

}  // namespace

std::set<std::string> stream_paths(const std::vector<std::string>& redirects) {
  return paths_after(redirects, "");
}

std::set<std::string> stream_paths(const RunRecord& run) {
  return stream_paths(run.redirects);
}

bool is_standard_output(const std::vector<std::string>& redirects, std::string_view path) {
  return std::ranges::any_of(redirects, [&](const std::string& redirect) {
    return redirect.starts_with("1>") &&
           redirect.substr(std::min(redirect.find('/'), redirect.size())) == path;
  });
}

std::set<std::string> handed_down_paths(const std::vector<std::string>& redirects) {
  return paths_after(redirects, kHandedDown);
}

base::Result<bool> is_output(Database& database, const RunStreams& streams, const Output& file) {
  ASSAY_TRY(const bool read, any(database, kIsRead, file.path, streams.run, bytes_of(file.blake3)));
  if (read) return true;
  const bool handed_down = handed_down_paths(streams.redirects).contains(file.path);
  if (!streams.leaves_files) {
    const bool first = !paths_after(streams.redirects, ">>&").contains(file.path);
    if (!handed_down || (first && file.size > 0)) return true;
  }
  if (!file.before) return false;
  const std::string sign = kHandedDown + file.path + '\0';
  return any(database, kChangesOutput, file.path, streams.run, bytes_of(file.before), handed_down,
             bytes_of(sign));
}

base::Result<void> note_read_streams(Database& database, RunId run, std::int64_t inputs) {
  if (inputs == 0) return {};
  ASSAY_TRY(const bool exist, any(database, "SELECT 1 FROM run_output WHERE stream = 1 LIMIT 1"));
  if (!exist) return {};
  std::vector<Stream> read;
  ASSAY_TRY(Statement select, database.prepare(inputs <= kFewInputs ? kReadStreams : kStreamsRead));
  ASSAY_TRY_VOID(select.bind(run));
  ASSAY_TRY_VOID(add_streams(select, read));
  ASSAY_TRY(Statement earlier, database.prepare(kEarlierContent));
  ASSAY_TRY(Statement update, database.prepare("UPDATE run_output SET stream = 0 WHERE path = ?1"
                                               " AND run = ?2 AND stream = 1"));
  ASSAY_TRY(Statement count, database.prepare("UPDATE run SET outputs = outputs + ?2"
                                              " WHERE id = ?1"));
  while (!read.empty()) {
    const Stream stream = std::move(read.back());
    read.pop_back();
    ASSAY_TRY_VOID(update.bind(stream.path, stream.run));
    ASSAY_TRY_VOID(update.run());
    ASSAY_TRY_VOID(count.bind(stream.run, static_cast<std::int64_t>(database.changes())));
    ASSAY_TRY_VOID(count.run());
    if (!stream.before) continue;
    ASSAY_TRY_VOID(earlier.bind(stream.path, bytes_of(stream.before), stream.run));
    ASSAY_TRY_VOID(add_streams(earlier, read));
  }
  return {};
}

}  // namespace assay::store
