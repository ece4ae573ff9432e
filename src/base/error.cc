#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_size_limit.h"
#include "base/text.h"

namespace assay::base {

namespace {

// Together with the separators, under 1000. `where` keeps its end as well, which has the line
// number.
constexpr std::size_t kWhereColumns = 300;
constexpr std::size_t kWhatColumns = 400;
constexpr std::size_t kHintColumns = 290;

}  // namespace

std::string Error::line() const {
  std::string text;
  if (!where.empty()) text += shortened_middle(printable(where), kWhereColumns) + ": ";
  text += shortened(printable(what), kWhatColumns);
  if (!hint.empty()) text += "; " + shortened(printable(hint), kHintColumns);
  return text;
}

Error usage_error(std::string where, std::string what, std::string hint) {
  return {ExitCode::kUsage, std::move(where), std::move(what), std::move(hint)};
}

Error unfit_error(std::string where, std::string what, std::string hint) {
  return {ExitCode::kUnfit, std::move(where), std::move(what), std::move(hint)};
}

Error failed_error(std::string where, std::string what, std::string hint) {
  return {ExitCode::kNo, std::move(where), std::move(what), std::move(hint)};
}

Error system_error(std::string where, std::string_view what, int errno_value, std::string hint) {
  // strerrordesc_np is thread-safe and untranslated, unlike strerror.
  const char* description = strerrordesc_np(errno_value);
  std::string reason = description != nullptr ? description : "unknown error";
  if (const std::string limit = file_size_limit_text(); errno_value == EFBIG && !limit.empty()) {
    reason = limit;
    hint = "raise it: ulimit -f unlimited";
  }
  return unfit_error(std::move(where), std::string(what) + ": " + reason, std::move(hint));
}

}  // namespace assay::base
