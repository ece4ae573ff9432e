// The verb `assay data`: shards written, inspected and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using base::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kTokenizers = std::string(ASSAY_SOURCE_DIR) + "/tests/tokenizers/";

class DataCli : public ::testing::Test {
 protected:
  support::ProcessResult data(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), {support::program(), "data"});
    return support::run({arguments, input, directory_.path()});
  }
  Json json(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.emplace_back("--json");
    const auto outcome = data(arguments, input);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  void refused(const std::vector<std::string>& arguments, int code, const std::string& line) {
    const auto outcome = data(arguments);
    EXPECT_EQ(outcome.exit_code, code);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "assay: " + line + "\n");
  }
  fs::path file(const std::string& name) const { return directory_.path() / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
  }
  std::string bytes(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  base::testing::TempDir directory_;
};

TEST_F(DataCli, TokenizesDocumentsAsBytes) {
  write("a.txt", "hi");
  write("b.txt", "");
  const Json made = json({"tokenize", "a.txt", "b.txt", "-o", "x.tokens", "--append-eos", "256"});
  EXPECT_EQ(made["tokens"], 4);
  EXPECT_EQ(made["vocabulary"], 257);
  EXPECT_EQ(made["dtype"], "u16");
  EXPECT_EQ(made["documents"], 2);
  EXPECT_EQ(made["text_bytes"], 2);
  using namespace std::string_literals;
  EXPECT_EQ(bytes("x.tokens").substr(256, 8), "h\0i\0\0\1\0\1"s);
  // Where the two documents begin.
  EXPECT_EQ(bytes("x.tokens").substr(264, 16), "\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"s);
  EXPECT_EQ(json({"info", "x.tokens"})["shards"][0]["blake3"], made["blake3"]);
}

TEST_F(DataCli, TokenizesStandardInput) {
  const std::string text(3'000'000, 'x');  // read in several parts
  EXPECT_EQ(json({"tokenize", "-", "-o", "x.tokens"}, text)["tokens"], text.size());
}

// The expected tokens are from tests/tokenizers/vectors.txt, made by the reference implementations.
TEST_F(DataCli, TokenizesWithVocabularyFiles) {
  std::ifstream vectors(kTokenizers + "vectors.txt");
  int tried = 0;
  std::string last;
  for (std::string name, hex, list; vectors >> name >> hex >> list;) {
    if (name == last || hex.size() < 100) continue;
    last = name;
    std::string text;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      text += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    write("text.txt", text);
    const std::size_t colon = std::min(name.find(':'), name.size());
    std::vector<std::string> arguments = {"tokenize",    "text.txt",
                                          "-o",          "x.tokens",
                                          "--tokenizer", kTokenizers + name.substr(0, colon),
                                          "--bos",       "none"};
    if (colon < name.size()) {
      arguments.insert(arguments.end(), {"--pattern", name.substr(colon + 1), "--special",
                                         "<|endoftext|>=423", "--special", "<|end|>=424"});
    }
    json(arguments);
    std::string expected;
    std::istringstream ids(list);
    for (std::string id; std::getline(ids, id, ',');) {
      const unsigned long token = std::stoul(id);
      expected += {static_cast<char>(token & 255), static_cast<char>(token >> 8)};
    }
    EXPECT_EQ(bytes("x.tokens").substr(256, expected.size()), expected) << name;
    EXPECT_EQ(json({"info", "x.tokens"})["tokens"], expected.size() / 2);
    ++tried;
  }
  EXPECT_EQ(tried, 6);
}

