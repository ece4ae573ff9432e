#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include "base/file.h"
#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "spec/load.h"
#include "spec/testing/model_shapes.h"
#include "step/parameter.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/data/load_tokenizer.h"
#include "train/float_bits.h"
#include "train/hf_config.h"
#include "train/hf_files.h"
#include "train/hf_model.h"
#include "train/hf_names.h"
#include "train/hf_tokenizer.h"
#include "train/resume.h"
#include "train/testing/join_master.h"

namespace assay::train {
namespace {

spec::ModelSpec llama_shape() {
  return {.vocab = 64,
          .dim = 32,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .ffn = 48,
          .context = 16,
          .rope_theta = 500000};
}

spec::ModelSpec gpt2_shape() {
  spec::ModelSpec m = spec::testing::gpt2_shape(llama_shape());
  m.rope_theta = 10000;
  return m;
}

spec::ModelSpec mixtral_shape() {
  spec::ModelSpec m = llama_shape();
  m.experts = 4;
  m.experts_per_token = 2;
  return m;
}

spec::ModelSpec qwen_mixture_shape() {
  spec::ModelSpec m = spec::testing::qwen_shape(mixtral_shape());
  m.layers = 5;
  m.moe_every = 2;
  m.dense_layers = 2;
  m.expert_ffn = 16;
  m.normalise_router = false;
  return m;
}

// Biases on queries, keys and values. No real model combines them with Llama 3.1's rotary
// positions, but that does not matter here.
spec::ModelSpec qwen2_shape() {
  spec::ModelSpec m = llama_shape();
  m.qkv_bias = true;
  m.norm_epsilon = 1e-6;
  m.tied = true;
  return m;
}

spec::ModelSpec scaled_llama_shape() {
  spec::ModelSpec m = llama_shape();
  m.rope_factor = 32;
  m.rope_low = 2;
  m.rope_high = 5;
  m.rope_context = 4096;
  m.head_dim = 12;
  return m;
}

std::vector<spec::ModelSpec> every_shape() {
  return {llama_shape(),       scaled_llama_shape(), spec::testing::qwen_shape(llama_shape()),
          qwen2_shape(),       gpt2_shape(),         mixtral_shape(),
          qwen_mixture_shape()};
}

TEST(HfNames, EveryElementOfEveryParameterIsNamedOnce) {
  for (const spec::ModelSpec& model : every_shape()) {
    const auto tensors = hf_tensors(model);
    ASSERT_TRUE(tensors.has_value());
    std::map<std::string, std::int64_t> elements;
    for (const HfTensor& tensor : *tensors) {
      EXPECT_EQ(elements[tensor.parameter], tensor.first * tensor.cols) << tensor.name;
      elements[tensor.parameter] += tensor.count * tensor.cols;
    }
    const auto parameters = step::list_parameters(model, spec::Optimizer::kAdamw);
    ASSERT_EQ(elements.size(), parameters.size());
    for (const step::Parameter& p : parameters) {
      EXPECT_EQ(elements[p.name], p.rows * p.cols) << p.name;
    }
  }
}

TEST(HfNames, AConfigDescribesTheModelItWasMadeOf) {
  for (const spec::ModelSpec& model : every_shape()) {
    const auto config = hf_config(model, "float32");
    ASSERT_TRUE(config.has_value());
    const auto back = model_from_hf(*config, "config.json");
    ASSERT_TRUE(back.has_value()) << back.error().line();
    EXPECT_EQ(spec::model_toml(*back), spec::model_toml(model));
  }
  EXPECT_FALSE(model_from_hf({{"model_type", "bert"}}, "c").has_value());
  EXPECT_FALSE(model_from_hf({{"model_type", "llama"}}, "c").has_value());
  spec::ModelSpec strange = llama_shape();
  strange.mlp = spec::Mlp::kRelu2;
  EXPECT_FALSE(hf_tensors(strange).has_value());
  spec::ModelSpec sigmoid = mixtral_shape();
  sigmoid.router = spec::Router::kSigmoid;
  EXPECT_FALSE(hf_tensors(sigmoid).has_value());
  base::Json without = *hf_config(mixtral_shape(), "float32");
  without["num_local_experts"] = 0;
  EXPECT_FALSE(model_from_hf(without, "c").has_value());
}

// The error for a config in which this key has another value; null removes the key.
std::string refused(const spec::ModelSpec& model, const char* key, const base::Json& value) {
  base::Json config = *hf_config(model, "float32");
  config[key] = value;
  if (value.is_null()) config.erase(key);
  const auto read = model_from_hf(config, "c.json");
  if (read) return "";
  const std::string line = read.error().line();
  EXPECT_EQ(read.error().code, base::ExitCode::kUsage) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 0) << line;
  return line;
}

TEST(HfNames, AConfigOfNoMixtureIsRefusedByTheKey) {
  using ::testing::HasSubstr;
  const spec::ModelSpec mixtral = mixtral_shape();
  const spec::ModelSpec qwen = qwen_mixture_shape();
  EXPECT_THAT(refused(mixtral, "num_local_experts", nullptr), HasSubstr("num_local_experts"));
  EXPECT_THAT(refused(mixtral, "num_local_experts", "four"), HasSubstr("num_local_experts"));
  EXPECT_THAT(refused(qwen, "num_experts", nullptr), HasSubstr("num_experts"));
  EXPECT_THAT(refused(qwen, "num_experts", -4), HasSubstr("num_experts"));
  EXPECT_THAT(refused(mixtral, "num_experts_per_tok", nullptr), HasSubstr("num_experts_per_tok"));
  EXPECT_THAT(refused(mixtral, "num_experts_per_tok", 5),
              HasSubstr("c.json: num_experts_per_tok is 5, but there are 4 experts"));
  EXPECT_THAT(refused(qwen, "num_experts_per_tok", 5),
              HasSubstr("c.json: num_experts_per_tok is 5, but there are 4 experts"));
  EXPECT_THAT(refused(qwen, "moe_intermediate_size", 0), HasSubstr("moe_intermediate_size"));
  EXPECT_THAT(refused(qwen, "decoder_sparse_step", 0), HasSubstr("decoder_sparse_step"));
  EXPECT_THAT(refused(qwen, "decoder_sparse_step", 6), HasSubstr("decoder_sparse_step"));
  EXPECT_THAT(refused(qwen, "mlp_only_layers", {1}), HasSubstr("mlp_only_layers"));
  EXPECT_THAT(refused(qwen, "mlp_only_layers", {0, 1, 2, 3, 4}), HasSubstr("mlp_only_layers"));
  EXPECT_THAT(refused(mixtral, "sliding_window", 15), HasSubstr("sliding_window"));
  EXPECT_EQ(refused(mixtral, "sliding_window", 16), "");  // its longest sequence
}

// transformers 5 writes Qwen's number of experts under Mixtral's name.
TEST(HfNames, QwensExpertsHaveTwoNames) {
  base::Json config = *hf_config(qwen_mixture_shape(), "float32");
  config["num_local_experts"] = config["num_experts"];
  config.erase("num_experts");
  const auto read = model_from_hf(config, "c.json");
  ASSERT_TRUE(read.has_value()) << read.error().line();
  EXPECT_EQ(read->experts, qwen_mixture_shape().experts);
}

TEST(HfNames, AConfigThatChangesTheResultsIsRefused) {
  using ::testing::HasSubstr;
  for (const spec::ModelSpec& model : {llama_shape(), mixtral_shape(), qwen_mixture_shape()}) {
    EXPECT_EQ(refused(model, "torch_dtype", "bfloat16"), "");
    EXPECT_THAT(refused(model, "hidden_act", "gelu"), HasSubstr("hidden_act"));
    EXPECT_THAT(refused(model, "attention_bias", true), HasSubstr("attention_bias"));
    EXPECT_THAT(refused(model, "use_sliding_window", true), HasSubstr("use_sliding_window"));
    EXPECT_THAT(refused(model, "rms_norm_eps", "small"), HasSubstr("rms_norm_eps"));
    EXPECT_THAT(refused(model, "rope_parameters", {{"rope_type", "yarn"}}), HasSubstr("yarn"));
    EXPECT_THAT(refused(model, "rope_scaling", {{"type", "linear"}, {"factor", 2}}),
                HasSubstr("rope_scaling: rope_type is \"linear\""));
    EXPECT_THAT(refused(model, "rope_scaling", {{"rope_type", "llama3"}, {"beta", 2}}),
                HasSubstr("beta is not understood"));
    EXPECT_THAT(refused(model, "quantization_config", {{"bits", 4}}),
                HasSubstr("quantization_config is not understood"));
    EXPECT_THAT(refused(model, "logit_scale", 0.5), HasSubstr("logit_scale is not understood"));
    EXPECT_THAT(refused(model, "layer_types", {"full_attention", "sliding_attention"}),
                HasSubstr("layer_types"));
    EXPECT_THAT(refused(model, "vocab_size", 1), HasSubstr("does not describe"));
  }
}

// A folder as transformers writes it: element i of a tensor is i, plus the tensor's number.
class HfFolderTest : public ::testing::Test {
 protected:
  void write(const spec::ModelSpec& of_files, const spec::ModelSpec& of_config,
             const std::string& without = "") {
    for (const auto& before : std::filesystem::directory_iterator(directory_.path())) {
      std::filesystem::remove_all(before);
    }
    std::vector<checkpoint::Tensor> tensors;
    const std::vector<HfTensor> listed = *hf_tensors(of_files);
    for (const HfTensor& tensor : listed) {
      if (tensor.name == without) continue;
      std::vector<float> values(static_cast<std::size_t>(tensor.count * tensor.cols));
      std::iota(values.begin(), values.end(), static_cast<float>(tensors.size()));
      const auto bytes = std::as_bytes(std::span(values));
      tensors.push_back(
          checkpoint::owned_tensor({tensor.name, checkpoint::TensorDtype::kF32, tensor.shape()},
                                   {bytes.begin(), bytes.end()}));
    }
    ASSERT_TRUE(checkpoint::write_safetensors(directory_.path() / "model.safetensors", tensors));
    ASSERT_TRUE(base::write_file(directory_.path() / "config.json",
                                 base::json_text(*hf_config(of_config, "float32"))));
  }
  [[nodiscard]] std::string import_error() const {
    const auto made = import_hf(directory_.path(), directory_.path() / "run");
    return made ? "" : made.error().line();
  }

