//===- HfConfigs.h - Configurations of published models, for tests --------------===//
#ifndef DS_UNITTESTS_IMPORT_HFCONFIGS_H
#define DS_UNITTESTS_IMPORT_HFCONFIGS_H

namespace ds::test {

inline constexpr const char *kGpt2 = R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
  "activation_function": "gelu_new", "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1,
  "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 1024, "n_embd": 768,
  "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null,
  "summary_first_dropout": 0.1, "summary_proj_to_labels": true, "summary_type": "cls_index",
  "summary_use_proj": true, "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}},
  "vocab_size": 50257})";

inline constexpr const char *kGpt2Xl = R"({"model_type": "gpt2", "activation_function": "gelu_new",
  "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024, "vocab_size": 50257,
  "output_past": true})";

inline constexpr const char *kLlama2 = R"({"architectures": ["LlamaForCausalLM"], "bos_token_id": 1,
  "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
  "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
  "rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16",
  "transformers_version": "4.31.0.dev0", "use_cache": true, "vocab_size": 32000})";

inline constexpr const char *kLlama2Large =
    R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 8192,
  "intermediate_size": 28672, "max_position_embeddings": 4096, "num_attention_heads": 64,
  "num_hidden_layers": 80, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "vocab_size": 32000})";

inline constexpr const char *kLlama3 = R"({"attention_bias": false, "attention_dropout": 0.0,
  "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
  "max_position_embeddings": 8192, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 128256})";

inline constexpr const char *kMistral =
    R"({"hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
  "tie_word_embeddings": false, "vocab_size": 32000})";

inline constexpr const char *kQwen2 = R"({"attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 896,
  "initializer_range": 0.02, "intermediate_size": 4864, "max_position_embeddings": 131072,
  "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
  "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 131072,
  "tie_word_embeddings": true, "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})";

inline constexpr const char *kPythia = R"({"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0,
  "eos_token_id": 0, "hidden_act": "gelu", "hidden_size": 768, "initializer_range": 0.02,
  "intermediate_size": 3072, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neox",
  "num_attention_heads": 12, "num_hidden_layers": 12, "rotary_emb_base": 10000, "rotary_pct": 0.25,
  "tie_word_embeddings": false, "use_cache": true, "use_parallel_residual": true, "vocab_size": 50304})";

inline constexpr const char *kBert = R"({"architectures": ["BertForMaskedLM"],
  "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": false, "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072,
  "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12,
  "num_hidden_layers": 12, "pad_token_id": 0, "position_embedding_type": "absolute", "type_vocab_size": 2,
  "use_cache": true, "vocab_size": 30522})";

} // namespace ds::test

#endif // DS_UNITTESTS_IMPORT_HFCONFIGS_H
