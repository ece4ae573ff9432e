#include "report/page.h"

namespace assay::report {

void add_section(Part& part, Section section) {
  if (!section.blocks.empty()) part.sections.push_back(std::move(section));
}

}  // namespace assay::report
