// Tokenizing documents of several files on several threads, interrupted or not. The oracle for the
// tokens of a document is Tokenizer::encode() on one thread, whose own oracles are in
// tokenizer_test.cc.
#include "train/data/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "train/data/load_tokenizer.h"
#include "train/data/shard.h"

namespace assay::data {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kTokenizers = ASSAY_TOKENIZER_VECTORS "/";

std::string bytes_of_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class TokenizeTest : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return directory_.path() / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name).string();
  }
  // Runs a program of the system on a file: an independent compressor.
  void shell(const std::string& command) const {
    ASSERT_EQ(std::system(("cd '" + directory_.path().string() + "' && " + command).c_str()), 0);
  }
  TokenizeRequest request(const std::vector<std::string>& paths) const {
    auto inputs = input_files(paths, {});
    EXPECT_TRUE(inputs) << inputs.error().line();
    return {.files = inputs->files, .output = path("x.tokens"), .threads = 3, .unit_bytes = 64};
  }
  static std::unique_ptr<const Tokenizer> llama() {
    return *load_tokenizer({.source = kTokenizers + "llama3.json"});
  }
  std::string error_of(const TokenizeRequest& request) const {
    const auto made = tokenize_files(*llama(), request);
    EXPECT_FALSE(made);
    return made ? "" : made.error().line();
  }

  base::testing::MemoryDir directory_;
};

// Documents of a shard, as tokens.
std::vector<std::vector<TokenId>> documents_of(const fs::path& path) {
  const auto shard = Shard::open(path);
  EXPECT_TRUE(shard) << shard.error().line();
  EXPECT_TRUE(shard->verify());
  std::vector<std::vector<TokenId>> documents;
  const auto starts = shard->documents();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    auto& document = documents.emplace_back();
    const std::uint64_t end = i + 1 < starts.size() ? starts[i + 1] : shard->count();
    for (std::uint64_t at = starts[i]; at < end; ++at) document.push_back(shard->token(at));
  }
  return documents;
}

