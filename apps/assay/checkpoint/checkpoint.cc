// assay checkpoint list|verify|export-hf|import-hf: lists the checkpoints of a folder, checks that
// they are intact, and converts weights to and from Hugging Face model folders. diff.cc compares
// them.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/recorded_verb.h"
#include "assay/verbs.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/folder_name.h"
#include "train/hf_files.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using base::ExitCode;
using base::Result;
using checkpoint::Listed;
using checkpoint::Manifest;

base::Json checkpoint_json(const Listed& one) {
  base::Json json{
      {"step", one.step}, {"folder", one.folder.string()}, {"ok", one.manifest.has_value()}};
  if (!one.manifest) {
    const base::Error& error = one.manifest.error();
    json["error"] = {{"where", error.where}, {"what", error.what}, {"hint", error.hint}};
    return json;
  }
  const Manifest& manifest = *one.manifest;
  json["tokens"] = manifest.state.tokens;
  json["written"] = base::utc_text(manifest.written_unix_ns);
  json["bytes"] = manifest.bytes();
  json["ranks"] = manifest.ranks;
  json["files"] = base::Json::array();
  for (const checkpoint::FileRecord& file : manifest.files) {
    json["files"].push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"blake3", file.blake3.hex()}});
  }
  return json;
}

// `good`: the state shown for a checkpoint without damage, which depends on how much was checked.
void print_checkpoints(const Session& session, const std::vector<Listed>& all, const char* good) {
  base::Json list = base::Json::array();
  base::Table table({"step", "written", "tokens", "files", "size", "state"});
  for (const Listed& one : all) {
    if (session.json) list.push_back(checkpoint_json(one));
    const std::string step = base::grouped(one.step);
    if (!one.manifest) {
      table.row({step, "", "", "", "", "damaged: " + one.manifest.error().what});
      continue;
    }
    const Manifest& manifest = *one.manifest;
    table.row({step, base::utc_text(manifest.written_unix_ns),
               base::short_count(manifest.state.tokens), fmt::format("{}", manifest.files.size()),
               base::to_text(base::Bytes(manifest.bytes())), good});
  }
  session.print_json(base::Json{{"checkpoints", std::move(list)}});
  if (all.empty()) {
    session.print("no checkpoints\n");
  } else {
    session.print(table);
  }
}

Result<ExitCode> list_checkpoints(const Session& session, const std::string& directory) {
  ASSAY_TRY(const std::vector<Listed> all, checkpoint::list(checkpoint::root_of(directory)));
  print_checkpoints(session, all, "not verified");
  if (!all.empty()) {
    session.next(
        fmt::format("assay checkpoint verify {}", base::shell_quoted(all.back().folder.string())));
  }
  return ExitCode::kYes;
}

// The checkpoint at this path, or all checkpoints in the folder.
Result<std::vector<Listed>> checkpoints_at(const fs::path& directory) {
  std::error_code ignored;
  const fs::path plain = directory.has_filename() ? directory : directory.parent_path();
  if (!checkpoint::is_checkpoint(plain) || !fs::exists(plain, ignored)) {
    ASSAY_TRY(std::vector<Listed> all, checkpoint::list(checkpoint::root_of(plain)));
    if (!all.empty()) return all;
    return base::fail(
        base::usage_error(directory.string(), "has no checkpoints",
                          "expected a folder step-N, or a folder that contains some"));
  }
  const auto opened = checkpoint::Checkpoint::open(plain);
  std::vector<Listed> one;
  if (opened) {
    one.push_back({opened->manifest().state.step, plain, opened->manifest()});
  } else {
    const auto step = checkpoint::step_of(plain.filename().string());
    one.push_back({step.value_or(0), plain, base::fail(opened.error())});
  }
  return one;
}

Result<ExitCode> verify_checkpoints(const Session& session, const std::string& directory) {
  ASSAY_TRY(std::vector<Listed> all, checkpoints_at(directory));
  std::int64_t bytes = 0;
  for (const Listed& one : all) bytes += one.manifest ? one.manifest->bytes() : 0;
  base::Progress progress({.label = "verifying",
                           .total = bytes,
                           .unit = base::ProgressUnit::kBytes,
                           .quiet = session.quiet});
  std::optional<base::Error> damage;
  for (Listed& one : all) {
    if (one.manifest) {
      one.manifest = checkpoint::verify(
          one.folder, {.progress = [&progress](std::int64_t more) { progress.advance(more); }});
    }
    if (!one.manifest && !damage) damage = one.manifest.error();
  }
  progress.finish();
  print_checkpoints(session, all, "intact");
  if (!damage) return ExitCode::kYes;
  // Damage is a negative answer (exit 1), not a usage error, whatever replaced the file.
  if (damage->code == ExitCode::kUsage) damage->code = ExitCode::kNo;
  return base::fail(*damage);
}

