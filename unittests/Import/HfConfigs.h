//===- HfConfigs.h - Configurations of published models, for tests --------------===//
#ifndef DS_UNITTESTS_IMPORT_HFCONFIGS_H
#define DS_UNITTESTS_IMPORT_HFCONFIGS_H

#include <cstdint>
#include <string_view>

namespace ds::test {

/// A model that has a name here.
struct PublishedModel {
  std::string_view name;
  int64_t parameters;
  int64_t active = 0; ///< of them for a token, where that is not all of them
};

/// As their authors count, Whisper's with the encoder's positions; those of DeepSeek V3 without the layer
/// that predicts a token more and the routers' corrections, and the active ones with both tables of tokens.
inline constexpr PublishedModel kPublished[] = {{"gpt2", 124'439'808},                               //
                                                {"gpt2-medium", 354'823'168},                        //
                                                {"gpt2-large", 774'030'080},                         //
                                                {"gpt2-xl", 1'557'611'200},                          //
                                                {"bert-base-uncased", 109'514'298},                  //
                                                {"pythia-160m", 162'322'944},                        //
                                                {"pythia-1.4b", 1'414'647'808},                      //
                                                {"pythia-6.9b", 6'857'302'016},                      //
                                                {"tinyllama-1.1b", 1'100'048'384},                   //
                                                {"llama-2-7b", 6'738'415'616},                       //
                                                {"llama-2-13b", 13'015'864'320},                     //
                                                {"llama-2-70b", 68'976'648'192},                     //
                                                {"llama-3.1-8b", 8'030'261'248},                     //
                                                {"llama-3.1-70b", 70'553'706'496},                   //
                                                {"llama-3.2-1b", 1'235'814'400},                     //
                                                {"llama-3.2-3b", 3'212'749'824},                     //
                                                {"mistral-7b", 7'241'732'096},                       //
                                                {"qwen2.5-0.5b", 494'032'768},                       //
                                                {"qwen2.5-1.5b", 1'543'714'304},                     //
                                                {"qwen2.5-7b", 7'615'616'512},                       //
                                                {"qwen2.5-32b", 32'763'876'352},                     //
                                                {"qwen3-0.6b", 596'049'920},                         //
                                                {"qwen3-8b", 8'190'735'360},                         //
                                                {"phi-2", 2'779'683'840},                            //
                                                {"phi-3-mini-4k", 3'821'079'552},                    //
                                                {"olmo2-7b", 7'298'617'344},                         //
                                                {"granite-3.0-2b", 2'533'531'648},                   //
                                                {"minicpm-2b", 2'724'880'896},                       //
                                                {"gemma-2b", 2'506'172'416},                         //
                                                {"gemma-2-2b", 2'614'341'888},                       //
                                                {"gemma-2-9b", 9'241'705'984},                       //
                                                {"gemma-3-1b", 999'885'952},                         //
                                                {"smollm3-3b", 3'075'098'624},                       //
                                                {"glm-4-9b", 9'400'279'040},                         //
                                                {"stablelm-2-1.6b", 1'644'515'328},                  //
                                                {"starcoder2-3b", 3'030'371'328},                    //
                                                {"minitron-4b", 4'190'509'056},                      //
                                                {"command-r", 34'980'831'232},                       //
                                                {"gpt-j-6b", 6'050'882'784},                         //
                                                {"gpt-neo-1.3b", 1'315'575'808},                     //
                                                {"starcoderbase-1b", 1'137'207'296},                 //
                                                {"falcon-7b", 6'921'720'704},                        //
                                                {"falcon-40b", 41'303'293'952},                      //
                                                {"opt-350m", 331'196'416},                           //
                                                {"opt-1.3b", 1'315'758'080},                         //
                                                {"bloom-560m", 559'214'592},                         //
                                                {"mixtral-8x7b", 46'702'792'704, 12'879'925'248},    //
                                                {"qwen3-30b-a3b", 30'532'122'624, 3'353'032'704},    //
                                                {"deepseek-v2-lite", 15'706'484'224, 2'661'150'208}, //
                                                {"deepseek-v3", 671'026'404'352, 37'552'282'624},    //
                                                {"gpt-oss-20b", 20'914'757'184, 4'187'440'704},
                                                {"whisper-tiny", 37'760'640},
                                                {"whisper-base", 72'593'920},
                                                {"whisper-small", 241'734'912},
                                                {"whisper-medium", 763'857'920},
                                                {"whisper-large-v3", 1'543'490'560}};

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
