#include "train/data/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "train/data/shard_writer.h"
#include "train/data/token_set.h"

namespace assay::data {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ShardTest : public ::testing::Test {
 protected:
  fs::path path(const std::string& name = "x.tokens") const { return directory_.path() / name; }

  void write(std::uint64_t vocabulary, const std::vector<std::uint32_t>& tokens) const {
    auto writer = ShardWriter::create(path(), vocabulary);
    ASSERT_TRUE(writer) << writer.error().line();
    ASSERT_TRUE(writer->append(tokens));
    ASSERT_TRUE(writer->finish());
  }
  // Overwrites bytes of the file, or makes it longer.
  void poke(std::size_t at, const std::string& bytes) const {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }
  void expect_refused(const std::string& what) const {
    const auto shard = Shard::open(path());
    ASSERT_FALSE(shard) << what;
    EXPECT_EQ(shard.error().code, base::ExitCode::kUsage);
    EXPECT_EQ(shard.error().where, path().string());
    EXPECT_THAT(shard.error().what, HasSubstr(what));
  }

  base::testing::TempDir directory_;
};

TEST_F(ShardTest, HoldsWhatWasWritten) {
  for (const std::uint64_t vocabulary : {256U, 65536U, 65537U, 200'000U}) {
    std::vector<std::uint32_t> tokens(300'000);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<std::uint32_t>(i * 7919 % vocabulary);
    }
    write(vocabulary, tokens);
    const auto shard = Shard::open(path());
    ASSERT_TRUE(shard) << shard.error().line();
    EXPECT_EQ(shard->type(), vocabulary <= 65536 ? TokenType::kU16 : TokenType::kU32);
    EXPECT_EQ(shard->vocabulary(), vocabulary);
    ASSERT_EQ(shard->count(), tokens.size());
    for (std::size_t i = 0; i < tokens.size(); i += 97) ASSERT_EQ(shard->token(i), tokens[i]);
    const auto verified = shard->verify();
    EXPECT_TRUE(verified) << verified.error().line();
  }
}

TEST_F(ShardTest, MayBeEmpty) {
  write(10, {});
  const auto shard = Shard::open(path());
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->count(), 0U);
  EXPECT_TRUE(shard->verify());
}

// The format of docs/data.md, byte for byte, independent of the code.
TEST_F(ShardTest, HasTheDocumentedBytes) {
  write(300, {1, 258});
  std::ifstream file(path(), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  ASSERT_EQ(bytes.size(), 260U);
  using namespace std::string_literals;
  EXPECT_EQ(bytes.substr(0, 32), "ASSAYTOK\1\0\0\0\2\0\0\0\x2c\1\0\0\0\0\0\0\2\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(64, 192), std::string(192, '\0'));
  EXPECT_EQ(bytes.substr(256), "\1\0\2\1"s);
}

class DocumentsShard : public ShardTest {
 protected:
  // Two documents, of three tokens and of two.
  void write_documents(std::optional<std::uint32_t> bos = 7) const {
    auto writer = ShardWriter::create(path(), 300, ShardDocuments{"{}", bos, 8});
    ASSERT_TRUE(writer) << writer.error().line();
    for (const std::vector<std::uint32_t>& document :
         {std::vector<std::uint32_t>{7, 1, 8}, {}, {7, 258}}) {
      writer->begin_document();
      ASSERT_TRUE(writer->append(document));
    }
    ASSERT_TRUE(writer->finish());
  }
};

// Version 2 of docs/data.md, byte for byte.
TEST_F(DocumentsShard, HasTheDocumentedBytes) {
  write_documents();
  std::ifstream file(path(), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  using namespace std::string_literals;
  EXPECT_EQ(bytes.substr(8, 8), "\2\0\0\0\2\0\0\0"s);
  EXPECT_EQ(bytes.substr(96, 16), "\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(144, 8), "\10\0\0\0\11\0\0\0"s);
  EXPECT_EQ(bytes.substr(152, 104), std::string(104, '\0'));
  // Ten bytes of tokens, zeros to a multiple of 8, two beginnings, the tokenizer.
  EXPECT_EQ(bytes.substr(256),
            "\7\0\1\0\10\0\7\0\2\1\0\0\0\0\0\0"s
            "\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0{}"s);
  const auto shard = Shard::open(path());
  ASSERT_TRUE(shard) << shard.error().line();
  EXPECT_EQ(shard->count(), 5U);
  EXPECT_EQ(shard->payload().size(), 10U);
  EXPECT_THAT(shard->documents(), ::testing::ElementsAre(0, 3));
  EXPECT_EQ(*shard->tokenizer_definition(), "{}");
  EXPECT_TRUE(shard->verify());
}

TEST_F(DocumentsShard, RefusesSizesThatAreNotTheFiles) {
  const auto with = [&](std::size_t at, char byte) {
    write_documents();
    poke(at, std::string(1, byte));
    expect_refused("byte 96: the header says ");
  };
  with(96, 3);        // documents
  with(103, '\x7f');  // so many that their bytes overflow
  with(104, 1);       // bytes of the tokenizer
  with(111, '\x7f');
  write_documents();
  poke(152, "\1");
  expect_refused("byte 152: the header's padding is not zero");
  write_documents();
  poke(8, "\1");  // version 1 has nothing of this
  expect_refused("byte 64: the header's padding is not zero");
}

TEST_F(DocumentsShard, VerifyFindsChangedListsAndTokenizers) {
  write_documents();
  poke(280, "\4");
  EXPECT_THAT(Shard::open(path())->verify().error().what, HasSubstr("the list of documents"));
  write_documents();
  poke(288, "x");
  EXPECT_THAT(Shard::open(path())->verify().error().what, HasSubstr("the list of documents"));
  EXPECT_THAT(Shard::open(path())->tokenizer_definition().error().what,
              HasSubstr("its tokenizer is damaged"));
}

TEST_F(DocumentsShard, RefusesTokensOfDocumentsOutsideTheVocabulary) {
  using namespace std::string_literals;
  write_documents();
  poke(144, "\x2d\1\0\0"s);  // plus one
  expect_refused("byte 144: token 300 is outside the vocabulary of 300");
  write_documents();
  poke(148, "\xff\xff\xff\xff"s);
  expect_refused("byte 148: token 4294967294 is outside the vocabulary of 300");
}

// For readers that follow the list without verifying the whole file.
TEST_F(DocumentsShard, FindsDocumentsThatCannotBeWhereTheListSays) {
  write_documents();
  EXPECT_TRUE(Shard::open(path())->check_documents());
  const auto damaged = [&](std::size_t at, char byte) {
    write_documents();
    poke(at, std::string(1, byte));
    const auto checked = Shard::open(path())->check_documents();
    return checked ? "" : checked.error().what;
  };
  EXPECT_EQ(damaged(280, 5), "document 1 cannot begin at token 5");  // there are 5
  EXPECT_EQ(damaged(287, '\1'), "document 1 cannot begin at token 72057594037927939");
  EXPECT_EQ(damaged(280, 0), "document 1 cannot begin at token 0");
  EXPECT_EQ(damaged(272, 1), "document 0 cannot begin at token 1");
  EXPECT_EQ(TokenSet::open({{path().string()}}, 2, 1).error().what,
            "document 0 cannot begin at token 1");
}

TEST_F(DocumentsShard, IsWrittenByOneProcessAtATime) {
  auto first = ShardWriter::create(path(), 300, ShardDocuments{});
  ASSERT_TRUE(first);
  const auto second = ShardWriter::create(path(), 300, ShardDocuments{});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().what, "is being written by another process");
  ASSERT_TRUE(first->finish());
  EXPECT_TRUE(ShardWriter::create(path(), 300, ShardDocuments{}));
}

TEST_F(ShardTest, RefusesWhatIsNoShard) {
  std::ofstream(path()) << "hello, world";
  expect_refused("byte 0: not a token shard");
  std::ofstream(path()) << "ASSAYTOK";
  expect_refused("byte 8: ends inside its header of 256 bytes");
  std::ofstream(path()) << "";
  expect_refused("byte 0: ends inside its header");
  EXPECT_EQ(Shard::open(path("nothing")).error().what, "no such file");
}

TEST_F(ShardTest, RefusesDamagedHeaders) {
  const auto with = [&](std::size_t at, char byte, const std::string& what) {
    write(256, {1, 2, 3});
    poke(at, std::string(1, byte));
    expect_refused(what);
  };
  with(0, 'B', "byte 0: not a token shard");
  with(8, 3, "byte 8: version 3 is neither 1 nor 2");
  with(12, 3, "byte 12: 3 bytes per token is neither 2 nor 4");
  with(17, 0, "byte 16: a vocabulary of 0");
  with(20, 1, "byte 16: a vocabulary of 4294967552");
  with(24, 4,
       "byte 24: the header says 4 tokens of 2 bytes, but 6 bytes follow it: the file is "
       "truncated");
  with(31, '\x80', "byte 24: the header says 9223372036854775811 tokens");
  with(24, 2, "the file is too long");
  with(64, 1, "byte 64: the header's padding is not zero");
  with(255, 1, "byte 255: the header's padding is not zero");
}

TEST_F(ShardTest, RefusesFilesOfTheWrongSize) {
  write(256, {1, 2, 3});
  fs::resize_file(path(), 261);
  expect_refused("truncated");
  write(256, {1, 2, 3});
  poke(262, "x");
  expect_refused("too long");
}

TEST_F(ShardTest, VerifyFindsChangedTokens) {
  write(256, {1, 2, 3});
  poke(258, "\3");
  const auto shard = Shard::open(path());
  ASSERT_TRUE(shard);
  const auto verified = shard->verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, base::ExitCode::kNo);
  EXPECT_THAT(verified.error().what, HasSubstr("byte 256: the BLAKE3 of the tokens is "));
}

TEST_F(ShardTest, VerifyNamesTheFirstTokenOutsideTheVocabulary) {
  write(256, {1, 255, 3, 200});
  poke(16, std::string("\x65\0", 2));  // the hash does not cover the header
  const auto verified = Shard::open(path())->verify();
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().what,
              HasSubstr("byte 258: token 1 is 255, outside the vocabulary of 101"));
}

TEST_F(ShardTest, HeaderlessFilesUseTheGivenType) {
  std::ofstream(path("a.bin")) << std::string("\1\0\2\0\3\0\4\0", 8);
  const auto narrow = Shard::open_headerless(path("a.bin"), TokenType::kU16);
  ASSERT_TRUE(narrow);
  EXPECT_EQ(narrow->count(), 4U);
  EXPECT_EQ(narrow->token(2), 3U);
  EXPECT_EQ(narrow->vocabulary(), std::nullopt);
  EXPECT_TRUE(narrow->verify());
  const auto wide = Shard::open_headerless(path("a.bin"), TokenType::kU32, 5);
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->token(1), 0x40003U);
  EXPECT_THAT(wide->verify().error().what, HasSubstr("byte 0: token 0 is 131073"));
}

TEST_F(ShardTest, HeaderlessFilesMustHaveWholeTokens) {
  std::ofstream(path("a.bin")) << "12345";
  EXPECT_THAT(Shard::open_headerless(path("a.bin"), TokenType::kU16).error().what,
              HasSubstr("byte 4: 5 bytes are not a whole number of u16 tokens"));
  write(256, {1, 2});
  EXPECT_THAT(Shard::open_headerless(path(), TokenType::kU16).error().what,
              HasSubstr("has a header"));
}

TEST_F(ShardTest, NothingIsLeftOfAWriterThatDidNotFinish) {
  std::ofstream(path()) << "before";
  {
    auto writer = ShardWriter::create(path(), 10);
    ASSERT_TRUE(writer);
    EXPECT_THAT(writer->append(std::vector<std::uint32_t>{9, 10}).error().what,
                HasSubstr("token 1 is 10, outside the vocabulary of 10"));
  }
  EXPECT_EQ(fs::file_size(path()), 6U);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), {}), 1);
}

TEST_F(ShardTest, WritersRefuseUnusablePaths) {
  EXPECT_EQ(ShardWriter::create("/dev/null", 10).error().what, "is not a regular file");
  EXPECT_EQ(ShardWriter::create(path("no/where"), 10).error().what, "the folder does not exist");
  EXPECT_FALSE(ShardWriter::create(path(), 0));
}

// More shards than there are guarded mappings.
TEST_F(ShardTest, ManyShardsAreOpenAtOnce) {
  write(256, {1, 2, 3});
  std::vector<Shard> shards;
  for (int i = 0; i < 100; ++i) shards.push_back(*Shard::open(path()));
  for (const Shard& shard : shards) EXPECT_TRUE(shard.verify());
}

TEST_F(ShardTest, AFileThatIsCutWhileMappedIsAnError) {
  write(256, std::vector<std::uint32_t>(100'000, 1));
  const auto shard = Shard::open(path());
  ASSERT_TRUE(shard);
  fs::resize_file(path(), 300);
  EXPECT_FALSE(shard->verify());
}

}  // namespace
}  // namespace assay::data
