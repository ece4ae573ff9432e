#!/usr/bin/env python3
"""Makes the vocabularies and expected tokens in this folder with the reference tokenizers.

    python3 -m venv VENV && VENV/bin/pip install tokenizers tiktoken
    VENV/bin/python tests/tokenizers/make_vectors.py

The vocabularies are trained on the text below. Each line of vectors.txt is a vocabulary, a text in
hexadecimal and its tokens. The references accept only Unicode; for bytes that are not UTF-8 the
expected tokens are Assay's documented ones: words of one byte that end the text before them.
"""
import base64
import json
import pathlib
import random

import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
          r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + _ENDING +
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + _ENDING +
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PATTERNS = {"gpt2": GPT2, "cl100k": CL100K, "llama3": LLAMA3, "o200k": O200K}
SPECIAL = ["<|endoftext|>", "<|end|>", "<|endo"]

TEXT = [
    "The assayer weighs the ore, and then the assayer weighs it again; she doesn't trust the first weighing.",
    "I'm sure they've said that we'll see it's done, and he'd rather you're there. I'M SURE THEY'VE SAID IT'S DONE.",
    "In 2024 the price was 1234567 dollars, in 1999 it was 10,000.50; 3.14159 is about 22/7.",
    "for (int i = 0; i < 100; ++i) {\n    total += values[i];\n\n        if (total > 10) {\r\n\t\treturn total;\n    }\n}\n\n\n",
    "Die Prüferin wägt das Erz, größer als je zuvor; el peso del oro está más allá; l'or pèse très lourd.",
    "Пробирщик взвешивает руду и снова взвешивает её. Η ζύγιση του χρυσού είναι ακριβής.",
    "金の重さを量る。金の重さをもう一度量る。黄金的重量是多少？我们再称一次黄金。금의 무게를 다시 잰다.",
    "👩‍🔬 weighs 🥇 and 🥈; 👍🏽 👍🏽 🎉🎉🎉 — “quoted”, ‘single’… ½ Ⅷ ² ٣٤٥ ๑๒",
    "   spaces   then\ttabs\t\t and \u00a0no-break\u2003em\u3000wide   ",
]
EDGES = [
    "", " ", "  ", "a", " a", "  a", "a ", "a  ", "\n", "\n\n", " \n ", "  \n  ", "  \n  x", "a\n\n  \n", "\r\n\r\n", "\t\tx",
    "'s", "'S", "it's IT'S it'ſ don't", "''s", "we'll'd", "12", "1234", "12345678", "1.5e-3", "²³½Ⅷ", "x1y22z333",
    "\u00a0\u00a0a", "\u3000金", "\u180ea \u180e b", "\u2028\u2029 \u0085x", "a\u0301e\u0308", "\u200d\u200b", "\ufeffbom", "\0\x01\x7f",
    "!!!\n\n", "...\r\n\r\n  x", "((a))", "a_b-c", "=====\n", "https://example.org/a?b=c&d=%20", "\U0001F469\u200D\U0001F52C\U0001F469",
    "<|endoftext|>", "a<|endoftext|> b", "<|endoftext|", "<|endo", "<|endof", "<|end|><|end|>x", "  <|end|>  ", "<<|end|>", "<|<|end|>",
    "e" * 70, " " * 70 + "x", "\n" * 40, "金" * 40, "ab" * 60, "é" * 33 + "1" * 17,
]
BROKEN = [
    b"\xff", b"\xc3", b"a\xc3", b"a \xc3 b", b"  \xff  x", b"\xe9t\xe9", b"\xf0\x9f\x91", b"\xf0\x9f\x91 \xf0\x9f\x91\x8d", b"\xed\xa0\x80",
    b"\xc0\xaf", b"the \xfe\xff weighs\x80\x80 the", b"\xe4\xb8", b"\xf4\x90\x80\x80", bytes(range(128, 256)),
]


