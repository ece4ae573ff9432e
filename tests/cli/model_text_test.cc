// Text in and out of models: `assay data train-tokenizer`, the tokenizer on its way from shards
// through checkpoints, `assay generate` and `assay score`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>
#include <map>
#include <numbers>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;

class ModelText : public ::testing::Test {
 protected:
  support::ProcessResult assay(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), support::program());
    return support::run({arguments, "", directory_.path()});
  }
  Json json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const auto outcome = assay(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  }
  support::ProcessResult train(const std::vector<std::string>& sets,
                               std::vector<std::string> more = {}) {
    std::vector<std::string> list = {"train", "demo", "--device", "cpu", "--quiet", "--out", "run"};
    for (const char* set :
         {"model.dim=32", "model.layers=1", "model.heads=4", "model.kv_heads=2", "model.ffn=64",
          "model.context=32", "batch.sequence=32", "batch.micro_batch=2", "train.steps=2"}) {
      list.insert(list.end(), {"--set", set});
    }
    for (const std::string& set : sets) list.insert(list.end(), {"--set", set});
    list.insert(list.end(), more.begin(), more.end());
    return assay(list);
  }
  void refused(const support::ProcessResult& outcome, const std::string& line) {
    EXPECT_EQ(outcome.exit_code, 64);
    EXPECT_EQ(outcome.err, "assay: " + line + "\n");
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(directory_.path() / name, std::ios::binary) << text;
  }
  // A tokenizer of 300 tokens, trained on some letters, and a shard of the text with it.
  std::string make(const std::string& name, const std::string& text, const std::string& document) {
    write(name + "-words.txt", text);
    write(name + ".txt", document);
    json({"data", "train-tokenizer", name + "-words.txt", "-o", name + ".json", "--vocab", "300"});
    json(
        {"data", "tokenize", name + ".txt", "-o", name + ".tokens", "--tokenizer", name + ".json"});
    const Json shard = json({"data", "info", name + ".tokens", "--verify"})["shards"][0];
    EXPECT_EQ(shard["bos"], 299);
    return shard["tokenizer"].get<std::string>().substr(0, 8);
  }

  base::testing::TempDir directory_;
};

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text + std::to_string(i);
  return all;
}

