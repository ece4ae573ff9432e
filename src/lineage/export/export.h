// Lineage in standard formats: W3C PROV-JSON, RO-Crate (Process Run Crate), in-toto with SLSA
// provenance, OpenLineage. Pure: the same runs give the same bytes, so documents can be compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/run.h"

namespace assay::lineage {

enum class ExportFormat { kProv, kRoCrate, kInToto, kOpenLineage };

// "prov", "ro-crate", "in-toto", "openlineage"; the usage error suggests one.
base::Result<ExportFormat> parse_export_format(std::string_view name);
std::vector<std::string> export_format_names();

struct ExportSubject {
  std::vector<store::RunRecord> runs;  // with lists and context; producers before their consumers
  std::string project_root;            // for paths relative to it
  std::string project_id;
  // The artifact, produced by the last run; empty: all outputs of that run.
  std::string artifact_path = {};
};

// The document, with a final newline. OpenLineage is one event per line, in chronological order. An
// error if the format cannot express the subject: an attestation needs a file.
base::Result<std::string> export_text(ExportFormat format, const ExportSubject& subject);

// The number of runs that the document describes: an attestation only the last.
std::size_t runs_described(ExportFormat format, const ExportSubject& subject);

base::Json export_prov(const ExportSubject& subject);
base::Json export_ro_crate(const ExportSubject& subject);
base::Result<base::Json> export_in_toto(const ExportSubject& subject);
std::vector<base::Json> export_openlineage(const ExportSubject& subject);

}  // namespace assay::lineage
