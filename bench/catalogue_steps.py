# SPDX-License-Identifier: Apache-2.0
"""One step of decoding of transformers' models: a token a row, keys and values of what came before as inputs."""
from catalogue import entry
from catalogue_language import LLAMA, WHISPER
from catalogue_transformers import CAUSAL, IDS, SEQ2SEQ

PAST = 511


def pairs_of(tensors):
    return list(zip(tensors[::2], tensors[1::2]))


def decoder_step(name, cls, config, past=PAST):
    """Decoders of text; the same layers when small, but a short past."""
    def make(small, batch):
        import torch
        import transformers
        settings = getattr(transformers, f"{cls}Config")(**config)
        settings._attn_implementation = "sdpa"

        class Step(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = getattr(transformers, f"{cls}ForCausalLM")(settings)

            def forward(self, ids, *cache):
                held = transformers.DynamicCache(pairs_of(cache))
                logits = self.inner(input_ids=ids, past_key_values=held, use_cache=True, return_dict=True).logits
                return (logits, *(t for layer in held.layers for t in (layer.keys, layer.values)))

        heads = getattr(settings, "num_key_value_heads", None) or settings.num_attention_heads
        size = getattr(settings, "head_dim", None) or settings.hidden_size // settings.num_attention_heads
        cache = (torch.rand(batch, heads, 8 if small else past, size) for _ in range(2 * settings.num_hidden_layers))
        return Step(), (torch.randint(0, 1000, (batch, 1)), *cache)
    entry(name, "transformers")(make)


def translator_step(name, cls, config, layers, heads, size, source=128, past=63):
    """Decoders that attend to an encoder, whose keys and values are inputs too."""
    def make(small, batch):
        import torch
        import transformers
        settings = getattr(transformers, f"{cls}Config")(**config)
        settings._attn_implementation = "sdpa" if getattr(getattr(transformers, f"{cls}Model"), "_supports_sdpa", False) else "eager"
        width = settings.d_model

        class Step(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = getattr(transformers, f"{cls}ForConditionalGeneration")(settings)

            def forward(self, ids, encoded, *cache):
                own, cross = (transformers.DynamicCache(pairs_of(part)) for part in (cache[:2 * layers], cache[2 * layers:]))
                held = transformers.EncoderDecoderCache(own, cross)
                logits = self.inner(encoder_outputs=(encoded,), decoder_input_ids=ids, past_key_values=held, use_cache=True, return_dict=True).logits
                return (logits, *(t for layer in own.layers for t in (layer.keys, layer.values)))

        cache = [torch.rand(batch, heads, past, size) for _ in range(2 * layers)] + [torch.rand(batch, heads, source, size) for _ in range(2 * layers)]
        return Step(), (torch.randint(3, 1000, (batch, 1)), torch.rand(batch, source, width), *cache)
    entry(name, "transformers")(make)


decoder_step("llama_step", "Llama", LLAMA)
decoder_step("qwen3_step", "Qwen3", CAUSAL)
decoder_step("mistral_step", "Mistral", {**CAUSAL, "sliding_window": None})
decoder_step("gemma2_step", "Gemma2", {**CAUSAL, "sliding_window": 4096})
decoder_step("gpt_neox_step", "GPTNeoX", {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "intermediate_size": 4096, "vocab_size": 8000})
decoder_step("mixtral_step", "Mixtral", {**CAUSAL, "num_local_experts": 4, "experts_implementation": "batched_mm"})
translator_step("t5_step", "T5", {"vocab_size": 8000}, 6, 8, 64)
translator_step("bart_step", "Bart", {**SEQ2SEQ}, 3, 8, 64)
translator_step("whisper_step", "Whisper", {**WHISPER, "vocab_size": 8000, "decoder_start_token_id": 1, **IDS}, 6, 8, 64, source=1500)