def random_texts(seed, count):
    """Strings whose characters meet in ways that no one writes."""
    chance = random.Random(seed)
    pieces = list(" \n\t\r'sStTlLvVrReEdDmM019aAzé金の👍½٣.,!_-\u00a0\u3000\u2003\u0301\u200d\u0085\u180eſ") + [
        "  ", "   ", "\r\n", "the", " weighs", "'ll", "<|end|>", "<|endo", "黄金"]
    return ["".join(chance.choice(pieces) for _ in range(chance.randint(1, 24))) for _ in range(count)]


def all_texts():
    return [t.encode() for t in TEXT + EDGES + random_texts(7, 120)] + BROKEN


def fragments(data):
    """(valid text or None, bytes), in order; what is not UTF-8 byte by byte."""
    text, valid = data.decode("utf-8", "surrogateescape"), ""
    for c in text:
        if 0xDC80 <= ord(c) <= 0xDCFF:
            yield valid, None
            yield None, ord(c) - 0xDC00
            valid = ""
        else:
            valid += c
    yield valid, None


def tokens_of(data, encode, byte_id):
    ids = []
    for text, byte in fragments(data):
        ids += [byte_id(byte)] if text is None else encode(text)
    return ids


def train(size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, trainers.BpeTrainer(vocab_size=size, show_progress=False, min_frequency=1,
                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def gpt2_json():
    """As of GPT-2: ByteLevel with its pattern, merges as strings."""
    tokenizer, trainer = train(500)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    tokenizer.add_special_tokens(SPECIAL)
    file = json.loads(tokenizer.to_str())
    file["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]
    return file


def llama3_json():
    """As of Llama 3: a Split, ByteLevel without its pattern, ignore_merges, merges as pairs, and a
    token that merges never make."""
    tokenizer, trainer = train(420)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.train_from_iterator(TEXT, trainer)
    file = json.loads(tokenizer.to_str())
    file["model"]["ignore_merges"] = True
    file["model"]["merges"] = [m.split(" ") if isinstance(m, str) else m for m in file["model"]["merges"]]
    for word in ["zzz", "Ġassayer", "aAz", "12345"]:
        file["model"]["vocab"].setdefault(word, len(file["model"]["vocab"]))
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.add_special_tokens([AddedToken(s, normalized=False) for s in SPECIAL])
    tokenizer.add_tokens(["weighs<>"])
    return json.loads(tokenizer.to_str())


def letters():
    """GPT-2's alphabet, by byte."""
    kept = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    rest = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def main():
    spelled = letters()
    lines = []
    for name, file in {"gpt2.json": gpt2_json(), "llama3.json": llama3_json()}.items():
        text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
        (HERE / name).write_text(text + "\n")
        tokenizer = Tokenizer.from_str(text)
        vocab = file["model"]["vocab"]
        for data in all_texts():
            ids = tokens_of(data, lambda t: tokenizer.encode(t, add_special_tokens=False).ids, lambda b: vocab[spelled[b]])
            lines.append((name, data, ids))

    # Ranks in another order than the bytes', and tokens that merges alone would not make.
    file = llama3_json()
    byte_of = {letter: byte for byte, letter in spelled.items()}
    words = [bytes(byte_of[c] for c in word) for word, _ in sorted(file["model"]["vocab"].items(), key=lambda e: e[1])]
    ranks = {word: rank for rank, word in enumerate(words)}
    (HERE / "small.tiktoken").write_text("".join(f"{base64.b64encode(w).decode()} {r}\n" for w, r in ranks.items()))
    # Not the one that begins another: which of the two tiktoken takes is left to chance.
    special = {text: len(ranks) + i for i, text in enumerate(SPECIAL[:2])}
    for name, pattern in PATTERNS.items():
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
        for data in all_texts():
            ids = tokens_of(data, lambda t: encoding.encode(t, allowed_special="all"), lambda b: ranks[bytes([b])])
            lines.append((f"small.tiktoken:{name}", data, ids))

    with open(HERE / "vectors.txt", "w") as out:
        for name, data, ids in lines:
            out.write(f"{name} {data.hex() or '-'} {','.join(map(str, ids)) or '-'}\n")
    print(f"{len(lines)} vectors; special tokens of small.tiktoken: {special}")


if __name__ == "__main__":
    main()
