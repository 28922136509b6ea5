//===- DataColumns.h - A data file as one column of samples per input ----------===//
#ifndef DS_LIB_RUNTIME_DATA_DATACOLUMNS_H
#define DS_LIB_RUNTIME_DATA_DATACOLUMNS_H

#include "TokenInputs.h"
#include "ds/Runtime/Data/DataSource.h"
#include "ds/Runtime/Data/IndexedTokens.h"
#include "ds/Runtime/Formats/Npy.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <variant>

namespace ds::rt {

/// The samples of one input: sample i has `elements` packed elements at data + i * stride. In a token stream
/// samples overlap by one token, and the targets' column is the inputs' one, a token later.
struct Column {
  const std::byte *data = nullptr;
  FileDType dtype = FileDType::I64;
  size_t stride = 0;       ///< bytes
  size_t elements = 0;     ///< of one sample
  uint64_t firstToken = 0; ///< token streams: position of sample 0's first token in the file
};

/// The tensor of a .safetensors file that says which targets count, if no argument has that name.
inline constexpr std::string_view kLossMask = "loss_mask";

/// An open data file in that form.
struct Columns {
  std::variant<std::monostate, SafeTensorsFile, NpyFile, TokenStream, IndexedTokens>
      file;                    ///< keeps it mapped
  std::vector<Column> columns; ///< one per input
  uint64_t numSamples = 0;
  uint64_t numTokens = 0;
  std::optional<TokenInputs> places; ///< of a token stream; inputs known by name have no column
  std::optional<Column> mask;        ///< 0 or 1 for each element of input `masked`
  size_t masked = 0;

  bool isTokenStream() const { return places.has_value(); }
  /// For the log: "1000 tokens (U16), ", empty for other data.
  std::string contents() const;
  /// What samples are read from.
  const MappedFile &mapped() const;
  /// What says where they are, if that is another file; null if not.
  const MappedFile *index() const;
};

/// Opens the file by its extension and finds every input's column, or says which argument does not fit and
/// why. `rawWidth` is of tokens without a header.
Result<Columns> openColumns(const std::string &path, std::optional<TokenWidth> rawWidth,
                            std::span<const InputSpec> inputs);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_DATA_DATACOLUMNS_H