// Texts whose words are hard to find from the middle: units of 64 bytes begin inside them.
std::vector<std::string> awkward_texts() {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += "The assayer weighs it again,\n  then 12345" + std::to_string(i) + "!\n";
  std::string mixed;
  for (int i = 0; i < 60; ++i)
    mixed += "金の重さ  \n\n\r\n   \t don't<|endoftext|><|endo\xff\xe9 ½٣٤ ";
  std::string spaces;
  for (int i = 1; i < 70; ++i)
    spaces += std::string(static_cast<std::size_t>(i), ' ') + "x" +
              std::string(static_cast<std::size_t>(i % 9), '\n');
  return {lines,
          mixed,
          spaces,
          std::string(9000, 'e'),
          std::string(9001, ' '),
          std::string(5000, '7'),
          lines + std::string(20'000, 'a') + lines,
          "",
          "a"};
}

TEST_F(TokenizeTest, TextsThatThreadsShareHaveTheTokensOfOne) {
  for (const char* name : {"llama3.json", "gpt2.json"}) {
    const auto tokenizer = *load_tokenizer({.source = kTokenizers + name});
    std::vector<std::string> paths;
    std::vector<std::vector<TokenId>> expected;
    for (const std::string& text : awkward_texts()) {
      paths.push_back(write(std::to_string(paths.size()) + ".txt", text));
      expected.push_back(*tokenizer->encode(text));
      expected.back().insert(expected.back().begin(), 7);
      expected.back().push_back(9);
    }
    for (const std::size_t unit : {std::size_t{8}, std::size_t{64}, std::size_t{5000}}) {
      TokenizeRequest wanted = request(paths);
      wanted.unit_bytes = unit;
      wanted.rules = {.bos = 7, .eos = 9};
      const auto made = tokenize_files(*tokenizer, wanted);
      ASSERT_TRUE(made) << made.error().line();
      EXPECT_EQ(made->documents, paths.size());
      EXPECT_EQ(documents_of(wanted.output), expected) << name << " in units of " << unit;
    }
  }
}

TEST_F(TokenizeTest, TheBytesDoNotDependOnThreads) {
  const std::string text = awkward_texts()[0];
  const TokenizeRequest first = request({write("a.txt", text), write("b.txt", text)});
  ASSERT_TRUE(tokenize_files(*llama(), first));
  const std::string expected = bytes_of_file(first.output);
  for (const unsigned threads : {1U, 2U, 7U}) {
    TokenizeRequest again = first;
    again.threads = threads;
    again.unit_bytes = 100 * threads;
    ASSERT_TRUE(tokenize_files(*llama(), again));
    EXPECT_EQ(bytes_of_file(again.output), expected);
  }
}

TEST_F(TokenizeTest, ReadsJsonLinesAndCompressedFilesAlike) {
  const std::string lines =
      "{\"id\": 1, \"text\": \"weigh\\nit\", \"tags\": [{\"text\": 3}]}\n\n"
      "{\"text\": \"\\u91d1 again\"}\r\n{\"text\":\"\"}\n{\"text\":\"last\"}";
  write("a.jsonl", lines);
  write("b.txt", "one document");
  shell(
      "gzip -k a.jsonl && zstd -q a.jsonl && gzip -c b.txt > b.txt.gz && zstd -q b.txt -o "
      "c.txt.zst");
  // Both formats may be concatenated.
  shell("printf ' more' | gzip -c >> b.txt.gz && printf ' more' | zstd -q -c >> c.txt.zst");
  const auto tokenizer = llama();
  const auto tokens = [&](const std::string& text) { return *tokenizer->encode(text); };
  const std::vector<std::vector<TokenId>> rows = {tokens("weigh\nit"), tokens("金 again"),
                                                  tokens("last")};
  for (const char* name : {"a.jsonl", "a.jsonl.gz", "a.jsonl.zst"}) {
    const TokenizeRequest wanted = request({path(name).string()});
    const auto made = tokenize_files(*tokenizer, wanted);
    ASSERT_TRUE(made) << made.error().line();
    EXPECT_EQ(made->documents, 4U);  // one of them has no tokens
    EXPECT_EQ(documents_of(wanted.output), rows) << name;
  }
  // A folder, by names; files of other kinds and hidden ones are left out.
  write(".hidden.txt", "x");
  write("picture.png", "x");
  const auto folder = input_files({directory_.path().string()}, {});
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder->left_out, 2U);  // the picture, and the shard of above
  ASSERT_EQ(folder->files.size(), 6U);
  TokenizeRequest wanted = request({});
  wanted.files = folder->files;
  ASSERT_TRUE(tokenize_files(*tokenizer, wanted));
  std::vector<std::vector<TokenId>> all;
  for (int i = 0; i < 3; ++i) all.insert(all.end(), rows.begin(), rows.end());
  all.push_back(tokens("one document"));
  all.push_back(tokens("one document more"));
  all.push_back(tokens("one document more"));
  EXPECT_EQ(documents_of(wanted.output), all);
}

