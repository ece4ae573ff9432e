// Statement: one prepared SQL statement. Made by Database::prepare().
//
// - Parameters are numbered from 1 and columns from 0, as in SQLite.
// - Bound text and blobs are copied, except by bind_borrowed().
// - Tables are STRICT, so a column has its declared type; reading it as another converts as SQLite
//   does.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

struct sqlite3_stmt;

namespace assay::store {

class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  base::Result<void> bind_integer(int parameter, std::int64_t value);
  base::Result<void> bind_real(int parameter, double value);  // NaN is stored as NULL
  base::Result<void> bind_text(int parameter, std::string_view value);
  base::Result<void> bind_blob(int parameter, std::span<const std::byte> value);
  base::Result<void> bind_null(int parameter);

  // The same without the copy: the bytes must stay valid until the statement has run.
  base::Result<void> bind_borrowed(int parameter, std::string_view text);
  base::Result<void> bind_borrowed(int parameter, std::span<const std::uint8_t> blob);

  // bind(a, b, c): parameters 1, 2, 3, each by its C++ type; an empty optional is NULL.
  template <class... Values>
  base::Result<void> bind(const Values&... values);

  // True: a row is ready to be read. False: done.
  base::Result<bool> next_row();
  // Runs to the end, calling visit(*this) at each row, and makes the statement ready to be bound
  // and run again.
  template <class Visit>
  base::Result<void> each(Visit visit);
  // The same, ignoring the rows.
  base::Result<void> run();
  // Makes the statement ready to run again; bindings are kept.
  void reset();

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::vector<std::byte> blob(int column) const;

 private:
  template <class Value>
  base::Result<void> bind_one(int parameter, const Value& value);
  base::Result<void> checked(int code);

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

namespace detail {
template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;
}  // namespace detail

template <class Value>
base::Result<void> Statement::bind_one(int parameter, const Value& value) {
  if constexpr (std::same_as<Value, std::nullopt_t>) {
    return bind_null(parameter);
  } else if constexpr (detail::is_optional<Value>) {
    return value ? bind_one(parameter, *value) : bind_null(parameter);
  } else if constexpr (std::integral<Value>) {
    static_assert(std::is_signed_v<Value> || sizeof(Value) < sizeof(std::int64_t),
                  "SQLite integers are signed: decide what a value above 2^63 - 1 means");
    return bind_integer(parameter, value);
  } else if constexpr (std::floating_point<Value>) {
    return bind_real(parameter, value);
  } else if constexpr (std::convertible_to<const Value&, std::string_view>) {
    return bind_text(parameter, value);
  } else {
    return bind_blob(parameter, std::as_bytes(std::span(value)));
  }
}

template <class Visit>
base::Result<void> Statement::each(Visit visit) {
  for (;;) {
    ASSAY_TRY(const bool row, next_row());
    if (!row) break;
    visit(static_cast<const Statement&>(*this));
  }
  reset();
  return {};
}

template <class... Values>
base::Result<void> Statement::bind(const Values&... values) {
  base::Result<void> result;
  int parameter = 0;
  // The fold stops at the first failure.
  static_cast<void>(((result = bind_one(++parameter, values)).has_value() && ...));
  return result;
}

}  // namespace assay::store
