#include "train/checkpoint/rank_note.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "train/checkpoint/manifest_json.h"
#include "train/checkpoint/output_file.h"

namespace assay::checkpoint {
namespace {

constexpr base::Bytes kMostNoteBytes{std::int64_t{64} << 20};

}  // namespace

std::string rank_note_name(std::int64_t rank) {
  return fmt::format("rank-{:05}.json", rank);
}

base::Result<void> leave_note(const std::filesystem::path& folder, const RankNote& note) {
  const std::string text = sealed_text({{"format_version", kPiecesFormatVersion},
                                        {"rank", note.rank},
                                        {"ranks", note.ranks},
                                        {"step", note.step},
                                        {"failure", note.failure},
                                        {"files", files_json(note.files)},
                                        {"parts", parts_json(note.parts)}});
  const std::filesystem::path path = folder / rank_note_name(note.rank);
  const std::filesystem::path partial = path.string() + ".partial";
  ASSAY_TRY_VOID(write_small_file(partial, text));
  if (::rename(partial.c_str(), path.c_str()) == 0) return {};
  return base::fail(file_error(path.string(), "cannot create", errno));
}

base::Result<RankNote> read_note(const std::filesystem::path& folder, std::int64_t rank) {
  const std::filesystem::path path = folder / rank_note_name(rank);
  ASSAY_TRY(const std::string text, base::read_file(path, kMostNoteBytes));
  ASSAY_TRY(const base::Json document, unsealed(text, path.string()));
  const auto ranks = count_in(document, "ranks");
  const auto step = count_in(document, "step");
  const auto failure = text_in(document, "failure");
  if (count_in(document, "rank") != rank || !ranks || !step || !failure) {
    return base::fail(bad_manifest(path.string(), "is not the note of this rank"));
  }
  RankNote note{.rank = rank, .ranks = *ranks, .step = *step, .failure = *failure};
  ASSAY_TRY(note.files, files_in(document, path.string()));
  ASSAY_TRY(note.parts, parts_in(document, note.files, path.string()));
  return note;
}

}  // namespace assay::checkpoint