TEST_F(TokenizeTest, BrokenInputNamesFileAndRow) {
  const std::string good = "{\"text\": \"weigh it\"}\n";
  std::string many;
  for (int i = 0; i < 500; ++i) many += good;
  const auto line_of = [&](const std::string& text) {
    const std::string error = error_of(request({write("a.jsonl", text)}));
    EXPECT_THAT(error, HasSubstr(path("a.jsonl").string() + ": "));
    return error.substr(path("a.jsonl").string().size() + 2);
  };
  const std::string also = "; --skip-bad-rows skips such rows";
  EXPECT_THAT(line_of(many + "{\"text\": \"cut\n" + many),
              HasSubstr("row 501: is not valid JSON: at byte 14: "));
  EXPECT_EQ(line_of(many + "{\"body\": 1, \"id\": 2}\n"),
            "row 501: has no 'text'; --column names one of: body, id" + also);
  EXPECT_EQ(line_of(good + "{\"text\": 5}"), "row 2: 'text' is a number, not a string" + also);
  EXPECT_EQ(line_of(good + "\n{\"text\": [\"a\"]}"),
            "row 3: 'text' is a list, not a string" + also);
  EXPECT_EQ(line_of("\"text\""), "row 1: is not an object" + also);
  EXPECT_EQ(line_of("[{\"text\": \"a\"}]"), "row 1: is not an object" + also);
  EXPECT_EQ(line_of("null"), "row 1: is not an object" + also);
  EXPECT_THAT(line_of("{\"text\": \"\xff\"}"), HasSubstr("row 1: is not valid JSON: at byte 11: "));
  EXPECT_EQ(line_of("{\"text\": \"a\", \"text\": \"b\"}"), "row 1: has 'text' twice" + also);
  EXPECT_EQ(line_of("{\"text\": null, \"text\": \"b\"}"), "row 1: has 'text' twice" + also);
  // Nothing is left behind.
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(TokenizeTest, RowsWithoutADocumentAreCounted) {
  const std::string good = "{\"text\": \"weigh it\"}\n";
  const std::string null = "{\"text\": null}\n";
  std::string lines;
  for (int i = 0; i < 100; ++i) {
    lines += good + null + "\n" + (i % 10 == 3 ? "{\"text\": \"cut\n" : "");
  }
  const std::string name = write("a.jsonl", lines);
  for (const unsigned threads : {1U, 3U}) {
    TokenizeRequest wanted = request({name});
    wanted.threads = threads;
    wanted.unit_bytes = 200;
    EXPECT_THAT(error_of(wanted), HasSubstr("a.jsonl: row 13: is not valid JSON"));
    wanted.rules.skip_bad_rows = true;
    const auto made = tokenize_files(*llama(), wanted);
    ASSERT_TRUE(made) << made.error().line();
    EXPECT_EQ(made->documents, 100U);
    EXPECT_EQ(made->rows_without.null, 100U);
    EXPECT_EQ(made->rows_without.bad, 10U);
    EXPECT_THAT(made->rows_without.text(),
                HasSubstr("; 100 rows without text; 10 bad rows skipped, the first is "));
    EXPECT_THAT(made->rows_without.text(), HasSubstr("a.jsonl: row 13: is not valid JSON"));
  }
  // Rows of which none can be used are most likely of another column.
  TokenizeRequest other = request({name});
  other.rules.skip_bad_rows = true;
  other.rules.column = "body";
  EXPECT_THAT(error_of(other), HasSubstr("a.jsonl: row 1: has no 'body'; --column names one of: "));
}

TEST_F(TokenizeTest, DamagedCompressedFilesAreRefused) {
  const std::string name = write("a.txt", awkward_texts()[0]);
  shell(
      "gzip -c a.txt > a.txt.gz && zstd -q a.txt -o b.txt.zst && truncate -s 50 a.txt.gz "
      "b.txt.zst");
  EXPECT_EQ(error_of(request({name + ".gz"})),
            name + ".gz: its gzip data ends too early; is the file complete?");
  EXPECT_EQ(error_of(request({path("b.txt.zst").string()})),
            path("b.txt.zst").string() + ": its zstd data ends too early; is the file complete?");
  write("c.txt.gz", "plain");
  write("d.txt.zst", "plain");
  EXPECT_THAT(error_of(request({path("c.txt.gz").string()})), HasSubstr("is not valid gzip: "));
  EXPECT_THAT(error_of(request({path("d.txt.zst").string()})), HasSubstr("is not valid zstd: "));
}

// Kills a tokenization after `bytes` of input, in a separate process.
void killed_after(const Tokenizer& tokenizer, TokenizeRequest request, std::int64_t bytes) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::int64_t read = 0;
    request.progress = [&](std::int64_t more) {
      read += more;
      if (read >= bytes) ::_exit(9);
    };
    (void)tokenize_files(tokenizer, request);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 9);
}

