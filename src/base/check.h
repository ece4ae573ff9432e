// ASSAY_CHECK: an invariant of the program. Never triggered by input: bad input gives an Error.
#pragma once

namespace assay::base {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* meaning);
}  // namespace assay::base

#define ASSAY_CHECK(condition, meaning) \
  (static_cast<bool>(condition)         \
       ? static_cast<void>(0)           \
       : ::assay::base::check_failed(__FILE__, __LINE__, #condition, (meaning)))
