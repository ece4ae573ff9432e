#include "train/hf_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "spec/load.h"
#include "train/checkpoint/folder_name.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/checkpoint/verification.h"
#include "train/checkpoint/write.h"
#include "train/data/load_tokenizer.h"
#include "train/hf_config.h"
#include "train/hf_folder.h"
#include "train/hf_model.h"
#include "train/hf_names.h"
#include "train/hf_tokenizer.h"
#include "train/job_data.h"
#include "train/resume.h"
#include "train/tokenizer_record.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kMostConfigBytes(16 << 20);

// Weights under their names at Hugging Face, in the type that they are stored in.
base::Result<std::vector<checkpoint::Tensor>> read_weights(const checkpoint::Checkpoint& from,
                                                           const std::vector<HfTensor>& wanted) {
  ASSAY_TRY(const checkpoint::TensorSet set, from.part("weights"));
  std::vector<checkpoint::Tensor> tensors;
  for (const HfTensor& tensor : wanted) {
    const checkpoint::StoredTensor* found = set.find(tensor.parameter);
    if (found == nullptr) {
      return base::fail(base::usage_error(from.folder().string(),
                                          fmt::format("has no tensor {}", tensor.parameter)));
    }
    const checkpoint::TensorDtype type = found->info.dtype;
    const std::int64_t row = tensor.cols * checkpoint::dtype_bytes(type);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.count * row));
    ASSAY_TRY_VOID(set.read(*found, tensor.first * row, bytes));
    if (tensor.transposed) {
      bytes = transposed(bytes, tensor.count, tensor.cols,
                         static_cast<std::size_t>(checkpoint::dtype_bytes(type)));
    }
    tensors.push_back(
        checkpoint::owned_tensor({tensor.name, type, tensor.shape()}, std::move(bytes)));
  }
  return tensors;
}

// The type in which transformers loads all weights without losing a bit.
const char* torch_type(std::span<const checkpoint::Tensor> tensors) {
  const auto is_bf16 = [](const checkpoint::Tensor& tensor) {
    return tensor.info.dtype == checkpoint::TensorDtype::kBf16;
  };
  return std::ranges::all_of(tensors, is_bf16) ? "bfloat16" : "float32";
}

// The tokenizer of a folder, if it can be used; otherwise `why` says why not.
base::Result<TokenizerRecord> read_tokenizer(const fs::path& folder, const spec::ModelSpec& model,
                                             std::string& why) {
  TokenizerRecord record{.where = (folder / "tokenizer.json").string()};
  std::error_code ignored;
  if (!fs::exists(record.where, ignored)) {
    why = "the folder has no tokenizer.json";
    return record;
  }
  const auto tokenizer =
      data::load_tokenizer({.source = record.where, .added_as_text = hf_added_as_text(folder)});
  if (!tokenizer) {
    why = tokenizer.error().line();
    return record;
  }
  if ((*tokenizer)->vocabulary() > static_cast<std::uint64_t>(model.vocab)) {
    why = fmt::format("{} has {} tokens, but config.json has a vocab_size of {}", record.where,
                      (*tokenizer)->vocabulary(), model.vocab);
    return record;
  }
  record.definition = std::make_shared<const std::string>((*tokenizer)->definition());
  record.bos = hf_bos(folder, **tokenizer);
  return record;
}

// A job that trains the model further, on this machine and on the built-in text.
std::string job_text(const spec::ModelSpec& model) {
  constexpr std::int64_t kLongestSequence = 1024;
  return fmt::format(
      "description = \"a model imported from Hugging Face transformers\"\n\n{}\n"
      "[batch]\nsequence = {}\n\n"
      "[train]\nsteps = 100\n\n"
      "# Without data the built-in text is read. Your own is made by\n"
      "#   assay data tokenize FILE -o NAME.tokens --tokenizer checkpoints/step-0/tokenizer.json\n"
      "# [data]\n# train = \"NAME.tokens\"\n",
      spec::model_toml(model), std::min(model.context, kLongestSequence));
}

