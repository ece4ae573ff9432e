#include "train/builtin_text.h"

#include <span>
#include <vector>

#include "base/embedded_file.h"
#include "train/data/shard_writer.h"

namespace assay::train {

std::span<const base::EmbeddedFile> embedded_files();

base::Result<void> write_builtin_text(const std::filesystem::path& path) {
  ASSAY_TRY(data::ShardWriter writer, data::ShardWriter::create(path, 256));
  for (const base::EmbeddedFile& file : embedded_files()) {
    std::vector<std::uint32_t> tokens;
    for (const char byte : file.contents) tokens.push_back(static_cast<unsigned char>(byte));
    ASSAY_TRY_VOID(writer.append(tokens));
  }
  ASSAY_TRY_VOID(writer.finish());
  return {};
}

}  // namespace assay::train
