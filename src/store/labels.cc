#include "store/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "store/column_encoding.h"

namespace assay::store {
namespace {

constexpr std::size_t kLongest = 100;

// Columns run and blake3, from `column` on.
std::optional<Labelled> target_at(const Statement& row, int column) {
  if (!row.is_null(column)) return row.integer(column);
  if (const auto digest = digest_at(row, column + 1)) return *digest;
  return std::nullopt;
}

}  // namespace

base::Result<void> check_label(std::string_view name) {
  const auto wrong = [&](std::string why) {
    return base::fail(base::usage_error(fmt::format("label '{}'", name), std::move(why),
                                        "use a word such as baseline or best-run"));
  };
  if (name.empty() || name.size() > kLongest) return wrong("must have 1 to 100 characters");
  if (name == "last" || base::is_digits(name)) return wrong("already has another meaning");
  if (name.front() == '-' || name.front() == '@' || name.front() == '.') {
    return wrong(fmt::format("cannot start with '{}'", name.front()));
  }
  const bool spaced = std::any_of(name.begin(), name.end(),
                                  [](unsigned char c) { return std::isspace(c) != 0 || c == '/'; });
  if (spaced || base::printable(name) != name) {
    return wrong("cannot hold spaces, slashes or control characters");
  }
  return {};
}

base::Result<std::optional<Labelled>> set_label(Store& store, std::string_view name,
                                                const Labelled& target) {
  ASSAY_TRY_VOID(check_label(name));
  Database& database = store.database();
  ASSAY_TRY(Transaction transaction, Transaction::begin(database));
  ASSAY_TRY(const auto before, find_label(store, name));
  ASSAY_TRY(Statement insert, database.prepare("INSERT OR REPLACE INTO label (name, run, blake3)"
                                               " VALUES (?1, ?2, ?3)"));
  std::optional<RunId> run;
  std::optional<hash::Digest> content;
  if (const RunId* id = std::get_if<RunId>(&target)) {
    run = *id;
  } else {
    content = std::get<hash::Digest>(target);
  }
  ASSAY_TRY_VOID(insert.bind(name, run, bytes_of(content)));
  ASSAY_TRY_VOID(insert.run());
  ASSAY_TRY_VOID(transaction.commit());
  return before;
}

base::Result<bool> remove_label(Store& store, std::string_view name) {
  ASSAY_TRY(Statement remove, store.database().prepare("DELETE FROM label WHERE name = ?1"));
  ASSAY_TRY_VOID(remove.bind(name));
  ASSAY_TRY_VOID(remove.run());
  return store.database().changes() > 0;
}

base::Result<std::optional<Labelled>> find_label(Store& store, std::string_view name) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT run, blake3 FROM label WHERE name = ?1"));
  ASSAY_TRY_VOID(select.bind(name));
  ASSAY_TRY(const bool row, select.next_row());
  if (!row) return std::nullopt;
  return target_at(select, 0);
}

base::Result<std::vector<Label>> all_labels(Store& store) {
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT run, blake3, name FROM label ORDER BY name"));
  std::vector<Label> labels;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    if (const auto target = target_at(row, 0)) labels.push_back({row.text(2), *target});
  }));
  return labels;
}

base::Result<std::vector<std::string>> labels_of(Store& store, const Labelled& target) {
  const RunId* run = std::get_if<RunId>(&target);
  ASSAY_TRY(Statement select,
            store.database().prepare(
                run != nullptr ? "SELECT name FROM label WHERE run = ?1 ORDER BY name"
                               : "SELECT name FROM label WHERE blake3 = ?1 ORDER BY name"));
  ASSAY_TRY_VOID(run != nullptr ? select.bind(*run)
                                : select.bind(std::get<hash::Digest>(target).bytes));
  std::vector<std::string> names;
  ASSAY_TRY_VOID(select.each([&](const Statement& row) { names.push_back(row.text(0)); }));
  return names;
}

}  // namespace assay::store
