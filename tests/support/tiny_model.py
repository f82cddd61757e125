"""A language model of 100 kB, made on the spot: the architecture and the file format of real ones, and random weights.

It proves that a model is loaded, prompted, held to a schema and stopped; what it says means nothing. Its tokens are the
256 bytes. Strings would be as long as the dice will have them, and hardly a character whole, so one direction of its
space leans towards what ends a string, by `ends`, and towards ASCII.
"""

from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np

from tests.support.tiny_templates import ROLES_TEMPLATE

Tokenizer = Literal["llama", "gpt2"]
WIDTH, HIDDEN, HEADS, LAYERS, CONTEXT = 32, 64, 4, 1, 65536
ENDING = b'"]}'
NEVER = -30.0
# What stands before the tokens of the bytes.
SPECIAL: dict[Tokenizer, tuple[str, ...]] = {
    "llama": ("<unk>", "<s>", "</s>"),
    "gpt2": ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
}


def write_tiny_model(
    path: Path,
    *,
    seed: int = 0,
    chat_template: str | None = ROLES_TEMPLATE,
    ends: float = 4.0,
    tokenizer: Tokenizer = "llama",
) -> Path:
    """Write the model; equal arguments make equal files."""
    writer = gguf.GGUFWriter(str(path), "llama")
    _describe(writer)
    _tokenize(writer, tokenizer)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    for name, values in _weights(np.random.default_rng(seed), ends).items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _describe(writer: gguf.GGUFWriter) -> None:
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)


def _tokenize(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    kinds = gguf.TokenType
    special = SPECIAL[tokenizer]
    writer.add_tokenizer_model(tokenizer)
    if tokenizer == "llama":
        writer.add_token_list([*special, *(f"<0x{byte:02X}>" for byte in range(256))])
        writer.add_token_scores([0.0] * (len(special) + 256))
        writer.add_token_types([kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL] + [kinds.BYTE] * 256)
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
    else:
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list([*special, *_printable_bytes()])
        writer.add_token_types([kinds.CONTROL] * 3 + [kinds.NORMAL] * 256)
        # A merge whose result is no token is never made.
        writer.add_token_merges(["Q Z"])
        writer.add_add_bos_token(False)
    writer.add_eos_token_id(2)


def _printable_bytes() -> list[str]:
    """How such vocabularies write the 256 bytes: those that do not print as the characters from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


def _weights(rng: np.random.Generator, ends: float) -> dict[str, Any]:
    def dice(*shape: int) -> Any:
        return rng.normal(0, 0.3, shape)

    special = len(SPECIAL["llama"])
    embeddings, output = dice(special + 256, WIDTH), dice(special + 256, WIDTH)
    # The same in every state of the model, and so a bias on the tokens whose output weight it meets.
    embeddings[:, 0], output[:, 0] = 3.0, 0.0
    output[special + 0x80 :, 0] = NEVER
    for byte in ENDING:
        output[special + byte, 0] = ends
    weights = {
        "token_embd.weight": embeddings,
        "output.weight": output,
        "output_norm.weight": np.ones(WIDTH),
    }
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        weights |= {f"{block}{name}_norm.weight": np.ones(WIDTH) for name in ("attn", "ffn")}
        weights |= {
            f"{block}attn_{name}.weight": dice(WIDTH, WIDTH) for name in ("q", "k", "v", "output")
        }
        weights |= {f"{block}ffn_{name}.weight": dice(HIDDEN, WIDTH) for name in ("gate", "up")}
        weights[f"{block}ffn_down.weight"] = dice(WIDTH, HIDDEN)
    return weights
