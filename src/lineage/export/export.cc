#include "lineage/export/export.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/suggestion.h"
#include "base/text.h"

namespace assay::lineage {
namespace {

constexpr std::array<std::pair<std::string_view, ExportFormat>, 4> kFormats = {
    {{"prov", ExportFormat::kProv},
     {"ro-crate", ExportFormat::kRoCrate},
     {"in-toto", ExportFormat::kInToto},
     {"openlineage", ExportFormat::kOpenLineage}}};

constexpr int kOneLine = -1;

// Not base::json_text(), which adds keys for paths that are not UTF-8: these formats have fixed
// keys, and their URIs contain such paths in full.
std::string exported_text(const base::Json& document, int indent = 2) {
  return document.dump(indent, ' ', false, base::Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<std::string> export_format_names() {
  std::vector<std::string> names;
  for (const auto& [name, format] : kFormats) names.emplace_back(name);
  return names;
}

base::Result<ExportFormat> parse_export_format(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return base::fail(base::usage_error("--format", fmt::format("unknown format '{}'", name),
                                      base::suggestion(name, export_format_names())));
}

std::size_t runs_described(ExportFormat format, const ExportSubject& subject) {
  return format == ExportFormat::kInToto ? 1 : subject.runs.size();
}

base::Result<std::string> export_text(ExportFormat format, const ExportSubject& subject) {
  switch (format) {
    case ExportFormat::kProv:
      return exported_text(export_prov(subject));
    case ExportFormat::kRoCrate:
      return exported_text(export_ro_crate(subject));
    case ExportFormat::kInToto: {
      ASSAY_TRY(const base::Json statement, export_in_toto(subject));
      return exported_text(statement);
    }
    case ExportFormat::kOpenLineage:
      break;
  }
  std::string lines;
  for (const base::Json& event : export_openlineage(subject))
    lines += exported_text(event, kOneLine);
  return lines;
}

}  // namespace assay::lineage