TEST_F(ModelText, TheTokenizerGoesWithTheModel) {
  const std::string text = repeated(" the assayer weighs the ore again", 200);
  const std::string one = make("a", text, text);
  const std::string other = make("b", repeated(" quite other words, und andere", 200), text);
  ASSERT_NE(one, other);
  for (const char* name : {"a.json", "a.tiktoken"}) {  // for whoever may read the shard
    EXPECT_EQ(fs::status(directory_.path() / name).permissions(),
              fs::status(directory_.path() / "a.tokens").permissions());
  }
  const std::vector<std::string> sets = {"model.vocab=300", "data.train=a.tokens"};
  // Long enough to know which letters there are: others would not be valid text.
  ASSERT_EQ(train({sets[0], sets[1], "train.steps=20", "train.warmup_steps=1",
                   "train.learning_rate=0.01"})
                .exit_code,
            0);

  // What is generated is spelled by the tokenizer that the data was made with.
  std::map<int, std::string> spelled;
  const Json file = Json::parse(std::ifstream(directory_.path() / "a.json"));
  for (const auto& [word, id] : file["model"]["vocab"].items()) spelled[id.get<int>()] = word;
  const Json made =
      json({"generate", "run", "--prompt", "the", "--tokens", "12", "--temperature", "0"});
  std::string expected;
  for (const Json& token : made["tokens"]) expected += spelled[token.get<int>()];
  std::string found = made["text"].get<std::string>();
  for (std::size_t at = 0; (at = found.find(' ', at)) != std::string::npos;)
    found.replace(at, 1, "\u0120");
  EXPECT_EQ(found, expected);
  EXPECT_EQ(made["tokens"].size(), 12U);

  const Json score = json({"score", "run", "a.txt"});
  EXPECT_EQ(score["bytes"], text.size());
  EXPECT_EQ(score["documents"], 1);
  EXPECT_EQ(score["tokens"].get<std::uint64_t>() + 1, json({"data", "info", "a.tokens"})["tokens"]);
  EXPECT_LT(score["loss"].get<double>(), std::log(300.0));
  EXPECT_GT(score["loss"].get<double>(), 0);
  EXPECT_NEAR(score["bits_per_byte"].get<double>() * static_cast<double>(text.size()),
              score["loss"].get<double>() * score["tokens"].get<double>() / std::numbers::ln2,
              1e-6);
  EXPECT_EQ(json({"score", "run", "a.tokens"})["loss"], score["loss"]);

  const std::string folder = "run/checkpoints/step-20";
  refused(train({sets[0], "data.train=b.tokens", "train.steps=30"}, {"--resume"}),
          fmt::format("b.tokens: was made with the tokenizer {}, but {} was trained with {}; "
                      "tokenize with `--tokenizer {}/tokenizer.json`",
                      other, folder, one, folder));
  refused(assay({"score", "run", "b.tokens"}),
          fmt::format("b.tokens: was made with the tokenizer {}, but {} was trained with {}; "
                      "tokenize with `--tokenizer {}/tokenizer.json`",
                      other, folder, one, folder));
  refused(assay({"generate", "run", "--tokenizer", "b.json"}),
          "generate --tokenizer b.json: is not the tokenizer that run/checkpoints/step-20 was "
          "trained with; leave --tokenizer out: the checkpoint has its own");
  // The checkpoint's own file is the same tokenizer.
  EXPECT_EQ(json({"data", "tokenize", "b.txt", "-o", "c.tokens", "--tokenizer",
                  folder + "/tokenizer.json"})["blake3"],
            json({"data", "info", "a.tokens"})["shards"][0]["blake3"]);

  const auto exported = json({"checkpoint", "export-hf", "run", "hf"});
  EXPECT_EQ(exported["files"].size(), 4U);
  const Json config = Json::parse(std::ifstream(directory_.path() / "hf/tokenizer_config.json"));
  EXPECT_EQ(config["bos_token"], "<|bos|>");
  EXPECT_TRUE(json({"checkpoint", "import-hf", "hf", "imported"})["tokenizer"]);
  EXPECT_EQ(json({"score", "imported", "a.tokens"})["loss"], score["loss"]);
  // The text begins with the same token there.
  EXPECT_EQ(json({"score", "imported", "a.txt"})["tokens"], score["tokens"]);
  EXPECT_EQ(json({"score", "imported", "a.txt"})["loss"], score["loss"]);
  EXPECT_EQ(json({"generate", "imported", "--prompt", "the", "--tokens", "12", "--temperature",
                  "0"})["tokens"],
            made["tokens"]);

  // Shards that do not belong together.
  fs::create_directory(directory_.path() / "both");
  for (const char* name : {"a.tokens", "b.tokens"}) {
    fs::copy_file(directory_.path() / name, directory_.path() / "both" / name);
  }
  fs::remove_all(directory_.path() / "run");
  refused(train({sets[0], "data.train=both"}),
          fmt::format("both/b.tokens: was made with the tokenizer {}, but both/a.tokens with {}; "
                      "shards of one set must be made with the same tokenizer",
                      other, one));
  refused(train({sets[0], sets[1], "data.validation=b.tokens", "train.validate_every=1"}),
          fmt::format("b.tokens: was made with the tokenizer {}, but a.tokens with {}; data.train "
                      "and data.validation must be made with the same tokenizer",
                      other, one));
}

