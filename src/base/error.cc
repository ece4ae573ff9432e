#include "base/error.h"

#include <cstring>
#include <utility>

#include "base/text.h"

namespace assay::base {

std::string Error::line() const {
  std::string text;
  if (!where.empty()) text += where + ": ";
  text += what;
  if (!hint.empty()) text += "; " + hint;
  return printable(text);
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
  const char* reason = strerrordesc_np(errno_value);
  return unfit_error(std::move(where),
                     std::string(what) + ": " + (reason != nullptr ? reason : "unknown error"),
                     std::move(hint));
}

}  // namespace assay::base
