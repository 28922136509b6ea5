//===- SafeTensorsHeader.h - The header's JSON as flat tables ------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_SAFETENSORSHEADER_H
#define DS_LIB_RUNTIME_FORMATS_SAFETENSORSHEADER_H

#include "ds/Runtime/Formats/FileDType.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// What the JSON says, unverified beyond its form. Texts and dimensions are windows of two flat arrays; the
/// header's limit of 100 MB lets 32 bits address them.
struct HeaderTables {
  struct Text {
    uint32_t offset = 0, length = 0;
  };
  struct Tensor {
    Text name;
    uint32_t firstDim = 0;
    uint8_t rank = 0;
    FileDType dtype = FileDType::F32;
    uint64_t begin = 0, end = 0; ///< data_offsets
  };
  struct Pair {
    Text key, value;
  };

  std::vector<char> text;
  std::vector<int64_t> dims;
  std::vector<Tensor> tensors; ///< in the order of the JSON
  std::vector<Pair> metadata;

  std::string_view view(Text window) const { return {text.data() + window.offset, window.length}; }
};

/// Reads the JSON. On a violation returns false and says in `message` what and where; the tables are then
/// incomplete. Duplicate names are not looked for here but in the sorted tables.
bool parseHeader(std::string_view json, HeaderTables &tables, std::string &message);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_SAFETENSORSHEADER_H
