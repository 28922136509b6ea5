//===- SafeTensorsIndex.h - Which shard holds which tensor ---------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_SAFETENSORSINDEX_H
#define DS_LIB_RUNTIME_FORMATS_SAFETENSORSINDEX_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// The contents of a model.safetensors.index.json.
struct WeightIndex {
  std::vector<std::string> files;                         ///< sorted; names as they stand, not yet judged
  std::map<std::string, uint32_t, std::less<>> weightMap; ///< tensor name -> index into files
};

/// Reads `{"metadata":{...},"weight_map":{name:file}}`. On a violation (not JSON, duplicate key, a file that
/// is not a string, no weight_map) returns false and says in `message` what and where.
bool parseIndex(std::string_view json, WeightIndex &index, std::string &message);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_SAFETENSORSINDEX_H
