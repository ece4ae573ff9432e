#include "store/document.h"

#include <fmt/format.h>
#include <zlib.h>

#include <vector>

#include "base/check.h"
#include "hash/blake3.h"
#include "store/column_encoding.h"
#include "store/sqlite_error.h"

namespace assay::store {
namespace {

// zlib's fastest level: compressing a diff of megabytes must not delay the start of the command.
std::vector<std::byte> compressed(std::string_view text) {
  uLongf size = ::compressBound(text.size());
  std::vector<std::byte> bytes(size);
  const int code =
      ::compress2(reinterpret_cast<Bytef*>(bytes.data()), &size,
                  reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_SPEED);
  ASSAY_CHECK(code == Z_OK, "the buffer is large enough for any content");
  bytes.resize(size);
  return bytes;
}

}  // namespace

base::Result<std::optional<std::int64_t>> keep_document(Database& database, std::string_view text) {
  if (text.empty()) return std::nullopt;
  const hash::Digest digest = hash::blake3(bytes_of(text));
  ASSAY_TRY(Statement find, database.prepare("SELECT id FROM document WHERE blake3 = ?1"));
  ASSAY_TRY_VOID(find.bind(digest.bytes));
  ASSAY_TRY(const bool known, find.next_row());
  if (known) return find.integer(0);
  ASSAY_TRY(Statement insert,
            database.prepare("INSERT INTO document (blake3, size, zlib) VALUES (?1, ?2, ?3)"));
  ASSAY_TRY_VOID(
      insert.bind(digest.bytes, static_cast<std::int64_t>(text.size()), compressed(text)));
  ASSAY_TRY_VOID(insert.run());
  return database.last_insert_rowid();
}

base::Result<std::string> read_document(Database& database, std::optional<std::int64_t> id) {
  if (!id) return std::string();
  ASSAY_TRY(Statement select, database.prepare("SELECT size, zlib FROM document WHERE id = ?1"));
  ASSAY_TRY_VOID(select.bind(*id));
  ASSAY_TRY(const bool row, select.next_row());
  const auto damaged = [&] {
    return damaged_error(database.path().string(), fmt::format("document {} is damaged", *id));
  };
  if (!row) return base::fail(damaged());
  const std::vector<std::byte> bytes = select.blob(1);
  // Deflate reaches about 1:1032, so a larger size was not written by this program.
  const std::int64_t claimed = select.integer(0);
  if (claimed < 0 || static_cast<std::uint64_t>(claimed) / 1100 > bytes.size()) {
    return base::fail(damaged());
  }
  std::string text(static_cast<std::size_t>(claimed), '\0');
  uLongf size = text.size();
  const int code = ::uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (code != Z_OK || size != text.size()) return base::fail(damaged());
  return text;
}

}  // namespace assay::store