struct HfOptions {
  std::string from;
  std::string to;
};

Result<ExitCode> export_weights(const Session& session, const HfOptions& options) {
  ASSAY_TRY(const checkpoint::Checkpoint from, checkpoint::open_newest(options.from));
  ASSAY_TRY(const std::vector<std::string> names, train::export_hf(from, options.to));
  session.print_json(
      base::Json{{"from", from.folder().string()}, {"to", options.to}, {"files", names}});
  session.print(fmt::format("wrote {} to {} from {}\n", fmt::join(names, ", "), options.to,
                            from.folder().string()));
  return ExitCode::kYes;
}

Result<ExitCode> import_weights(const Session& session, const HfOptions& options) {
  ASSAY_TRY(const train::ImportedHf made, train::import_hf(options.from, options.to));
  session.print_json(base::Json{{"from", options.from},
                                {"checkpoint", made.checkpoint.string()},
                                {"job", made.job.string()},
                                {"tokenizer", made.tokenizer_note.empty()}});
  session.print(fmt::format("wrote {} and {}{}\n", made.checkpoint.string(), made.job.string(),
                            made.tokenizer_note.empty()
                                ? ", with its tokenizer"
                                : "; without a tokenizer: " + made.tokenizer_note));
  session.next(fmt::format("assay train {} --out {} --resume",
                           base::path_argument(made.job.string()),
                           base::path_argument(options.to)));
  return ExitCode::kYes;
}

Verb export_hf_verb(const Session& session) {
  const auto options = std::make_shared<HfOptions>();
  return recorded(session,
                  {.name = "export-hf",
                   .description = "export a checkpoint's weights for Hugging Face transformers",
                   .examples = {"assay checkpoint export-hf demo-run/checkpoints/step-2 hf"},
                   .arguments = {{"CHECKPOINT",
                                  "a checkpoint, or a run: its newest one",
                                  &options->from,
                                  true,
                                  {},
                                  true},
                                 {"DIR", "the folder to create", &options->to, true, {}, true}},
                   .action = [&session, options] { return export_weights(session, *options); }});
}

Verb import_hf_verb(const Session& session) {
  const auto options = std::make_shared<HfOptions>();
  return recorded(
      session,
      {.name = "import-hf",
       .description = "start a run from weights of Hugging Face transformers",
       .examples = {"assay checkpoint import-hf hf imported"},
       .arguments =
           {{"DIR", "a folder with config.json and *.safetensors", &options->from, true, {}, true},
            {"RUN", "the run folder, as for `assay train --out`", &options->to, true, {}, true}},
       .action = [&session, options] { return import_weights(session, *options); }});
}

}  // namespace

Verb checkpoint_verb(const Session& session) {
  const auto directory = std::make_shared<std::string>();
  Verb verb{"checkpoint",
            "list, verify, compare, export and import checkpoints",
            {"assay checkpoint list checkpoints", "assay checkpoint verify checkpoints/step-2000"}};
  verb.verbs = {
      {.name = "list",
       .description = "the checkpoints in a folder, oldest first",
       .examples = {"assay checkpoint list checkpoints",
                    "assay checkpoint list checkpoints --json"},
       .arguments =
           {{"DIR", "a run, or the folder that contains step-N", directory.get(), true, {}, true}},
       .action = [&session, directory] { return list_checkpoints(session, *directory); }},
      {.name = "verify",
       .description = "check that all files are as they were written, by hash",
       .examples = {"assay checkpoint verify checkpoints/step-2000",
                    "assay checkpoint verify checkpoints --json"},
       .arguments = {{"DIR",
                      "a checkpoint, or a folder that contains some",
                      directory.get(),
                      true,
                      {},
                      true}},
       .action = [&session, directory] { return verify_checkpoints(session, *directory); }},
      checkpoint_diff_verb(session),
      export_hf_verb(session),
      import_hf_verb(session),
  };
  return verb;
}

}  // namespace assay::cli
