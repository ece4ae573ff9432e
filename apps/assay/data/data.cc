// assay data tokenize | train-tokenizer | synth | info: the options of the verbs; actions.cc and
// actions_train_tokenizer.cc carry them out.
#include <memory>

#include "assay/data/actions.h"
#include "assay/recorded_verb.h"
#include "assay/verbs.h"
#include "train/data/documents/input_files.h"
#include "train/data/shard_format.h"
#include "train/data/synth.h"
#include "train/data/word_splitter.h"

namespace assay::cli {

Verb data_verb(const Session& session) {
  const auto options = std::make_shared<DataOptions>();
  const Option output{"-o,--output", "the shard to write", &options->output, {}, "FILE", true};
  // For documents that are tokenized, or from which a vocabulary is trained.
  const Option column{
      "--column",
      "the key of JSON lines, or the column of Parquet files, with the text; default: text",
      &options->column,
      {},
      "KEY"};
  const Option format{
      "--format",
      "text, jsonl or parquet, whatever the files are named; default: as their names say",
      &options->format, data::document_format_names, "FORMAT"};
  const Option skip{
      "--skip-bad-rows",
      "skip and count rows that are not valid JSON or have no text; default: the first "
      "one is an error",
      &options->skip_bad_rows};
  const Option jobs{
      "--jobs", "number of threads; default: all processors", &options->jobs, {}, "N"};
  Verb verb{"data",
            "make and inspect token shards",
            {"assay data synth -o tiny.tokens --tokens 1e6 --vocab 512",
             "assay data info tiny.tokens --verify"}};
  verb.verbs = {
      {.name = "tokenize",
       .description = "tokenize documents into a shard; resumes after an interruption",
       .examples = {"assay data tokenize raw.txt -o raw.tokens",
                    "assay data tokenize a.txt b.txt -o ab.tokens --tokenizer tokenizer.json",
                    "assay data tokenize pages.jsonl texts/ -o all.tokens --column text",
                    "cat raw.txt | assay data tokenize - -o raw.tokens --append-eos 256"},
       .arguments = {{.name = "FILE",
                      .help = "text (one document per file), JSON lines, both also as .gz and "
                              ".zst, Parquet, folders of them, or - for standard input",
                      .required = true,
                      .files = true,
                      .values = &options->files}},
       .options =
           {output,
            {"--tokenizer", "bytes (default), a HuggingFace tokenizer.json or a tiktoken file",
             &options->tokenizer.source, [] { return std::vector<std::string>{"bytes"}; },
             "NAME|FILE", true},
            {"--pattern", "how text is split for a tiktoken file: gpt2, cl100k, o200k or llama3",
             &options->tokenizer.pattern, data::split_pattern_names, "NAME"},
            {"--special",
             "a special token of a tiktoken file",
             &options->tokenizer.special,
             {},
             "TEXT=ID"},
            {"--special-as-text", "treat added and special tokens in documents as ordinary text",
             &options->tokenizer.added_as_text},
            {"--bos",
             "the token before every document: its text, its id or none; default: the tokenizer's "
             "own, if it has one",
             &options->bos, [] { return std::vector<std::string>{"none"}; }, "TOKEN"},
            {"--append-eos",
             "append this token to every document: its text or its id",
             &options->eos,
             {},
             "TOKEN"},
            column,
            format,
            skip,
            jobs},
       .action = [&session, options] { return data_tokenize(session, *options); }},
      {.name = "train-tokenizer",
       .description = "train a byte-pair vocabulary; writes tokenizer.json and tiktoken files",
       .examples = {"assay data train-tokenizer a.txt b.txt -o words.json --vocab 300",
                    "assay data train-tokenizer texts/ -o words.json --vocab 300 --special "
                    "'<|endoftext|>'"},
       .arguments = {{.name = "FILE",
                      .help = "documents, as for `assay data tokenize`",
                      .required = true,
                      .files = true,
                      .values = &options->files}},
       .options =
           {{"-o,--output",
             "the tokenizer.json to write; a tiktoken file goes beside it",
             &options->output,
             {},
             "FILE.json",
             true},
            {"--vocab",
             "vocabulary size, including the 256 bytes and the special tokens; default: 32768",
             &options->vocabulary,
             {},
             "V"},
            {"--pattern", "how text is split: gpt2, cl100k, o200k or llama3 (default)",
             &options->tokenizer.pattern, data::split_pattern_names, "NAME"},
            {"--special",
             "a special token; default: <|bos|>",
             &options->tokenizer.special,
             {},
             "TEXT"},
            column,
            format,
            skip,
            jobs},
       .action = [&session, options] { return data_train_tokenizer(session, *options); }},
      {.name = "synth",
       .description = "generate a synthetic shard, the same on every machine",
       .examples = {"assay data synth -o tiny.tokens --tokens 1e6 --vocab 512",
                    "assay data synth -o noise.tokens --tokens 1e6 --vocab 50304 --kind uniform "
                    "--seed 7"},
       .options = {output,
                   {"--tokens", "number of tokens, such as 1e6", &options->tokens, {}, "N"},
                   {"--vocab", "vocabulary size", &options->vocabulary, {}, "V"},
                   {"--seed", "random seed; default: 0", &options->seed, {}, "S"},
                   {"--kind", "markov (default): learnable; uniform: noise", &options->kind,
                    data::synth_kind_names, "KIND"}},
       .action = [&session, options] { return data_synth(session, *options); }},
      {.name = "info",
       .description = "show and verify shards",
       .examples = {"assay data info tiny.tokens", "assay data info . --verify --json"},
       .arguments = {{.name = "FILE",
                      .help = "shards, folders of *.tokens, or patterns",
                      .required = true,
                      .files = true,
                      .values = &options->files}},
       .options = {{"--verify", "check the hash and every token", &options->verify},
                   {"--dtype", "token type of files without a header: u16 or u32", &options->dtype,
                    data::token_type_names, "TYPE"},
                   {"--vocab",
                    "vocabulary size of files without a header",
                    &options->vocabulary,
                    {},
                    "V"}},
       .action = [&session, options] { return data_info(session, *options); }},
  };
  for (Verb& one : verb.verbs) {
    if (one.name != "info") one = recorded(session, std::move(one));  // the others make files
  }
  return verb;
}

}  // namespace assay::cli
