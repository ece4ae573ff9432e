#include "train/hf_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "spec/load.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/checkpoint/write.h"
#include "train/data/load_tokenizer.h"
#include "train/hf_config.h"
#include "train/hf_model.h"
#include "train/hf_names.h"
#include "train/hf_tokenizer.h"
#include "train/resume.h"
#include "train/tokenizer_record.h"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

constexpr base::Bytes kMostConfigBytes(16 << 20);

// Transposes a matrix with elements of `size` bytes.
std::vector<std::byte> transposed(std::span<const std::byte> from, std::int64_t rows,
                                  std::int64_t cols, std::size_t size) {
  std::vector<std::byte> to(from.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) {
      std::memcpy(to.data() + static_cast<std::size_t>(j * rows + i) * size,
                  from.data() + static_cast<std::size_t>(i * cols + j) * size, size);
    }
  }
  return to;
}

// The published files of GPT-2 have no prefix.
std::string_view published_name(std::string_view name) {
  constexpr std::string_view kPrefix = "transformer.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

// Tensors that can be computed: rotary frequencies and GPT-2's causal masks, written by older
// versions of transformers, and a head that is a copy of the embedding.
bool is_computed(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
         name.ends_with(".attn.masked_bias") || name == "lm_head.weight";
}

// Only the files in the index: some folders have the same weights in other files, too.
base::Result<std::vector<fs::path>> files_of_index(const fs::path& index) {
  ASSAY_TRY(const std::string text, base::read_file(index, kMostConfigBytes));
  const base::Json json = base::Json::parse(text, nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object()) {
    return base::fail(base::usage_error(index.string(), "has no weight_map"));
  }
  std::set<std::string> names;
  for (const base::Json& file : *map) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || fs::path(name).filename() != name) {
      return base::fail(base::usage_error(index.string(), "names a file outside its folder"));
    }
    names.insert(name);
  }
  std::vector<fs::path> paths;
  for (const std::string& name : names) paths.push_back(index.parent_path() / name);
  return paths;
}

// The tensors of a folder, across its files.
class HfFolder {
 public:
  static base::Result<HfFolder> open(const fs::path& folder) {
    HfFolder result;
    std::vector<fs::path> paths;
    std::error_code error;
    const fs::path index = folder / "model.safetensors.index.json";
    if (fs::exists(index, error)) {
      ASSAY_TRY(paths, files_of_index(index));
    } else if (fs::exists(folder / "model.safetensors", error)) {
      paths = {folder / "model.safetensors"};
    } else {
      for (const auto& entry : fs::directory_iterator(folder, error)) {
        if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
      }
      std::sort(paths.begin(), paths.end());
    }
    if (paths.empty()) {
      return base::fail(base::usage_error(folder.string(), "has no *.safetensors files",
                                          "convert the model to safetensors first"));
    }
    for (const fs::path& path : paths) {
      ASSAY_TRY(checkpoint::SafetensorsFile file, checkpoint::SafetensorsFile::open(path));
      result.files_.push_back(std::move(file));
    }
    return result;
  }

  // Called before tensors are listed, because a config may claim more of them than fit into memory.
  [[nodiscard]] base::Result<void> check_enough(const spec::ModelSpec& model,
                                                const std::string& where) const {
    std::size_t count = 0;
    for (const checkpoint::SafetensorsFile& file : files_) count += file.header().tensors.size();
    const double experts =
        static_cast<double>(model.moe_layers()) * static_cast<double>(model.experts);
    if (static_cast<double>(model.layers) + experts <= static_cast<double>(count)) return {};
    const std::string mixtures =
        model.is_moe() ? fmt::format(" with {} experts", model.experts) : "";
    return base::fail(base::usage_error(
        where, fmt::format("has {} tensors, but config.json describes {} layers{}", count,
                           model.layers, mixtures)));
  }

  // A tensor that the model has no parameter for would be lost: for example biases that the config
  // does not mention.
  [[nodiscard]] base::Result<void> check_all_wanted(const std::vector<HfTensor>& wanted,
                                                    const std::string& where) const {
    std::set<std::string_view> known;
    for (const HfTensor& tensor : wanted) {
      known.insert(tensor.name);
      known.insert(published_name(tensor.name));
    }
    for (const checkpoint::SafetensorsFile& file : files_) {
      for (const checkpoint::TensorPlace& place : file.header().tensors) {
        const std::string& name = place.info.name;
        if (known.contains(name) || is_computed(name)) continue;
        return base::fail(base::usage_error(where,
                                            fmt::format("{} belongs to no part of the model", name),
                                            "config.json describes another model than the files"));
      }
    }
    return {};
  }

  // Where a tensor is, if it has the expected shape.
  struct Found {
    const checkpoint::SafetensorsFile* file;
    const checkpoint::TensorPlace* place;
  };
  [[nodiscard]] base::Result<Found> find(const HfTensor& tensor, const std::string& where) const {
    for (const checkpoint::SafetensorsFile& file : files_) {
      const checkpoint::TensorPlace* place = file.find(tensor.name);
      if (place == nullptr) place = file.find(published_name(tensor.name));
      if (place == nullptr) continue;
      if (place->info.shape == tensor.shape()) return Found{&file, place};
      return base::fail(base::usage_error(
          where, fmt::format("{} has the shape {}, expected {}", tensor.name,
                             fmt::join(place->info.shape, "x"), fmt::join(tensor.shape(), "x"))));
    }
    return base::fail(base::usage_error(where, fmt::format("{} is missing", tensor.name)));
  }

