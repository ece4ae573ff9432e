// assay data tokenize | synth | info: shards of tokens, made from text, made up, and looked at.
#include <memory>

#include "assay/data/actions.h"
#include "assay/verbs.h"
#include "train/data/synth.h"
#include "train/data/token_type.h"
#include "train/data/word_splitter.h"

namespace assay::cli {

Verb data_verb(const Session& session) {
  const auto given = std::make_shared<DataOptions>();
  const Option output{"-o,--output", "the shard to write", &given->output, {}, "FILE", true};
  Verb verb{"data",
            "shards of tokens: from text, made up, looked at",
            {"assay data synth -o tiny.tokens --tokens 1e6 --vocab 512",
             "assay data info tiny.tokens --verify"}};
  verb.verbs = {
      {.name = "tokenize",
       .description = "make a shard of tokens from text",
       .examples = {"assay data tokenize raw.txt -o raw.tokens",
                    "assay data tokenize a.txt b.txt -o ab.tokens --tokenizer tokenizer.json",
                    "cat raw.txt | assay data tokenize - -o raw.tokens --append-eos 256"},
       .arguments = {{.name = "FILE",
                      .help = "documents, one each, or - for standard input",
                      .required = true,
                      .files = true,
                      .values = &given->files}},
       .options = {output,
                   {"--tokenizer",
                    "bytes (default), a HuggingFace tokenizer.json or a tiktoken file",
                    &given->tokenizer.source, [] { return std::vector<std::string>{"bytes"}; },
                    "NAME|FILE", true},
                   {"--pattern",
                    "how text is split for a tiktoken file: gpt2, cl100k, o200k or llama3",
                    &given->tokenizer.pattern, data::split_pattern_names, "NAME"},
                   {"--special",
                    "a special token of a tiktoken file; repeatable",
                    &given->tokenizer.special,
                    {},
                    "TEXT=ID"},
                   {"--special-as-text", "added and special tokens in documents are ordinary text",
                    &given->tokenizer.added_as_text},
                   {"--append-eos", "a token after every document", &given->eos, {}, "ID"}},
       .action = [&session, given] { return data_tokenize(session, *given); }},
      {.name = "synth",
       .description = "make up a shard, the same on every machine",
       .examples = {"assay data synth -o tiny.tokens --tokens 1e6 --vocab 512",
                    "assay data synth -o noise.tokens --tokens 1e6 --vocab 50304 --kind uniform "
                    "--seed 7"},
       .options = {output,
                   {"--tokens", "how many, such as 1e6", &given->tokens, {}, "N"},
                   {"--vocab", "tokens are below this", &given->vocabulary, {}, "V"},
                   {"--seed", "another seed, other tokens; default: 0", &given->seed, {}, "S"},
                   {"--kind", "markov (default): learnable; uniform: noise", &given->kind,
                    data::synth_kind_names, "KIND"}},
       .action = [&session, given] { return data_synth(session, *given); }},
      {.name = "info",
       .description = "what shards hold, and whether they are whole",
       .examples = {"assay data info tiny.tokens", "assay data info . --verify --json"},
       .arguments = {{.name = "FILE",
                      .help = "shards, folders of *.tokens, or patterns",
                      .required = true,
                      .files = true,
                      .values = &given->files}},
       .options =
           {{"--verify", "compare the hash and look at every token", &given->verify},
            {"--dtype", "the files have no header and are of this type: u16 or u32", &given->dtype,
             data::token_type_names, "TYPE"},
            {"--vocab", "the vocabulary of files without a header", &given->vocabulary, {}, "V"}},
       .action = [&session, given] { return data_info(session, *given); }},
  };
  return verb;
}

}  // namespace assay::cli
