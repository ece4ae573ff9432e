#include "store/path_facts.h"

#include <array>
#include <charconv>
#include <optional>

#include "base/number.h"
#include "store/column_encoding.h"
#include "store/document.h"

namespace assay::store {
namespace {

using Kind = PathFact::Kind;
constexpr std::array kKinds = {Kind::kMadeFolder,  Kind::kFollowedLink, Kind::kMadeLink,
                               Kind::kListed,      Kind::kAbsent,       Kind::kNetwork,
                               Kind::kInterpreter, Kind::kBegan,        Kind::kQueried};

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kMadeFolder:
      return "made-folder";
    case Kind::kFollowedLink:
      return "followed-link";
    case Kind::kMadeLink:
      return "made-link";
    case Kind::kListed:
      return "listed";
    case Kind::kAbsent:
      return "absent";
    case Kind::kQueried:
      return "queried";
    case Kind::kNetwork:
      return "network";
    case Kind::kInterpreter:
      return "interpreter";
    case Kind::kBegan:
      return "began";
  }
  return "";
}

std::string queried_state(const struct stat& status, bool size) {
  if (S_ISDIR(status.st_mode)) return "folder";
  if (!S_ISREG(status.st_mode)) return "other";
  return size ? "file " + std::to_string(status.st_size) : "file";
}

std::optional<Traffic> traffic_of(const PathFact& fact) {
  Traffic traffic;
  const char* const end = fact.target.data() + fact.target.size();
  const auto received = std::from_chars(fact.target.data(), end, traffic.received);
  if (fact.kind != Kind::kNetwork || received.ec != std::errc{} || received.ptr == end) return {};
  const auto sent = std::from_chars(received.ptr + 1, end, traffic.sent);
  if (sent.ec != std::errc{} || sent.ptr != end) return {};
  return traffic;
}

std::int64_t began_file_ns(const RunRecord& run) {
  for (const PathFact& fact : run.facts) {
    if (fact.kind != Kind::kBegan) continue;
    const auto time_ns = base::parse_number<std::int64_t>(fact.target);
    if (time_ns && *time_ns > 0) return *time_ns;
  }
  return run.started_unix_ns;
}

std::string to_target(const Traffic& traffic) {
  return std::to_string(traffic.received) + " " + std::to_string(traffic.sent);
}

base::Result<std::vector<PathFact>> path_facts(Store& store, RunId run) {
  Database& database = store.database();
  std::vector<PathFact> facts;
  std::vector<std::optional<std::int64_t>> documents;
  ASSAY_TRY(Statement select, database.prepare("SELECT kind, path, target, names FROM path_fact"
                                               " WHERE run = ?1 ORDER BY kind, path"));
  ASSAY_TRY_VOID(select.bind(run));
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    for (const Kind kind : kKinds) {
      if (row.text(0) != name_of(kind)) continue;
      facts.push_back({.kind = kind, .path = row.text(1), .target = row.text(2)});
      documents.push_back(optional_integer_at(row, 3));
    }
  }));
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!documents[i]) continue;
    ASSAY_TRY(const std::string text, read_document(database, documents[i]));
    facts[i].names = unpacked_strings(text);
  }
  return facts;
}

base::Result<void> insert_path_fact(Database& database, RunId run, const PathFact& fact) {
  const auto packed = packed_strings(fact.names);
  const std::string_view text(reinterpret_cast<const char*>(packed.data()), packed.size());
  ASSAY_TRY(const auto names, keep_document(database, text));
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT INTO path_fact (run, kind, path, target, names)"
                             " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING"));
  ASSAY_TRY_VOID(insert.bind(run, name_of(fact.kind), fact.path,
                             fact.target.empty() ? std::nullopt : std::optional(fact.target),
                             names));
  return insert.run();
}

}  // namespace assay::store