TEST_F(TokenizeTest, GoesOnWhereItWasKilled) {
  const auto texts = awkward_texts();
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += "{\"text\": \"row " + std::to_string(i) + " weighs it\"}\n";
  write("a.txt", texts[0]);
  write("b.jsonl", lines);
  write("c.txt", texts[6]);
  shell("gzip b.jsonl && zstd -q --rm c.txt");
  const auto tokenizer = llama();
  TokenizeRequest wanted =
      request({path("a.txt").string(), path("b.jsonl.gz").string(), path("c.txt.zst").string()});
  wanted.unit_bytes = 300;
  wanted.journal_bytes = 2000;
  ASSERT_TRUE(tokenize_files(*tokenizer, wanted));
  const std::string expected = bytes_of_file(wanted.output);
  const auto whole = tokenize_files(*tokenizer, wanted);
  const std::int64_t total = *total_bytes(wanted.files);
  for (const std::int64_t bytes : {std::int64_t{6000}, total - 200, total}) {
    fs::remove(wanted.output);
    killed_after(*tokenizer, wanted, 3000);
    killed_after(*tokenizer, wanted, bytes);
    EXPECT_FALSE(fs::exists(wanted.output));
    const auto resumed = tokenize_files(*tokenizer, wanted);
    ASSERT_TRUE(resumed) << resumed.error().line();
    EXPECT_GT(resumed->resumed_at.value_or(0), 0U);
    EXPECT_EQ(resumed->documents, whole->documents);
    EXPECT_EQ(resumed->bytes, whole->bytes);
    EXPECT_EQ(bytes_of_file(wanted.output), expected) << "killed after " << bytes;
  }
  // Three inputs and the output: no drafts.
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 4);
}

// If a document's first word is longer than what is read at once, no token is known at first.
TEST_F(TokenizeTest, GoesOnInsideTheFirstWordOfADocument) {
  const auto tokenizer = llama();
  TokenizeRequest wanted =
      request({write("a.txt", "one two"), write("b.txt", std::string(300, 'e') + " and others"),
               write("c.txt", "again")});
  wanted.threads = 1;
  wanted.unit_bytes = 16;
  wanted.journal_bytes = 1;  // after every unit
  ASSERT_TRUE(tokenize_files(*tokenizer, wanted));
  const auto expected = documents_of(wanted.output);
  ASSERT_EQ(expected.size(), 3U);
  for (std::int64_t bytes = 1; bytes < *total_bytes(wanted.files); bytes += 5) {
    fs::remove(wanted.output);
    killed_after(*tokenizer, wanted, bytes);
    const auto resumed = tokenize_files(*tokenizer, wanted);
    ASSERT_TRUE(resumed) << resumed.error().line();
    EXPECT_EQ(documents_of(wanted.output), expected) << "killed after " << bytes;
    EXPECT_EQ(resumed->documents, 3U);
  }
}

// The tokens made so far are those of the whole files.
TEST_F(TokenizeTest, EndsWhenThereAreEnoughTokens) {
  const auto tokenizer = llama();
  TokenizeRequest wanted =
      request({write("a.txt", "a few words first"), write("b.txt", awkward_texts()[6])});
  wanted.rules.bos = 7;
  ASSERT_TRUE(tokenize_files(*tokenizer, wanted));
  const auto whole = documents_of(wanted.output);
  wanted.enough = 300;
  const auto made = tokenize_files(*tokenizer, wanted);
  ASSERT_TRUE(made) << made.error().line();
  const auto documents = documents_of(wanted.output);
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0], whole[0]);
  const std::size_t tokens = documents[0].size() + documents[1].size() - 2;
  EXPECT_GE(tokens, 300U);
  EXPECT_LT(tokens, 3000U);  // a few units more
  EXPECT_GT(whole[1].size(), 6000U);
  EXPECT_TRUE(std::equal(documents[1].begin(), documents[1].end(), whole[1].begin()));
}

