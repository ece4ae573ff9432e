// Result<T>: a value or an Error. Every function that can fail because of the outside world returns
// one; exceptions stay inside calls to third-party libraries.
#pragma once

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace assay::base {

template <class T>
using Result = tl::expected<T, Error>;

// `return fail(usage_error(…));` from any function that returns a Result.
inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace assay::base

#define ASSAY_CONCAT_INNER(a, b) a##b
#define ASSAY_CONCAT(a, b) ASSAY_CONCAT_INNER(a, b)

// ASSAY_TRY(auto x, f()): x becomes f()'s value, or the enclosing function returns f()'s error.
#define ASSAY_TRY(declaration, expression)                                          \
  auto ASSAY_CONCAT(result_, __LINE__) = (expression);                              \
  if (!ASSAY_CONCAT(result_, __LINE__))                                             \
    return ::assay::base::fail(std::move(ASSAY_CONCAT(result_, __LINE__)).error()); \
  declaration = *std::move(ASSAY_CONCAT(result_, __LINE__))

// ASSAY_TRY_VOID(f()): the same for a Result<void>, or where the value is not needed.
#define ASSAY_TRY_VOID(expression)                               \
  do {                                                           \
    if (auto try_result = (expression); !try_result)             \
      return ::assay::base::fail(std::move(try_result).error()); \
  } while (false)
