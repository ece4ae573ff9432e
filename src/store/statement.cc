#include "store/statement.h"

#include <sqlite3.h>

#include "store/sqlite_error.h"

namespace assay::store {

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

base::Result<void> Statement::checked(int code) {
  if (code == SQLITE_OK) return {};
  return base::fail(sqlite_error(sqlite3_db_handle(statement_.get()), code));
}

base::Result<void> Statement::bind_integer(int parameter, std::int64_t value) {
  return checked(sqlite3_bind_int64(statement_.get(), parameter, value));
}

base::Result<void> Statement::bind_real(int parameter, double value) {
  return checked(sqlite3_bind_double(statement_.get(), parameter, value));
}

base::Result<void> Statement::bind_text(int parameter, std::string_view value) {
  // A null pointer would bind NULL, and an empty view may hold one.
  const char* data = value.empty() ? "" : value.data();
  return checked(sqlite3_bind_text64(statement_.get(), parameter, data, value.size(),
                                     SQLITE_TRANSIENT, SQLITE_UTF8));
}

base::Result<void> Statement::bind_blob(int parameter, std::span<const std::byte> value) {
  if (value.empty()) return checked(sqlite3_bind_zeroblob(statement_.get(), parameter, 0));
  return checked(sqlite3_bind_blob64(statement_.get(), parameter, value.data(), value.size(),
                                     SQLITE_TRANSIENT));
}

base::Result<void> Statement::bind_borrowed(int parameter, std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  return checked(sqlite3_bind_text64(statement_.get(), parameter, data, text.size(), SQLITE_STATIC,
                                     SQLITE_UTF8));
}

base::Result<void> Statement::bind_borrowed(int parameter, std::span<const std::uint8_t> blob) {
  return checked(
      sqlite3_bind_blob64(statement_.get(), parameter, blob.data(), blob.size(), SQLITE_STATIC));
}

base::Result<void> Statement::bind_null(int parameter) {
  return checked(sqlite3_bind_null(statement_.get(), parameter));
}

base::Result<bool> Statement::next_row() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  base::Error error = sqlite_error(sqlite3_db_handle(statement_.get()), code);
  // A failed statement that is not reset would prevent its transaction from ending.
  reset();
  return base::fail(std::move(error));
}

base::Result<void> Statement::run() {
  return each([](const Statement&) {});
}

// The code that sqlite3_reset() returns is that of the last step, which was reported then.
void Statement::reset() {
  sqlite3_reset(statement_.get());
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  // The pointer is fetched first, because that may convert the value and change its size.
  const unsigned char* data = sqlite3_column_text(statement_.get(), column);
  if (data == nullptr) return {};
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {reinterpret_cast<const char*>(data), size};
}

std::vector<std::byte> Statement::blob(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {data, data + size};
}

}  // namespace assay::store