  base::testing::MemoryDir directory_;
};

TEST_F(HfFolderTest, ImportsAndExportsMixtures) {
  for (const spec::ModelSpec& model : {mixtral_shape(), qwen_mixture_shape()}) {
    write(model, model);
    ASSERT_EQ(import_error(), "");
    const auto from = checkpoint::Checkpoint::open(directory_.path() / "run/checkpoints/step-0");
    ASSERT_TRUE(from.has_value());
    EXPECT_EQ(model_of(*from)->experts, model.experts);
    ASSERT_TRUE(export_hf(*from, directory_.path() / "back").has_value());
    const auto read = [&](const char* name) {
      return *base::read_file(directory_.path() / name, base::Bytes(1 << 24));
    };
    const auto before = checkpoint::SafetensorsFile::open(directory_.path() / "model.safetensors");
    const auto after =
        checkpoint::SafetensorsFile::open(directory_.path() / "back/model.safetensors");
    const std::vector<HfTensor> listed = *hf_tensors(model);
    for (const HfTensor& tensor : listed) {
      const checkpoint::TensorPlace* place = after->find(tensor.name);
      ASSERT_NE(place, nullptr) << tensor.name;
      std::vector<std::byte> left(static_cast<std::size_t>(place->bytes()));
      std::vector<std::byte> right = left;
      ASSERT_TRUE(before->read(*before->find(tensor.name), 0, left).has_value());
      ASSERT_TRUE(after->read(*place, 0, right).has_value());
      EXPECT_EQ(left, right) << tensor.name;
    }
    EXPECT_EQ(read("config.json"), read("back/config.json"));
  }
}

// As transformers does with the same files.
TEST_F(HfFolderTest, KnowsTheTokenBeforeATextFromTheFolder) {
  constexpr data::TokenId kEnd = 424;  // <|end|>
  base::Json tokenizer =
      base::Json::parse(std::ifstream(std::string(ASSAY_TOKENIZER_VECTORS) + "/llama3.json"));
  const auto bos_with = [&](const base::Json& processor, const base::Json& config) {
    tokenizer["post_processor"] = processor;
    EXPECT_TRUE(base::write_file(directory_.path() / "tokenizer.json", tokenizer.dump()));
    EXPECT_TRUE(base::write_file(directory_.path() / "tokenizer_config.json", config.dump()));
    const auto loaded = data::load_tokenizer({.source = directory_.path() / "tokenizer.json"});
    EXPECT_TRUE(loaded.has_value());
    return hf_bos(directory_.path(), **loaded);
  };
  const base::Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const base::Json token = {{"SpecialToken", {{"id", "<|end|>"}, {"type_id", 0}}}};
  const auto with_template = [](const base::Json& single) {
    return base::Json{{"type", "TemplateProcessing"}, {"single", single}};
  };
  const base::Json before = with_template(base::Json::array({token, text}));
  const base::Json byte_level = {{"type", "ByteLevel"}, {"trim_offsets", false}};
  const base::Json llama3 = {{"type", "Sequence"},
                             {"processors", base::Json::array({byte_level, before})}};
  const base::Json names_it = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                               {"bos_token", "<|end|>"}};
  EXPECT_EQ(bos_with(before, base::Json::object()), kEnd);
  EXPECT_EQ(bos_with(llama3, names_it), kEnd);
  // A name alone, as GPT-2 has it, or a token after the text, adds nothing before it.
  EXPECT_EQ(bos_with(byte_level, names_it), std::nullopt);
  EXPECT_EQ(bos_with(nullptr, names_it), std::nullopt);
  EXPECT_EQ(bos_with(with_template(base::Json::array({text, token})), names_it), std::nullopt);
  // Llama's class makes its own template.
  base::Json llama = {{"tokenizer_class", "LlamaTokenizerFast"},
                      {"add_bos_token", true},
                      {"bos_token", {{"content", "<|end|>"}, {"lstrip", false}}}};
  EXPECT_EQ(bos_with(byte_level, llama), kEnd);
  llama["add_bos_token"] = false;
  EXPECT_EQ(bos_with(before, llama), std::nullopt);
}

