// assay checkpoint export-hf, import-hf: weights to and from Hugging Face model folders.
#pragma once

#include "cli/verb.h"

namespace assay::cli {

Verb export_hf_verb(const Session& session);
Verb import_hf_verb(const Session& session);

}  // namespace assay::cli
