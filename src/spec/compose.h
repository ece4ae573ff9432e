// Composition: a document plus what it extends plus the command line's --set, as one document.
//
//   extends = "llama3-8b"      at the top of a file: start from that whole document
//   [model] extends = "…"      in a section: start from that document's section of the same name
//   --set model.layers=4       written over the file
//
// A name without "/" and ".toml" is a preset; anything else is a file, relative to the file that
// names it. What is nearer wins. A section with its own `extends` takes nothing from the section
// of the document that its file extends: the two would mix into something that neither file
// describes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/value.h"

namespace assay::spec {

struct ComposeOptions {
  std::span<const std::string> overrides;  // "model.layers=4"
  std::function<Value()> this_machine;     // makes the document of the preset `this-machine`
};

struct Composed {
  std::string name;  // the preset's name, or the file's without .toml
  Value document;    // no `extends` left
};

// `reference` is a preset's name, a path, or "-" for standard input. The file it names may be a
// pipe, since a person named it; what documents extend may not.
base::Result<Composed> compose(std::string_view reference, const ComposeOptions& options);

// Whether `extends` may stand in this section; the whole file is "".
bool may_extend(std::string_view section);

}  // namespace assay::spec