TEST_F(HfFolderTest, NamesWhatIsMissingOfAnExpert) {
  using ::testing::HasSubstr;
  const char* const w1 = "model.layers.1.block_sparse_moe.experts.3.w1.weight";
  write(mixtral_shape(), mixtral_shape(), w1);
  EXPECT_THAT(import_error(), HasSubstr(std::string(w1) + " is missing"));
  const char* const down = "model.layers.3.mlp.experts.0.down_proj.weight";
  write(qwen_mixture_shape(), qwen_mixture_shape(), down);
  EXPECT_THAT(import_error(), HasSubstr(std::string(down) + " is missing"));
  const char* const gate = "model.layers.0.block_sparse_moe.gate.weight";
  write(mixtral_shape(), mixtral_shape(), gate);
  EXPECT_THAT(import_error(), HasSubstr(std::string(gate) + " is missing"));
}

TEST_F(HfFolderTest, FilesOfAnotherNumberOfExpertsThanTheConfigAreRefused) {
  for (const std::int64_t experts : {3, 5}) {
    spec::ModelSpec other = mixtral_shape();
    other.experts = experts;
    write(other, mixtral_shape());
    EXPECT_THAT(import_error(), ::testing::HasSubstr(fmt::format(
                                    "gate.weight has the shape {}x32, expected 4x32", experts)));
  }
}