TEST_F(DataCli, TokenizesFoldersOfJsonLines) {
  fs::create_directory(file("in"));
  write("in/b.txt", "plain");
  write("in/a.jsonl", "{\"body\": \"one\"}\n{\"body\": \"two\"}\n");
  write("in/c.bin", "left out");
  const auto made = data({"tokenize", "in", "-o", "x.tokens", "--column", "body", "--tokenizer",
                          kTokenizers + "llama3.json"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(
      made.out,
      HasSubstr("; from 3 documents, 11 B; <|endoftext|> before each; 1 other files skipped\n"));
  const Json shard = json({"info", "x.tokens", "--verify"})["shards"][0];
  EXPECT_EQ(shard["documents"], 3);
  EXPECT_EQ(shard["ok"], true);
  EXPECT_EQ(shard["tokenizer"].get<std::string>().size(), 64U);
  write("in/a.jsonl", "{\"body\": \"one\"}\n{\"text\": \"two\"}\n");
  refused({"tokenize", "in", "-o", "x.tokens", "--column", "body"}, 64,
          "in/a.jsonl: row 2: has no 'body'; --column names one of: text; --skip-bad-rows skips "
          "such rows");
  const auto skipped =
      data({"tokenize", "in", "-o", "x.tokens", "--column", "body", "--skip-bad-rows"});
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.out, HasSubstr("; from 2 documents, 8 B; 1 bad row skipped, the first is "
                                     "in/a.jsonl: row 2: has no 'body'; 1 other files skipped\n"));
  const Json words = json({"train-tokenizer", "in", "-o", "w.json", "--vocab", "260", "--column",
                           "body", "--skip-bad-rows"});
  EXPECT_EQ(words["bad_rows_skipped"], 1);
  EXPECT_EQ(words["documents"], 2);
  refused({"tokenize", "in/c.bin", "-o", "y", "--bos", "<s>"}, 64,
          "--bos: the tokenizer has no '<s>'; give the token's id");
  refused({"tokenize", "in/c.bin", "-o", "y", "--format", "json"}, 64,
          "--format: unknown format 'json'; did you mean 'jsonl'?");
}

// A Python with pyarrow, if there is one: its own writer made the file then.
TEST_F(DataCli, ReadsParquetThroughPyarrow) {
  write("x.parquet", "PAR1 but nothing else");
  const char* python = std::getenv("ASSAY_PARQUET_PYTHON");
  const std::string program = python != nullptr ? python : "python3";
  const bool has_pyarrow =
      support::run({{"sh", "-c", program + " -c 'import pyarrow.parquet'"}}).exit_code == 0;
  if (!has_pyarrow) {
    refused(
        {"tokenize", "x.parquet", "-o", "x.tokens"}, 3,
        "x.parquet: Parquet files are read by Python's pyarrow, which python3 does not have; pip "
        "install pyarrow, and name its python in ASSAY_PARQUET_PYTHON if it is another");
    GTEST_SKIP() << "no pyarrow; set ASSAY_PARQUET_PYTHON to a Python that has it";
  }
  const auto broken = data({"tokenize", "x.parquet", "-o", "x.tokens"});
  EXPECT_EQ(broken.exit_code, 64);
  EXPECT_THAT(broken.err, HasSubstr("x.parquet: is not a Parquet file that pyarrow can read: "));
  const std::string make =
      " -c 'import pyarrow, pyarrow.parquet as p; p.write_table(pyarrow.table({\"id\": [1, 2, 3],"
      " \"text\": [\"weigh\\n\u91d1\", None, \"again\"]}), \"x.parquet\")'";
  ASSERT_EQ(support::run({{"sh", "-c", program + make}, "", directory_.path()}).exit_code, 0);
  const Json made = json({"tokenize", "x.parquet", "-o", "x.tokens"});
  EXPECT_EQ(made["documents"], 2);
  EXPECT_EQ(made["rows_without_text"], 1);
  // The same rows as lines, and with a dictionary of their values.
  write("a.jsonl", "{\"text\": \"weigh\\n\u91d1\"}\n{\"text\": null}\n{\"text\": \"again\"}\n");
  const Json lines = json({"tokenize", "a.jsonl", "-o", "a.tokens"});
  const std::string encode =
      " -c 'import pyarrow.parquet as p; t = p.read_table(\"x.parquet\");"
      " p.write_table(t.set_column(1, \"text\", t[\"text\"].dictionary_encode()), \"d.parquet\")'";
  ASSERT_EQ(support::run({{"sh", "-c", program + encode}, "", directory_.path()}).exit_code, 0);
  const Json encoded = json({"tokenize", "d.parquet", "-o", "d.tokens"});
  for (const char* key : {"blake3", "documents", "rows_without_text", "bad_rows_skipped"}) {
    EXPECT_EQ(lines[key], made[key]) << key;
    EXPECT_EQ(encoded[key], made[key]) << key;
  }
  refused({"tokenize", "x.parquet", "-o", "y", "--column", "body"}, 64,
          "x.parquet: has no column 'body'; --column names one of: id, text");
  refused({"tokenize", "x.parquet", "-o", "y", "--column", "id"}, 64,
          "x.parquet: its column 'id' is int64, not text");
}

// With a fake pyarrow that has three rows: a text, none, and one that is not text.
TEST_F(DataCli, RowsOfParquetAreCountedAsTheyAreInTheFile) {
  write("x.parquet", "PAR1");
  fs::create_directories(file("fake/pyarrow"));
  write("fake/pyarrow/__init__.py", R"(
class ArrowException(Exception): pass
class types:
    is_string = is_large_string = lambda kind: True
    is_dictionary = lambda kind: False
)");
  write("fake/pyarrow/parquet.py", R"(
class ParquetFile:
    def __init__(self, path):
        self.schema_arrow = self
        self.names = ["text"]
    def field(self, name):
        self.type = "string"
        return self
    def iter_batches(self, batch_size, columns): return [self]
    def column(self, index): return self
    def to_pylist(self): return ["weigh", None, 5]
)");
  const auto outcome =
      support::run({{"sh", "-c",
                     "PYTHONPATH=fake ASSAY_PARQUET_PYTHON=python3 " + support::program() +
                         " data tokenize x.parquet -o x.tokens"},
                    "",
                    directory_.path()});
  EXPECT_EQ(outcome.exit_code, 64);
  EXPECT_THAT(outcome.err, HasSubstr("assay: x.parquet: row 3: "));
}

TEST_F(DataCli, SynthIsTheSameEveryTime) {
  const std::vector<std::string> arguments = {"synth",   "-o",    "x.tokens", "--tokens", "1e5",
                                              "--vocab", "70000", "--seed",   "3"};
  const Json made = json(arguments);
  EXPECT_EQ(made["tokens"], 100'000);
  EXPECT_EQ(made["dtype"], "u32");
  EXPECT_EQ(made["kind"], "markov");
  const std::string first = bytes("x.tokens");
  json(arguments);
  EXPECT_EQ(bytes("x.tokens"), first);
  EXPECT_EQ(json({"info", "x.tokens", "--verify"})["shards"][0]["ok"], true);
}

TEST_F(DataCli, InfoShowsATable) {
  json({"synth", "-o", "b.tokens", "--tokens", "1000", "--vocab", "512"});
  json({"synth", "-o", "a.tokens", "--tokens", "2000", "--vocab", "512", "--kind", "uniform"});
  const auto shown = data({"info", ".", "--verify"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.out,
            "file        dtype  vocabulary  tokens  documents  tokenizer  hash ok\n"
            "──────────  ─────  ──────────  ──────  ─────────  ─────────  ───────\n"
            "./a.tokens  u16           512   2,000  —          —          yes\n"
            "./b.tokens  u16           512   1,000  —          —          yes\n");
  EXPECT_EQ(json({"info", "*.tokens"})["tokens"], 3000);
  EXPECT_EQ(json({"info", "a.tokens"})["shards"][0]["ok"], nullptr);
}

TEST_F(DataCli, InfoFindsDamage) {
  json({"synth", "-o", "x.tokens", "--tokens", "1000", "--vocab", "512"});
  std::fstream(file("x.tokens"), std::ios::in | std::ios::out).seekp(300) << "\1";
  EXPECT_EQ(data({"info", "x.tokens"}).exit_code, 0);
  const auto checked = data({"info", "x.tokens", "--verify"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out, HasSubstr("  no\n"));
  EXPECT_THAT(checked.err, HasSubstr("assay: x.tokens: byte 256: the BLAKE3 of the tokens is "));
  fs::resize_file(file("x.tokens"), 1000);
  refused({"info", "x.tokens"}, 64,
          "x.tokens: byte 24: the header says 1000 tokens of 2 bytes, but 744 bytes follow it: the "
          "file is truncated; make it again with `assay data tokenize`");
}

TEST_F(DataCli, FilesWithoutAHeaderNeedAType) {
  using namespace std::string_literals;
  write("x.bin", "\1\0\2\0\3\0"s);
  refused({"info", "x.bin"}, 64,
          "x.bin: byte 6: ends inside its header of 256 bytes; make it again with `assay data "
          "tokenize`");
  const Json shard = json({"info", "x.bin", "--dtype", "u16"})["shards"][0];
  EXPECT_EQ(shard["tokens"], 3);
  EXPECT_EQ(shard["vocabulary"], nullptr);
  EXPECT_EQ(shard["blake3"], nullptr);
  refused({"info", "x.bin", "--dtype", "u32"}, 64,
          "x.bin: byte 4: 6 bytes are not a whole number of u32 tokens; the file is truncated, or "
          "of another type");
  const auto checked = data({"info", "x.bin", "--dtype", "u16", "--vocab", "3", "--verify"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.err, HasSubstr("byte 4: token 2 is 3, outside the vocabulary of 3"));
}

TEST_F(DataCli, MistakesAreOneLine) {
  write("a.txt", "hi");
  refused({"tokenize", "a.txt"}, 64, "data tokenize: -o is missing; add -o NAME.tokens");
  refused({"tokenize", "b.txt", "-o", "x"}, 64, "b.txt: no such file; did you mean 'a.txt'?");
  refused({"tokenize", "a.txt", "-o", "a.txt"}, 64,
          "a.txt: is both a document and the output; choose another output");
  refused({"tokenize", "a.txt", "-o", "x", "--append-eos", "-1"}, 64,
          "--append-eos: '-1' is not a whole number; for example 1000000 or 1e6");
  refused(
      {"tokenize", "a.txt", "-o", "x", "--tokenizer", "a.txt"}, 64,
      "a.txt: a tiktoken file does not define how text is split into words; add --pattern gpt2 or "
      "cl100k or o200k or llama3");
  refused({"tokenize", "a.txt", "-o", "x", "--column", "body"}, 64,
          "--column: there is no 'body': the files are text, one document each; leave it out; "
          "files of JSON lines end in .jsonl");
  refused({"synth", "-o", "x", "--vocab", "5"}, 64,
          "--tokens: is missing; for example 1000000 or 1e6");
  refused({"synth", "-o", "x", "--tokens", "0"}, 64,
          "--tokens: '0' is not a whole number of at least 1; for example 1000000 or 1e6");
  refused({"synth", "-o", "x", "--tokens", "1e30", "--vocab", "5"}, 64,
          "--tokens: '1e30' is not a whole number from 0 to 9,223,372,036,854,775,807; for example "
          "1000000 or 1e6");
  refused({"synth", "-o", "x", "--tokens", "5", "--vocab", "0"}, 64,
          "--vocab: 0 is not between 1 and 16777216");
  refused({"synth", "-o", "x", "--tokens", "5", "--vocab", "5", "--kind", "marcov"}, 64,
          "--kind: unknown kind 'marcov'; did you mean 'markov'?");
  refused({"synth", "-o", "no/x", "--tokens", "5", "--vocab", "5"}, 64,
          "no/x: the folder does not exist");
  refused({"info", "a.txt", "--vocab", "5"}, 64,
          "--vocab: is for files without a header; add --dtype, or leave --vocab out");
  refused({"info", "a.txt", "--dtype", "u8"}, 64,
          "--dtype: unknown token type 'u8'; expected one of: u16, u32");
  // Nothing is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
}

}  // namespace
}  // namespace assay
