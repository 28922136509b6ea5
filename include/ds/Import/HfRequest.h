//===- HfRequest.h - What is asked of a Hugging Face config.json ----------------===//
#ifndef DS_IMPORT_HFREQUEST_H
#define DS_IMPORT_HFREQUEST_H

#include <cstdint>
#include <string>
#include <vector>

namespace ds {

struct HfRequest {
  std::string path;                ///< the config.json
  std::vector<std::string> inputs; ///< as --input spells them; empty: `microBatch` x the model's positions
  int64_t microBatch = 1;          ///< samples of one micro-step on one rank
  /// The type that is trained in, as torch_dtype has it: "bfloat16". A notice says where it is another one
  /// than checkpoints have; empty: none does.
  std::string trainedIn = {};
};

} // namespace ds

#endif // DS_IMPORT_HFREQUEST_H