TEST_F(HfFolderTest, MoreExpertsThanAnyFileHasAreRefusedAtOnce) {
  write(mixtral_shape(), mixtral_shape());
  base::Json config = *hf_config(mixtral_shape(), "float32");
  for (const char* key : {"num_local_experts", "num_hidden_layers"}) {
    base::Json large = config;
    large[key] = std::int64_t{1} << 62;
    ASSERT_TRUE(base::write_file(directory_.path() / "config.json", base::json_text(large)));
    EXPECT_THAT(import_error(), ::testing::HasSubstr("tensors, but config.json describes"));
  }
}

TEST(SplitMaster, IsExactAndItsHighHalfIsTheNearestBf16) {
  std::uint32_t word = 12345;
  for (int i = 0; i < 200000; ++i) {
    word = word * 1664525U + 1013904223U;
    const auto value = std::bit_cast<float>(word);
    if (!std::isfinite(value) || (word & 0x7F000000U) == 0x7F000000U) continue;
    const SplitMaster pair = split_master(value);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(join_master(pair)), word);
    const float high = from_bf16(pair.high);
    const float error = std::fabs(high - value);
    const float step = std::fabs(from_bf16(static_cast<std::uint16_t>(pair.high ^ 1U)) - high);
    ASSERT_LE(error, step);
  }
}

}  // namespace
}  // namespace assay::train