// Mixed and packed data is read from one position, too.
TEST_F(ModelText, MixturesOfPackedDocumentsAreResumedExactly) {
  std::string rows;
  for (int i = 0; i < 60; ++i) {
    rows +=
        fmt::format("{{\"text\": \"{}\"}}\n", std::string(static_cast<std::size_t>(3 + i), 'a'));
  }
  write("a.jsonl", rows);
  write("b.txt", repeated("other text ", 100));
  for (const char* name : {"a", "b"}) {
    const std::string file = std::string(name) + (name[0] == 'a' ? ".jsonl" : ".txt");
    json({"data", "tokenize", file, "-o", std::string(name) + ".tokens", "--bos", "256"});
  }
  const std::vector<std::string> sets = {"model.vocab=257", "data.mix=a.tokens=3, b.tokens=1",
                                         "data.pack=documents", "train.steps=6"};
  ASSERT_EQ(train(sets).exit_code, 0);
  const auto whole = json({"checkpoint", "list", "run"})["checkpoints"].back();
  fs::remove_all(directory_.path() / "run");
  ASSERT_EQ(train(sets, {"--stop-after", "3"}).exit_code, 0);
  auto other = sets;
  other[1] = "data.mix=a.tokens=2, b.tokens=1";
  const auto changed = train(other, {"--resume"});
  EXPECT_EQ(changed.exit_code, 64);
  EXPECT_THAT(changed.err,
              HasSubstr("step-3: was trained on other data: data.mix a.tokens=3, b.tokens=1 -> "
                        "a.tokens=2, b.tokens=1; --new-data goes on with this"));
  ASSERT_EQ(train(sets, {"--resume"}).exit_code, 0);
  const auto resumed = json({"checkpoint", "list", "run"})["checkpoints"].back();
  EXPECT_EQ(resumed["step"], 6);
  EXPECT_EQ(resumed["files"], whole["files"]);
  refused(train({"data.mix=a.tokens"}, {"--resume"}),
          "--set data.mix=a.tokens: data.mix: 'a.tokens' is not a path, '=' and a positive weight; "
          "for example \"web=0.7, code=0.3\"");
}

// A token before documents that the file does not have was added to the checkpoint's.
TEST_F(ModelText, TheFileOfTheTokenizerIsTheTokenizer) {
  write("words.txt", repeated(" the assayer weighs the ore again", 200));
  json({"data", "train-tokenizer", "words.txt", "-o", "a.json", "--vocab", "300"});
  for (const char* tokenizer : {"a.json", "bytes"}) {
    fs::remove_all(directory_.path() / "run");
    json({"data", "tokenize", "words.txt", "-o", "a.tokens", "--tokenizer", tokenizer, "--bos",
          "310", "--append-eos", "311"});
    ASSERT_EQ(train({"model.vocab=312", "data.train=a.tokens"}).exit_code, 0);
    const Json score = json({"score", "run", "words.txt"});
    EXPECT_EQ(json({"score", "run", "words.txt", "--tokenizer", tokenizer})["loss"], score["loss"]);
    EXPECT_EQ(json({"score", "run", "a.tokens"})["loss"], score["loss"]);
  }
  refused(assay({"score", "run", "words.txt", "--tokenizer", "a.json"}),
          "score --tokenizer a.json: is not the tokenizer that run/checkpoints/step-2 was trained "
          "with; leave --tokenizer out: the checkpoint has its own");
  // There is no option for the pattern here.
  refused(assay({"score", "run", "words.txt", "--tokenizer", "a.tiktoken"}),
          "a.tiktoken: a tiktoken file does not define how text is split into words; give a "
          "tokenizer.json");
}

// Special tokens in documents that were ordinary text in training are that when a text is scored.
TEST_F(ModelText, HowSpecialTokensAreReadIsRemembered) {
  write("words.txt", repeated(" the assayer weighs the ore again", 200));
  write("a.txt", repeated("weigh <|bos|> again ", 40));
  json({"data", "train-tokenizer", "words.txt", "-o", "a.json", "--vocab", "300"});
  json({"data", "tokenize", "a.txt", "-o", "a.tokens", "--tokenizer", "a.json",
        "--special-as-text"});
  ASSERT_EQ(train({"model.vocab=300", "data.train=a.tokens"}).exit_code, 0);
  const Json shard = json({"score", "run", "a.tokens"});
  const auto same = [&](const Json& score) {
    EXPECT_EQ(score["tokens"], shard["tokens"]);
    EXPECT_EQ(score["loss"], shard["loss"]);
  };
  same(json({"score", "run", "a.txt"}));
  same(json({"score", "run", "a.txt", "--tokenizer", "a.json"}));
  json({"checkpoint", "export-hf", "run", "hf"});
  json({"checkpoint", "import-hf", "hf", "imported"});
  same(json({"score", "imported", "a.txt"}));
  same(json({"score", "imported", "a.tokens"}));
  const Json file = Json::parse(std::ifstream(directory_.path() / "hf/tokenizer.json"));
  EXPECT_FALSE(file["added_tokens"][0].contains("as_text"));  // transformers has another place
}

