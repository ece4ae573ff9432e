// Model folders that contradict themselves, and weights of other types than those we train from.
#include "train/hf_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <random>

#include "base/file.h"
#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "spec/load.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/float_bits.h"
#include "train/hf_config.h"
#include "train/hf_files.h"
#include "train/hf_names.h"

namespace assay::train {
namespace {

using checkpoint::TensorDtype;
using ::testing::HasSubstr;

spec::ModelSpec hf_shape(bool tied = false) {
  return {.vocab = 64,
          .dim = 32,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn = 48,
          .context = 16,
          .tied = tied};
}

using NamedTensors = std::map<std::string, checkpoint::Tensor>;

// Any bits, so also those of infinities and NaNs.
checkpoint::Tensor tensor_of(const std::string& name, const std::vector<std::int64_t>& extents,
                             TensorDtype type, std::uint64_t seed) {
  checkpoint::TensorInfo info{name, type, extents};
  std::mt19937 random(static_cast<std::uint32_t>(seed));
  std::vector<std::byte> bytes(static_cast<std::size_t>(*info.bytes()));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return checkpoint::owned_tensor(std::move(info), std::move(bytes));
}

class HfContradictions : public ::testing::Test {
 protected:
  NamedTensors tensors_of(const spec::ModelSpec& model, TensorDtype type) {
    NamedTensors tensors;
    const std::vector<HfTensor> listed = *hf_tensors(model);
    for (const HfTensor& one : listed) {
      tensors.emplace(one.name, tensor_of(one.name, one.shape(), type, tensors.size()));
    }
    return tensors;
  }
  void write(const std::string& file, const NamedTensors& tensors) {
    std::vector<checkpoint::Tensor> list;
    for (const auto& [name, tensor] : tensors) list.push_back(tensor);
    ASSERT_TRUE(checkpoint::write_safetensors(folder_ / file, list));
  }
  void write(const spec::ModelSpec& model, const NamedTensors& tensors) {
    for (const auto& before : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::remove_all(before);
    }
    write("model.safetensors", tensors);
    write_config(*hf_config(model, "float16"));
  }
  void write_config(const base::Json& config) {
    ASSERT_TRUE(base::write_file(folder_ / "config.json", base::json_text(config)));
  }
  [[nodiscard]] std::string import_error() const {
    const auto made = import_hf(folder_, folder_ / "run");
    return made ? "" : made.error().line();
  }
  // A tensor of the imported checkpoint.
  std::vector<float> imported(const std::string& name, TensorDtype expected) {
    const auto from = checkpoint::Checkpoint::open(folder_ / "run/checkpoints/step-0");
    const auto set = from->part("weights");
    const checkpoint::StoredTensor* found = set->find(name);
    EXPECT_EQ(found->info.dtype, expected) << name;
    std::vector<std::byte> bytes(static_cast<std::size_t>(*found->info.bytes()));
    EXPECT_TRUE(set->read(*found, 0, bytes));
    return *to_floats(bytes, found->info.dtype);
  }

