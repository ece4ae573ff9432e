#include "train/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>

#include "train/checkpoint/manifest_json.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

using ::testing::HasSubstr;

TEST(Manifest, HostileOnesAreRefused) {
  Manifest good{testing::snapshot_of_step(1).state, 5, {{"weights.safetensors", 3, {}}}};
  ASSERT_TRUE(parse_manifest(manifest_text(good), "m"));
  for (const char* name : {"", ".", "..", "a/b", "/etc/passwd", "manifest.json"}) {
    Manifest bad = good;
    bad.files[0].name = name;
    EXPECT_THAT(parse_manifest(manifest_text(bad), "m").error().line(),
                HasSubstr("m: entry 0 of its files is not valid"));
  }
  Manifest many = good;
  many.files[0].bytes = INT64_MAX;
  many.files.push_back({"b", 1, {}});
  EXPECT_FALSE(parse_manifest(manifest_text(many), "m"));
  for (const char* text : {"", "[]", "{", "{}", "null", "{\"format_version\":3}"}) {
    EXPECT_FALSE(parse_manifest(text, "m")) << text;
  }
  EXPECT_FALSE(parse_manifest(std::string(1'000'000, '['), "m"));
}

Manifest in_pieces() {
  Manifest manifest{testing::snapshot_of_step(1).state, 5, {{"a", 3, {}}, {"b", 3, {}}}, 2};
  manifest.parts = {
      {"weights",
       {{{"w", TensorDtype::kF32, {2, 5}}, {{"a", {0, 4}}, {"b", {4, 5}}, {"a", {9, 1}}}},
        {{"none", TensorDtype::kU8, {0}}, {}}}},
      {"optimizer", {{{"m", TensorDtype::kF32, {}}, {{"b", {0, 1}}}}}}};
  return manifest;
}

TEST(Manifest, SaysWhereThePiecesAre) {
  const Manifest written = in_pieces();
  const auto read = parse_manifest(manifest_text(written), "m");
  ASSERT_TRUE(read) << read.error().line();
  EXPECT_EQ(read->ranks, 2);
  EXPECT_EQ(read->parts, written.parts);
  EXPECT_EQ(read->files, written.files);
}

TEST(Manifest, PiecesThatDoNotMakeUpATensorAreRefused) {
  const auto refused = [](const std::function<void(std::vector<Piece>&)>& change) {
    Manifest manifest = in_pieces();
    change(manifest.parts[0].tensors[0].pieces);
    return !parse_manifest(manifest_text(manifest), "m");
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& pieces) { pieces.clear(); }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces.pop_back(); }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces.erase(pieces.begin()); }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces.push_back(pieces.back()); }));
  EXPECT_TRUE(refused([](auto& pieces) { std::swap(pieces[0], pieces[1]); }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces[1].file = "c"; }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces[1].file = "../b"; }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces[1].elements = {3, 6}; }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces[1].elements = {5, 4}; }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces[2].elements = {9, 2}; }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces[2].elements = {9, INT64_MAX}; }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces[0].elements = {-1, 5}; }));
  EXPECT_TRUE(refused([](auto& pieces) { pieces.insert(pieces.begin() + 1, Piece{"a", {4, 0}}); }));
}

// A matrix cut into rectangles: rows of some columns are pieces in runs.
void cut(std::vector<ElementRange>& pieces, std::int64_t cols, std::int64_t row, std::int64_t rows,
         std::int64_t column, std::int64_t width) {
  const bool may_cut = rows > 1 || width > 1;
  if (may_cut && *rc::gen::inRange(0, 3) > 0) {
    if (width == 1 || (rows > 1 && *rc::gen::arbitrary<bool>())) {
      const auto first = *rc::gen::inRange<std::int64_t>(1, rows);
      cut(pieces, cols, row, first, column, width);
      return cut(pieces, cols, row + first, rows - first, column, width);
    }
    const auto first = *rc::gen::inRange<std::int64_t>(1, width);
    cut(pieces, cols, row, rows, column, first);
    return cut(pieces, cols, row, rows, column + first, width - first);
  }
  ElementRange piece{row * cols + column, rows * width};
  if (rows > 1 && width < cols) {
    piece.run = width;
    piece.apart = cols;
  }
  pieces.push_back(piece);
}

RC_GTEST_PROP(Manifest, PiecesInRunsMakeUpATensorExactly, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto cols = *rc::gen::inRange<std::int64_t>(1, 9);
  std::vector<ElementRange> pieces;
  cut(pieces, cols, 0, rows, 0, cols);
  const auto accepted = [&](const std::vector<ElementRange>& list) {
    Manifest manifest = in_pieces();
    StoredTensor& tensor = manifest.parts[0].tensors[0];
    tensor.info.shape = {rows, cols};
    tensor.pieces.clear();
    for (const ElementRange& piece : list) tensor.pieces.push_back({"a", piece});
    std::ranges::stable_sort(tensor.pieces, {}, [](const Piece& p) { return p.elements.first; });
    return parse_manifest(manifest_text(manifest), "m").has_value();
  };
  RC_ASSERT(accepted(pieces));
  // A changed piece must be accepted or refused as counting elements one by one says.
  const auto which = *rc::gen::inRange<std::size_t>(0, pieces.size());
  ElementRange& changed = pieces[which];
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      changed.first += *rc::gen::inRange<std::int64_t>(-3, 4);
      break;
    case 1:
      changed.count += *rc::gen::inRange<std::int64_t>(-3, 4);
      break;
    case 2:
      changed.run = std::max<std::int64_t>(0, changed.run + *rc::gen::inRange(-2, 3));
      changed.apart = changed.run > 0 ? cols : 0;
      break;
    default:
      pieces.push_back(changed);
      break;
  }
  std::vector<int> times(static_cast<std::size_t>(rows * cols));
  bool inside = true;
  for (const ElementRange& piece : pieces) {
    const TensorInfo info{"w", TensorDtype::kF32, {rows, cols}};
    inside = inside && is_piece_of(info, piece);
    for (std::int64_t i = 0; inside && i < piece.count; ++i) {
      ++times[static_cast<std::size_t>(piece.in_runs() ? piece.first + i / piece.run * piece.apart +
                                                             i % piece.run
                                                       : piece.first + i)];
    }
  }
  RC_ASSERT(accepted(pieces) == (inside && std::ranges::count(times, 1) == rows * cols));
}

// Any value of the document replaced by another, with a matching digest: it is refused, or makes no
// difference. Sanitizers check memory accesses.
TEST(Manifest, AnyOneWrongValueDoesNoHarm) {
  const std::vector<base::Json> wrong = {nullptr, -1, 0,   1,    INT64_MAX, UINT64_MAX,
                                         0.5,     "", "x", true, {1, 2},    {{"a", 1}}};
  base::Json document = base::Json::parse(manifest_text(in_pieces()));
  document.erase("manifest_blake3");
  const base::Json flat = document.flatten();
  for (const auto& [path, ignored] : flat.items()) {
    for (auto at = base::Json::json_pointer(path); !at.empty(); at = at.parent_pointer()) {
      for (const base::Json& value : wrong) {
        base::Json changed = document;
        changed[at] = value;
        const auto read = parse_manifest(sealed_text(changed), "m");
        if (!read) continue;
        EXPECT_TRUE(check_complete(read->parts, "m"));
        EXPECT_GE(read->bytes(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace assay::checkpoint
