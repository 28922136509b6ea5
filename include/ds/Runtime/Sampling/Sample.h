//===- Sample.h - Text from a trained model ---------------------------------===//
//
// What `ds-run PROGRAM --sample TEXT` does. The program's entry for logits is run once for each token: behind
// the tokens so far stands padding, which a causal model does not see, and only the logits of the last token
// are computed. Once there are more tokens than a sample of the program has, the last ones are taken, from
// the position 0 on.
//
// Every sample of a micro-batch and every rank has the same tokens, and rank 0 chooses for all. With ZeRO's
// stages ranks gather what they need, as in a step. Nothing is kept between tokens (no cache of keys and
// values): each costs a forward of a whole micro-batch.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_SAMPLING_SAMPLE_H
#define DS_RUNTIME_SAMPLING_SAMPLE_H

#include "ds/Runtime/Job/TrainOptions.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::rt {

struct SampleOptions {
  std::optional<std::string> text; ///< what it begins with; else `tokens`
  std::vector<int64_t> tokens;
  std::string tokenizer;  ///< a tokenizer.json; empty: the one beside the weights or the program
  uint64_t length = 100;  ///< tokens to write
  double temperature = 1; ///< that logits are divided by; 0: the most likely token
  uint64_t topK = 0;      ///< likeliest tokens that are drawn from; 0: all
  uint64_t seed = 0;
};

/// Samples to the end or to the first error: the text, or with tokens their numbers, goes to stdout, as it
/// comes. Of `run` counts what says which program, weights, ranks, device and log.
Status sample(const TrainOptions &run, const SampleOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_SAMPLING_SAMPLE_H
