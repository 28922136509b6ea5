//===- FamilyReaders.h - The readers of all families of decoders ------------------===//
//
// A reader takes its keys and gives the page that describes its models; each stands in Families/, and
// FamilyTable.cpp has the table of them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_FAMILYREADERS_H
#define DS_LIB_IMPORT_HF_FAMILYREADERS_H

#include "Decoder.h"

namespace ds::hf {

DecoderSpec readBloom(const Section &config);
DecoderSpec readCohere(const Section &config);
DecoderSpec readDeepSeekV2(const Section &config);
DecoderSpec readDeepSeekV3(const Section &config);
DecoderSpec readFalcon(const Section &config);
DecoderSpec readGemma(const Section &config);
DecoderSpec readGemma2(const Section &config);
DecoderSpec readGemma3(const Section &config);
DecoderSpec readGlm4(const Section &config);
DecoderSpec readGpt2(const Section &config);
DecoderSpec readGptBigcode(const Section &config);
DecoderSpec readGptJ(const Section &config);
DecoderSpec readGptNeo(const Section &config);
DecoderSpec readGptNeox(const Section &config);
DecoderSpec readGptOss(const Section &config);
DecoderSpec readGranite(const Section &config);
DecoderSpec readLlama(const Section &config);
DecoderSpec readLlama4(const Section &config);
/// The text part of a model that reads pictures as well.
DecoderSpec readLlama4Text(const Section &config);
DecoderSpec readMiniCpm(const Section &config);
DecoderSpec readMistral(const Section &config);
DecoderSpec readMixtral(const Section &config);
DecoderSpec readNemotron(const Section &config);
DecoderSpec readOlmo(const Section &config);
DecoderSpec readOlmo2(const Section &config);
DecoderSpec readOpt(const Section &config);
DecoderSpec readPhi(const Section &config);
DecoderSpec readPhi3(const Section &config);
DecoderSpec readQwen2(const Section &config);
DecoderSpec readQwen2Moe(const Section &config);
DecoderSpec readQwen3(const Section &config);
DecoderSpec readQwen3Moe(const Section &config);
DecoderSpec readSmolLm3(const Section &config);
DecoderSpec readStableLm(const Section &config);
DecoderSpec readStarcoder2(const Section &config);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_FAMILYREADERS_H
