//===- Qwen.cpp - Qwen2 and Qwen3 -------------------------------------------===//
//
// As Llama; Qwen2 has biases of query, key and value, Qwen3 norms of their heads in place of them. Layers
// from max_window_layers onwards have a window where use_sliding_window asks for it.
//
//===---------------------------------------------------------------------------===//

#include "Families.h"

using namespace ::ds::hf;
namespace hf = ::ds::hf;

DecoderSpec hf::readQwen2(const Section &config) {
  DecoderSpec spec = readLlamaLike(config);
  spec.biases.qkv = true;
  readLateWindows(config, spec);
  return spec;
}

DecoderSpec hf::readQwen3(const Section &config) {
  SizeKeys sizes;
  sizes.defaultSize = 128;
  DecoderSpec spec = readLlamaLike(config, sizes);
  spec.biases.qkv = spec.biases.output = config.flag("attention_bias", false);
  spec.headNorm = HeadNorm::Head;
  readLateWindows(config, spec);
  return spec;
}