// Nothing of another run, and no file of the user's, may be replaced: `--resume` would continue a
// later checkpoint instead of the imported one.
base::Result<void> check_run(const fs::path& run, const fs::path& job_file,
                             const std::string& job) {
  std::error_code ignored;
  if (fs::exists(run / "checkpoints", ignored)) {
    ASSAY_TRY(const std::vector<std::int64_t> steps, checkpoint::steps_in(run / "checkpoints"));
    if (!steps.empty() && steps.back() > 0) {
      return base::fail(base::usage_error((run / "checkpoints").string(),
                                          "already has checkpoints of another run",
                                          "import into another folder"));
    }
  }
  if (!fs::exists(job_file, ignored)) return {};
  ASSAY_TRY(const std::string text, base::read_file(job_file, kMostConfigBytes));
  if (text == job) return {};
  return base::fail(base::usage_error(job_file.string(), "already exists with another content",
                                      "remove it, or import into another folder"));
}

}  // namespace

base::Result<std::vector<std::string>> export_hf(const checkpoint::Checkpoint& from,
                                                 const fs::path& folder) {
  ASSAY_TRY(const spec::ModelSpec model, model_of(from));
  ASSAY_TRY(const std::vector<HfTensor> wanted, hf_tensors(model));
  checkpoint::Verification verification(from, {"weights"});
  auto read = read_weights(from, wanted);
  ASSAY_TRY(const std::vector<checkpoint::Tensor> tensors, verification.finish(std::move(read)));
  ASSAY_TRY(const TokenizerRecord tokenizer, tokenizer_record(from));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::unfit_error(folder, "cannot be created: " + error.message()));
  ASSAY_TRY_VOID(
      checkpoint::write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}}));
  ASSAY_TRY(const base::Json config, hf_config(model, torch_type(tensors)));
  ASSAY_TRY_VOID(base::write_file(folder / "config.json", base::json_text(config)));
  std::vector<std::string> names = {"config.json", "model.safetensors"};
  if (tokenizer.definition == nullptr) return names;
  ASSAY_TRY(const HfTokenizerFiles files, hf_tokenizer_files(tokenizer, model.context));
  ASSAY_TRY_VOID(base::write_file(folder / "tokenizer.json", files.tokenizer));
  ASSAY_TRY_VOID(base::write_file(folder / "tokenizer_config.json", files.config));
  names.insert(names.end(), {"tokenizer.json", "tokenizer_config.json"});
  return names;
}

base::Result<ImportedHf> import_hf(const fs::path& folder, const fs::path& run) {
  const fs::path path = folder / "config.json";
  ASSAY_TRY(const std::string text, base::read_file(path, kMostConfigBytes));
  const base::Json config = base::Json::parse(text, nullptr, false);
  if (!config.is_object())
    return base::fail(base::usage_error(path.string(), "is not a JSON object"));
  ASSAY_TRY(const spec::ModelSpec model, model_from_hf(config, path.string()));
  ImportedHf imported{.job = run / "job.toml"};
  const std::string job = job_text(model);
  ASSAY_TRY_VOID(check_run(run, imported.job, job));
  ASSAY_TRY(std::vector<checkpoint::Tensor> parameters, read_hf_parameters(folder, model));
  checkpoint::Snapshot snapshot;
  snapshot.state.extra = {{"model", spec::model_toml(model)}};
  snapshot.state.data_cursor = {{"windows", 0U}};
  snapshot.parts.push_back({.name = "weights", .tensors = std::move(parameters)});
  ASSAY_TRY(const TokenizerRecord tokenizer,
            read_tokenizer(folder, model, imported.tokenizer_note));
  add_tokenizer(tokenizer, snapshot);
  const fs::path root = run / "checkpoints";
  ASSAY_TRY_VOID(checkpoint::prepare_root(root));
  ASSAY_TRY(const checkpoint::Written written, checkpoint::write_checkpoint(root, snapshot));
  imported.checkpoint = written.folder;
  // In the tokens that the model knows. Without a tokenizer, training makes one of the text.
  if (tokenizer.definition != nullptr) ASSAY_TRY_VOID(write_builtin_text(run, tokenizer));
  ASSAY_TRY_VOID(base::replace_file(imported.job, job, 0666));
  return imported;
}

}  // namespace assay::train
