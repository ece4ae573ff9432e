#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace assay::base {

void check_failed(const char* file, int line, const char* condition, const char* meaning) {
  std::fprintf(stderr, "assay: bug: %s:%d: %s (%s does not hold); please report this line\n", file,
               line, meaning, condition);
  std::abort();
}

}  // namespace assay::base