// The same number by another path: the trainer's own validation.
TEST_F(ModelText, AScoreIsTheValidationLoss) {
  json({"data", "synth", "-o", "v.tokens", "--tokens", "1025", "--vocab", "256"});
  ASSERT_EQ(train({"data.train=v.tokens", "data.validation=v.tokens", "train.validate_every=2",
                   "train.validate_tokens=1024"})
                .exit_code,
            0);
  std::ifstream metrics(directory_.path() / "run/metrics.jsonl");
  double validation = 0;
  for (std::string line; std::getline(metrics, line);) {
    const Json step = Json::parse(line);
    if (step.contains("validation_loss")) validation = step["validation_loss"].get<double>();
  }
  ASSERT_GT(validation, 0);
  const Json score = json({"score", "run", "v.tokens"});
  EXPECT_EQ(score["tokens"], 1024);
  EXPECT_NEAR(score["loss"].get<double>(), validation, 1e-5);
  EXPECT_EQ(json({"score", "run", "v.tokens", "--tokens", "100"})["tokens"], 100);
}

// Whatever they are called.
TEST_F(ModelText, ShardsAreNotDocuments) {
  write("a.txt", repeated("weigh it again ", 40));
  write("b.txt", repeated("and again ", 30));
  for (const char* name : {"a", "b"}) {
    json({"data", "tokenize", std::string(name) + ".txt", "-o", std::string(name) + ".tokens"});
  }
  fs::copy_file(directory_.path() / "b.tokens", directory_.path() / "b.bin");
  ASSERT_EQ(train({"data.train=a.tokens"}).exit_code, 0);
  const Json texts = json({"score", "run", "a.txt", "b.txt"});
  EXPECT_EQ(texts["documents"], 2);
  for (const char* second : {"b.tokens", "b.bin"}) {
    const Json shards = json({"score", "run", "a.tokens", second});
    EXPECT_EQ(shards["tokens"], texts["tokens"]);
    EXPECT_EQ(shards["bytes"], texts["bytes"]);
    EXPECT_EQ(shards["documents"], 2);
    EXPECT_NEAR(shards["loss"].get<double>(), texts["loss"].get<double>(), 1e-6);
    EXPECT_EQ(json({"score", "run", "a.tokens", second, "--tokens", "700"})["tokens"], 700);
  }
  refused(assay({"score", "run", "a.txt", "b.bin"}),
          "b.bin: is a token shard, but other files are documents; score them separately");
  const std::string line =
      "b.bin: has tokens, not documents; `assay data info` says what is in a shard";
  refused(assay({"data", "tokenize", "a.txt", "b.bin", "-o", "c.tokens"}), line);
  refused(assay({"data", "train-tokenizer", "b.bin", "-o", "c.json"}), line);
}

TEST_F(ModelText, AnInterruptedScoreLeavesNothingBehind) {
  json({"data", "synth", "-o", "v.tokens", "--tokens", "1025", "--vocab", "256"});
  ASSERT_EQ(train({"data.train=v.tokens"}).exit_code, 0);
  fs::create_directory(directory_.path() / "tmp");
  // Gigabytes that take no room, and a second of them. The signal comes twice, as from timeout(1),
  // which signals its child and then the process group.
  const std::string command =
      "truncate -s 8G big.txt && { TMPDIR=$PWD/tmp " + support::program() +
      " score run big.txt & sleep 1; kill $!; sleep 0.01; kill $!; wait $!; }";
  EXPECT_EQ(support::run({{"sh", "-c", command}, "", directory_.path()}).exit_code, 128 + SIGTERM);
  EXPECT_TRUE(fs::is_empty(directory_.path() / "tmp"));
  EXPECT_EQ(json({"score", "run", "big.txt", "--tokens", "100"})["tokens"], 100);
}

