#include "train/checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace assay::checkpoint {

base::Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                          std::span<const TensorInfo> tensors,
                                                          Metadata metadata) {
  ASSAY_TRY(const Header layout, lay_out(tensors, std::move(metadata), path.string()));
  ASSAY_TRY(std::string text, header_bytes(layout, path.string()));
  const std::int64_t data_bytes = layout.tensors.empty() ? 0 : layout.tensors.back().end;
  auto header = std::make_unique<std::string>(std::move(text));
  ASSAY_TRY(OutputFile file,
            OutputFile::create(path, static_cast<std::int64_t>(header->size()) + data_bytes));
  ASSAY_TRY_VOID(file.write(std::as_bytes(std::span(*header))));
  return SafetensorsWriter(std::move(file), std::move(header), path.string(), data_bytes);
}

base::Result<void> SafetensorsWriter::append(std::span<const std::byte> data) {
  if (static_cast<std::int64_t>(data.size()) > missing_) {
    return base::fail(base::usage_error(where_, "more bytes were given than its tensors have"));
  }
  missing_ -= static_cast<std::int64_t>(data.size());
  return file_.write(data);
}

base::Result<FileRecord> SafetensorsWriter::finish() {
  if (missing_ != 0) {
    return base::fail(
        base::usage_error(where_, fmt::format("{} bytes of its tensors were not given", missing_)));
  }
  return file_.finish();
}

base::Result<FileRecord> write_safetensors(const std::filesystem::path& path,
                                           std::span<const Tensor> tensors, Metadata metadata) {
  std::vector<TensorInfo> infos;
  for (const Tensor& tensor : tensors) {
    if (tensor.info.bytes() != static_cast<std::int64_t>(tensor.data.size())) {
      return base::fail(base::usage_error(
          path.string(), fmt::format("tensor '{}' of shape [{}] and type {} has {} bytes",
                                     tensor.info.name, fmt::join(tensor.info.shape, ", "),
                                     dtype_name(tensor.info.dtype), tensor.data.size())));
    }
    infos.push_back(tensor.info);
  }
  ASSAY_TRY(SafetensorsWriter writer, SafetensorsWriter::create(path, infos, std::move(metadata)));
  for (const Tensor& tensor : tensors) ASSAY_TRY_VOID(writer.append(tensor.data));
  return writer.finish();
}

}  // namespace assay::checkpoint