  base::Result<std::vector<std::byte>> read(const HfTensor& tensor, checkpoint::TensorDtype& type,
                                            const std::string& where) const {
    ASSAY_TRY(const Found found, find(tensor, where));
    type = found.place->info.dtype;
    std::vector<std::byte> bytes(static_cast<std::size_t>(found.place->bytes()));
    ASSAY_TRY_VOID(found.file->read(*found.place, 0, bytes));
    if (!tensor.transposed) return bytes;
    return transposed(bytes, tensor.cols, tensor.count,
                      static_cast<std::size_t>(checkpoint::dtype_bytes(type)));
  }

 private:
  std::vector<checkpoint::SafetensorsFile> files_;
};

base::Result<std::vector<checkpoint::Tensor>> read_parameters(const fs::path& folder,
                                                              const spec::ModelSpec& model) {
  ASSAY_TRY(const HfFolder files, HfFolder::open(folder));
  ASSAY_TRY_VOID(files.check_enough(model, folder.string()));
  ASSAY_TRY(const std::vector<HfTensor> wanted, hf_tensors(model));
  for (const HfTensor& tensor : wanted) ASSAY_TRY_VOID(files.find(tensor, folder.string()));
  ASSAY_TRY_VOID(files.check_all_wanted(wanted, folder.string()));
  std::vector<checkpoint::Tensor> parameters;
  std::vector<std::byte> joined;  // the parts of one parameter are consecutive
  checkpoint::TensorDtype type = checkpoint::TensorDtype::kF32;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSAY_TRY(const std::vector<std::byte> bytes, files.read(wanted[i], type, folder.string()));
    joined.insert(joined.end(), bytes.begin(), bytes.end());
    if (i + 1 < wanted.size() && wanted[i + 1].parameter == wanted[i].parameter) continue;
    const std::int64_t rows = wanted[i].first + wanted[i].count;
    const auto shape =
        wanted[i].vector ? std::vector{rows * wanted[i].cols} : std::vector{rows, wanted[i].cols};
    parameters.push_back(
        checkpoint::owned_tensor({wanted[i].parameter, type, shape}, std::move(joined)));
    joined.clear();
  }
  return parameters;
}

}  // namespace

base::Result<std::vector<std::string>> export_hf(const checkpoint::Checkpoint& from,
                                                 const fs::path& folder) {
  ASSAY_TRY(const spec::ModelSpec model, model_of(from));
  ASSAY_TRY(const std::vector<HfTensor> wanted, hf_tensors(model));
  ASSAY_TRY(const checkpoint::TensorSet set, from.part("weights"));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return base::fail(base::unfit_error(folder, "cannot be created: " + error.message()));
  checkpoint::TensorDtype type = checkpoint::TensorDtype::kF32;
  std::vector<checkpoint::Tensor> tensors;
  for (const HfTensor& tensor : wanted) {
    const checkpoint::StoredTensor* found = set.find(tensor.parameter);
    if (found == nullptr) {
      return base::fail(base::usage_error(from.folder().string(),
                                          fmt::format("has no tensor {}", tensor.parameter)));
    }
    type = found->info.dtype;
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
  ASSAY_TRY_VOID(
      checkpoint::write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}}));
  ASSAY_TRY(const base::Json config,
            hf_config(model, type == checkpoint::TensorDtype::kBf16 ? "bfloat16" : "float32"));
  ASSAY_TRY_VOID(base::write_file(folder / "config.json", base::json_text(config)));
  std::vector<std::string> names = {"config.json", "model.safetensors"};
  ASSAY_TRY(const TokenizerRecord tokenizer, tokenizer_record(from));
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
  ASSAY_TRY(std::vector<checkpoint::Tensor> parameters, read_parameters(folder, model));
  checkpoint::Snapshot snapshot;
  snapshot.state.extra = {{"model", spec::model_toml(model)}};
  snapshot.state.data_cursor = {{"windows", 0U}};
  snapshot.parts.push_back({.name = "weights", .tensors = std::move(parameters)});
  ImportedHf imported;
  std::error_code ignored;
  if (!fs::exists(folder / "tokenizer.json", ignored)) {
    imported.tokenizer_note = "the folder has no tokenizer.json";
  } else if (const auto tokenizer =
                 data::load_tokenizer({.source = folder / "tokenizer.json",
                                       .added_as_text = hf_added_as_text(folder)})) {
    auto definition = std::make_shared<const std::string>((*tokenizer)->definition());
    add_tokenizer({.definition = std::move(definition), .bos = hf_bos(folder, **tokenizer)},
                  snapshot);
  } else {
    imported.tokenizer_note = tokenizer.error().line();
  }
  const fs::path root = run / "checkpoints";
  ASSAY_TRY_VOID(checkpoint::prepare_root(root));
  ASSAY_TRY(const checkpoint::Written written, checkpoint::write_checkpoint(root, snapshot));
  imported.checkpoint = written.folder;
  return imported;
}

}  // namespace assay::train
