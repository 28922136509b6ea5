//===- HfShape.h - The sizes that a Hugging Face config.json gives --------------===//
//
// What planning by rules needs of a model: numbers, and no graph.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_IMPORT_HFSHAPE_H
#define DS_IMPORT_HFSHAPE_H

#include "ds/Cost/Model.h"
#include "ds/Import/HfRequest.h"
#include "ds/Support/Notice.h"

#include <string>
#include <vector>

namespace ds {

struct HfShape {
  cost::ModelShape shape; ///< `seq` is the length of the samples
  int64_t batch = 1;      ///< samples of one micro-step on one rank
  int64_t positions = 1;  ///< samples are at most so long
  bool fusedAttention = false;
  std::string whyNoProgram = {}; ///< where rules are all there is; else empty
  std::vector<Notice> notices;   ///< what the user should know, one line each
};

/// Reads the sizes that the config.json gives. Errors are those of buildHfModel; models that rules do not
/// cover are Invalid.
Result<HfShape> readHfShape(const HfRequest &request);

/// The input of the config.json's model whose length is that of the samples: "input_ids", or "labels" where
/// the model reads no tokens but says some. What cannot be read has "input_ids": whoever builds it says why.
std::string lengthInput(const std::string &path);

} // namespace ds

#endif // DS_IMPORT_HFSHAPE_H