  base::testing::MemoryDir directory_;
  std::filesystem::path folder_ = directory_.path();
};

TEST_F(HfContradictions, ATiedHeadMustEqualTheEmbedding) {
  NamedTensors tensors = tensors_of(hf_shape(), TensorDtype::kF32);
  write(hf_shape(/*tied=*/true), tensors);
  EXPECT_THAT(
      import_error(),
      HasSubstr("lm_head.weight differs from model.embed_tokens.weight, but config.json has "
                "tie_word_embeddings: true; false keeps the head"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  tensors["lm_head.weight"].data = tensors["model.embed_tokens.weight"].data;
  write(hf_shape(/*tied=*/true), tensors);
  EXPECT_EQ(import_error(), "");
  tensors.erase("lm_head.weight");
  write(hf_shape(/*tied=*/true), tensors);
  EXPECT_EQ(import_error(), "");
  write(hf_shape(), tensors);
  EXPECT_THAT(import_error(), HasSubstr("lm_head.weight is missing; with tie_word_embeddings"));
}

// Every element, bit for bit, against a conversion that has nothing in common with ours.
TEST_F(HfContradictions, HalfPrecisionIsConvertedExactly) {
  const NamedTensors tensors = tensors_of(hf_shape(), TensorDtype::kF16);
  write(hf_shape(), tensors);
  ASSERT_EQ(import_error(), "");
  const std::vector<float> found = imported("embedding", TensorDtype::kF32);
  const checkpoint::Tensor& stored = tensors.at("model.embed_tokens.weight");
  ASSERT_EQ(found.size() * 2, stored.data.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected =
        checkpoint::element_value(TensorDtype::kF16, stored.data.subspan(2 * i, 2));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found[i]));
    } else {
      EXPECT_EQ(found[i], expected);
    }
  }
}

TEST_F(HfContradictions, OneParameterOfSeveralTypesIsFp32) {
  NamedTensors tensors = tensors_of(hf_shape(), TensorDtype::kBf16);
  const std::string query = "model.layers.0.self_attn.q_proj.weight";
  tensors[query] = tensor_of(query, {32, 32}, TensorDtype::kF16, 5);
  write(hf_shape(), tensors);
  ASSERT_EQ(import_error(), "");
  imported("layers.1.qkv", TensorDtype::kBf16);
  const std::vector<float> found = imported("layers.0.qkv", TensorDtype::kF32);
  const auto key =
      *to_floats(tensors["model.layers.0.self_attn.k_proj.weight"].data, TensorDtype::kBf16);
  const auto own = *to_floats(tensors[query].data, TensorDtype::kF16);
  EXPECT_EQ(std::memcmp(found.data(), own.data(), own.size() * 4), 0);
  EXPECT_EQ(std::memcmp(found.data() + own.size(), key.data(), key.size() * 4), 0);
  // As bf16 it would lose bits again on the way back.
  const auto from = checkpoint::Checkpoint::open(folder_ / "run/checkpoints/step-0");
  ASSERT_TRUE(export_hf(*from, folder_ / "back"));
  const std::string config = *base::read_file(folder_ / "back/config.json", base::Bytes(1 << 20));
  EXPECT_THAT(config, HasSubstr("float32"));
}

TEST_F(HfContradictions, EachHasOneLine) {
  const NamedTensors good = tensors_of(hf_shape(), TensorDtype::kF32);
  const base::Json config = *hf_config(hf_shape(), "float32");
  const struct {
    const char* key;
    int value;
    const char* line;
  } configs[] = {
      {"vocab_size", 65, "model.embed_tokens.weight has the shape 64x32, expected 65x32"},
      {"num_attention_heads", 8, "q_proj.weight has the shape 32x32, expected 64x32"},
      {"num_key_value_heads", 4, "k_proj.weight has the shape 16x32, expected 32x32"},
      {"num_hidden_layers", 1, "model.layers.1.input_layernorm.weight belongs to no part"},
      {"num_hidden_layers", 3, "model.layers.2.input_layernorm.weight is missing"},
      {"intermediate_size", 47, "gate_proj.weight has the shape 48x32, expected 47x32"}};
  for (const auto& one : configs) {
    write(hf_shape(), good);
    base::Json changed = config;
    changed[one.key] = one.value;
    write_config(changed);
    EXPECT_THAT(import_error(), HasSubstr(fmt::format("{}", one.line)));
    EXPECT_THAT(import_error(), HasSubstr("; config.json describes another model than the files"));
  }
  NamedTensors other = good;
  other["model.norm.weight"] = tensor_of("model.norm.weight", {32}, TensorDtype::kI32, 1);
  write(hf_shape(), other);
  EXPECT_THAT(import_error(), HasSubstr("model.norm.weight is stored as I32; convert the model"));
}

TEST_F(HfContradictions, FilesMustBeThoseOfOneModel) {
  const NamedTensors good = tensors_of(hf_shape(), TensorDtype::kF32);
  write(hf_shape(), good);
  std::filesystem::rename(folder_ / "model.safetensors", folder_ / "a.safetensors");
  write("b.safetensors", {*good.begin()});
  EXPECT_THAT(import_error(), HasSubstr(" is in a.safetensors and in b.safetensors; keep the "));

  std::filesystem::remove(folder_ / "b.safetensors");
  base::Json index;
  for (const auto& [name, tensor] : good) index["weight_map"][name] = "a.safetensors";
  index["weight_map"]["lm_head.weight"] = "c.safetensors";
  ASSERT_TRUE(base::write_file(folder_ / "model.safetensors.index.json", index.dump()));
  EXPECT_THAT(import_error(),
              HasSubstr("model.safetensors.index.json: names c.safetensors, which is not there; "));
}

TEST_F(HfContradictions, ATokenizerOfMoreTokensThanTheModelIsLeftOut) {
  write(hf_shape(), tensors_of(hf_shape(), TensorDtype::kF32));
  std::filesystem::copy_file(std::string(ASSAY_TOKENIZER_VECTORS) + "/llama3.json",
                             folder_ / "tokenizer.json");
  const auto made = import_hf(folder_, folder_ / "run");
  ASSERT_TRUE(made);
  EXPECT_THAT(made->tokenizer_note, HasSubstr("tokens, but config.json has a vocab_size of 64"));
}

TEST_F(HfContradictions, AJobTrainsWhatWasImported) {
  write(hf_shape(), tensors_of(hf_shape(), TensorDtype::kF32));
  const auto made = import_hf(folder_, folder_ / "run");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->job, folder_ / "run/job.toml");
  const auto job = spec::load(made->job.string());
  ASSERT_TRUE(job) << job.error().line();
  const auto& read = std::get<spec::JobSpec>(job->spec);
  EXPECT_EQ(spec::model_toml(read.model), spec::model_toml(hf_shape()));
  EXPECT_EQ(read.batch.sequence, 16);
  // Neither a job that was edited nor a run that went on is replaced.
  ASSERT_TRUE(base::write_file(made->job, "edited"));
  EXPECT_THAT(import_error(), HasSubstr("run/job.toml: already exists with another content"));
  std::filesystem::remove(made->job);
  std::filesystem::rename(folder_ / "run/checkpoints/step-0", folder_ / "run/checkpoints/step-7");
  EXPECT_THAT(import_error(), HasSubstr("already has checkpoints of another run"));
}

TEST(HalfPrecision, EveryNumberIsExact) {
  for (std::uint32_t bits = 0; bits < 1U << 16U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double expected =
        checkpoint::element_value(TensorDtype::kF16, std::as_bytes(std::span(&half, 1)));
    const float found = from_fp16(half);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found));
    } else {
      ASSERT_EQ(found, expected);
    }
    ASSERT_EQ(std::signbit(found), bits >> 15U != 0);
  }
}

}  // namespace
}  // namespace assay::train