// What is left of a row must not take the place of the next document in an expert.
TEST_F(ModelText, AScoreIsThatOfEachDocumentAloneWhereExpertsAreFull) {
  write("a.txt", "weigh it");
  write("b.txt", "and then weigh it again");
  write("c.txt", repeated("ore ", 60));
  json({"data", "tokenize", "c.txt", "-o", "c.tokens"});
  ASSERT_EQ(train({"data.train=c.tokens", "model.experts=4", "model.experts_per_token=2",
                   "model.capacity=0.5", "model.context=64"})
                .exit_code,
            0);
  const auto nats = [&](const std::vector<std::string>& files) {
    std::vector<std::string> arguments = {"score", "run"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    const Json score = json(arguments);
    return score["loss"].get<double>() * score["tokens"].get<double>();
  };
  EXPECT_NEAR(nats({"a.txt", "b.txt", "c.txt"}),
              nats({"a.txt"}) + nats({"b.txt"}) + nats({"c.txt"}), 1e-3);
}

TEST_F(ModelText, DamagedListsOfDocumentsAreAnError) {
  write("a.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
  json({"data", "tokenize", "a.jsonl", "-o", "a.tokens"});
  json({"data", "synth", "-o", "v.tokens", "--tokens", "1025", "--vocab", "256"});
  ASSERT_EQ(train({"data.train=v.tokens"}).exit_code, 0);
  EXPECT_EQ(json({"score", "run", "a.tokens"})["documents"], 2);
  // Six tokens of two bytes, zeros to a multiple of 8, the first beginning; then the second.
  std::fstream(directory_.path() / "a.tokens", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(256 + 16 + 8 + 6)
      .put('\1');
  const auto outcome = assay({"score", "run", "a.tokens"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err,
            "assay: a.tokens: document 1 cannot begin at token 281474976710659; the file was "
            "changed after it was written\n");
}

TEST_F(ModelText, DamagedShardsHaveNoScore) {
  json({"data", "synth", "-o", "v.tokens", "--tokens", "1025", "--vocab", "256"});
  ASSERT_EQ(train({"data.train=v.tokens"}).exit_code, 0);
  EXPECT_EQ(json({"score", "run", "v.tokens"})["tokens"], 1024);
  std::fstream(directory_.path() / "v.tokens", std::ios::in | std::ios::out | std::ios::binary)
      .seekp(256 + 100)
      .put('\7');
  const auto outcome = assay({"score", "run", "v.tokens"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("assay: v.tokens: byte 256: the BLAKE3 of the tokens is "));
}

// A bit of the weights; lengths and headers are as they were.
TEST_F(ModelText, WeightsThatWereDamagedAreNotUsed) {
  write("a.txt", "some words to score");
  ASSERT_EQ(train({"checkpoint.every=1"}).exit_code, 0);
  const std::string damaged = "run/checkpoints/step-2/weights.safetensors";
  const std::string older = "run/checkpoints/step-1";
  const Json before = json({"score", older, "a.txt"});
  std::fstream file(directory_.path() / damaged, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const int byte = file.get();
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(byte ^ 0x40));
  file.close();

  const std::string step = "run/checkpoints/step-2";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"checkpoint", "export-hf", step, "hf"},
        {"checkpoint", "export-hf", "run", "hf"},
        {"score", step, "a.txt"},
        {"generate", step, "--prompt", "a", "--tokens", "3"}}) {
    const auto outcome = assay(command);
    EXPECT_EQ(outcome.exit_code, 1) << command[0];
    EXPECT_EQ(outcome.err, "assay: " + damaged +
                               ": differs from what was written; the checkpoint is damaged; use "
                               "another\n");
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(fs::exists(directory_.path() / "hf"));
  EXPECT_EQ(assay({"checkpoint", "diff", step, step}).exit_code, 3);

  // Of a run, the checkpoint before it is used, and the line names both.
  const std::string line =
      "assay: " + damaged + ": differs from what was written; using " + older + "\n";
  const auto text = assay({"generate", "run", "--prompt", "a", "--tokens", "3"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.err, line);
  EXPECT_EQ(text.out, assay({"generate", older, "--prompt", "a", "--tokens", "3"}).out);
  const auto scored = assay({"score", "run", "a.txt", "--json"});
  EXPECT_EQ(scored.err, line);
  const Json json = Json::parse(scored.out);
  EXPECT_EQ(json["checkpoint"], older);
  EXPECT_EQ(json["loss"], before["loss"]);
  EXPECT_EQ(json["damaged"],
            Json::array({{{"where", damaged}, {"what", "differs from what was written"}}}));
}

// Every `next:` line of a model's way through a folder with a space can be run as it is.
TEST_F(ModelText, NextLinesCanBeRun) {
  const auto next_of = [](const support::ProcessResult& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto at = outcome.out.find("next: assay ");
    if (at == std::string::npos) return std::string();
    return outcome.out.substr(at + 12, outcome.out.find('\n', at) - at - 12);
  };
  const auto run_next = [&](const std::string& next) {
    return support::run({{"sh", "-c", support::program() + " " + next}, "", directory_.path()});
  };
  fs::create_directory(directory_.path() / "my files");
  write("my files/a b.txt", "some words");
  const auto made = assay({"data", "tokenize", "my files/a b.txt", "-o", "my files/a.tokens"});
  EXPECT_THAT(run_next(next_of(made)).out, HasSubstr("my files/a.tokens"));
  auto trained = train({}, {"--out", "my run"});
  EXPECT_EQ(trained.exit_code, 0);
  trained = assay({"train",
                   "demo",
                   "--device",
                   "cpu",
                   "--out",
                   "my run",
                   "--resume",
                   "--set",
                   "model.dim=32",
                   "--set",
                   "model.layers=1",
                   "--set",
                   "model.heads=4",
                   "--set",
                   "model.kv_heads=2",
                   "--set",
                   "model.ffn=64",
                   "--set",
                   "model.context=32",
                   "--set",
                   "batch.sequence=32",
                   "--set",
                   "batch.micro_batch=2",
                   "--set",
                   "train.steps=3"});
  EXPECT_EQ(next_of(trained), "generate 'my run/checkpoints/step-3' --prompt \"…\"");
  EXPECT_EQ(run_next(next_of(trained) + " --tokens 2").exit_code, 0);
  ASSERT_EQ(assay({"checkpoint", "export-hf", "my run", "hf"}).exit_code, 0);
  const auto imported = assay({"checkpoint", "import-hf", "hf", "my import"});
  EXPECT_EQ(next_of(imported), "train 'my import/job.toml' --out 'my import' --resume");
  const auto further = run_next(next_of(imported) + " --stop-after 1");
  EXPECT_EQ(further.exit_code, 0) << further.err;
  EXPECT_THAT(further.out, HasSubstr("my import/checkpoints/step-0"));
}

TEST_F(ModelText, UnknownTokenizersAreNotGuessed) {
  json({"data", "synth", "-o", "v.tokens", "--tokens", "1025", "--vocab", "512"});
  ASSERT_EQ(train({"model.vocab=512", "data.train=v.tokens"}).exit_code, 0);
  refused(assay({"generate", "run"}),
          "run/checkpoints/step-2: does not say which tokenizer it was trained with; add "
          "--tokenizer FILE: it was trained on shards without one");
  refused(assay({"score", "run", "v.tokens", "--tokens", "x"}),
          "score --tokens: 'x' is not a whole number of at least 1");
  refused(assay({"data", "train-tokenizer", "v.tokens", "-o", "x"}),
          "x: does not end in .json; NAME.json and NAME.tiktoken will be written");
  refused(assay({"data", "train-tokenizer", "v.tokens", "-o", "x.json", "--vocab", "256"}),
          "--vocab: 256 is not between 257 and 1000000");
}

}  // namespace
}  // namespace assay