TEST_F(TokenizeTest, StopsWhenItIsAskedTo) {
  TokenizeRequest wanted = request({write("a.txt", awkward_texts()[0])});
  const std::atomic<bool> stop = true;
  wanted.stop = &stop;
  wanted.journal_bytes = 100;
  EXPECT_THAT(error_of(wanted), HasSubstr("x.tokens: was not finished: stopped"));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(TokenizeTest, StartsAgainWhenWhatItHadReadHasChanged) {
  const auto tokenizer = llama();
  const std::string first = write("a.txt", awkward_texts()[0]);
  const std::string second = write("b.txt", awkward_texts()[0]);
  TokenizeRequest wanted = request({first, second});
  wanted.journal_bytes = 1000;
  const auto resumed_at = [&](TokenizeRequest now) {
    const auto made = tokenize_files(*tokenizer, now);
    EXPECT_TRUE(made) << made.error().line();
    return made->resumed_at;
  };
  killed_after(*tokenizer, wanted, 3000);
  TokenizeRequest other = wanted;
  other.rules.bos = 3;
  EXPECT_EQ(resumed_at(other), std::nullopt);
  killed_after(*tokenizer, wanted, 3000);
  write("b.txt", "another second file, which was not read yet");
  EXPECT_NE(resumed_at(request({first, second})), std::nullopt);
  killed_after(*tokenizer, wanted, 3000);
  write("a.txt", "changed");
  EXPECT_EQ(resumed_at(request({first, second})), std::nullopt);
  // Changed drafts are detected.
  write("a.txt", awkward_texts()[0]);
  wanted = request({first});
  wanted.journal_bytes = 1000;
  killed_after(*tokenizer, wanted, 3000);
  std::fstream(path("x.tokens.partial"), std::ios::in | std::ios::out).seekp(300) << "\7\7";
  EXPECT_EQ(resumed_at(wanted), std::nullopt);
  EXPECT_EQ(documents_of(wanted.output)[0], *tokenizer->encode(awkward_texts()[0]));
}

TEST_F(TokenizeTest, AShardHasItsTokenizer) {
  for (const char* name : {"llama3.json", "gpt2.json", "bytes"}) {
    const std::string source = name == std::string("bytes") ? name : kTokenizers + name;
    const auto tokenizer = *load_tokenizer({.source = source});
    TokenizeRequest wanted = request({write("a.txt", awkward_texts()[1])});
    wanted.rules = {.bos = 5, .eos = 1'000};  // beyond these vocabularies
    ASSERT_TRUE(tokenize_files(*tokenizer, wanted));
    const auto shard = Shard::open(wanted.output);
    ASSERT_TRUE(shard);
    EXPECT_EQ(shard->vocabulary(), 1'001U);
    EXPECT_EQ(shard->documents_header()->bos, 5U);
    EXPECT_EQ(shard->documents_header()->eos, 1'000U);
    const auto definition = shard->tokenizer_definition();
    ASSERT_TRUE(definition) << definition.error().line();
    const auto again = tokenizer_of(*definition, "x");
    ASSERT_TRUE(again) << again.error().line();
    EXPECT_EQ((*again)->vocabulary(), 1'001U);
    EXPECT_EQ((*again)->definition(), *definition);
    EXPECT_EQ(*(*again)->decode(std::vector<TokenId>{1'000}), "<|eos|>");
    EXPECT_EQ(*(*again)->encode(awkward_texts()[1]), *tokenizer->encode(awkward_texts()[1]));
  }
}

}  // namespace
}  // namespace assay::data
