//===- DataColumns.cpp - A data file as one column of samples per input --------===//

#include "DataColumns.h"

#include "Files/Text.h"
#include "Formats/Convert.h"
#include "ds/Runtime/Data/DataFiles.h"

#include <algorithm>
#include <cstring>

using namespace ds;
using namespace ds::rt;

const MappedFile &Columns::mapped() const {
  if (const auto *tensors = std::get_if<SafeTensorsFile>(&file))
    return tensors->file();
  if (const auto *npy = std::get_if<NpyFile>(&file))
    return npy->mapped();
  if (const auto *pair = std::get_if<IndexedTokens>(&file))
    return pair->mapped();
  return std::get_if<TokenStream>(&file)->mapped();
}

const MappedFile *Columns::index() const {
  const auto *pair = std::get_if<IndexedTokens>(&file);
  return pair ? &pair->index() : nullptr;
}

std::string Columns::contents() const {
  if (!isTokenStream())
    return "";
  std::string text =
      std::to_string(numTokens) + " tokens (" + std::string(spell(columns[places->tokens].dtype)) + ")";
  if (const auto *pair = std::get_if<IndexedTokens>(&file))
    text += " in " + std::to_string(pair->numDocuments()) + " documents";
  return text + ", ";
}

static Error invalid(const std::string &path, const std::string &what, std::string hint) {
  return {ExitCode::Invalid, quote(path) + ": " + what, std::move(hint)};
}

static std::vector<std::string> namesOf(std::span<const InputSpec> inputs) {
  std::vector<std::string> names;
  for (const InputSpec &input : inputs)
    names.push_back(input.name);
  return names;
}

static std::string spellInput(const InputSpec &input) { return "argument " + quote(input.name); }

/// Checks the shape of one stored array against the input that it is for; its column.
static Result<Column> columnOf(const std::string &path, const std::string &name,
                               std::span<const int64_t> input, FileDType dtype,
                               std::span<const int64_t> shape, const std::byte *data) {
  std::span<const int64_t> wanted = input.subspan(1);
  if (shape.empty() || !std::ranges::equal(shape.subspan(1), wanted)) {
    std::string tail;
    for (int64_t dim : wanted)
      tail += ", " + std::to_string(dim);
    return invalid(
        path, name + " expects shape [samples" + tail + "], but got " + spellShape(shape),
        "the program is compiled for one shape: pass another --input to ds-opt, or cut the data to fit");
  }
  Column column{data, dtype, 0, 1, 0};
  for (int64_t dim : wanted)
    column.elements *= size_t(dim); // no overflow: the input's own shape was checked
  column.stride = column.elements * bitSize(dtype) / 8;
  return column;
}

/// Checks one stored array against the input that it fills and appends its column.
static Status addColumn(const std::string &path, const InputSpec &input, FileDType dtype,
                        std::span<const int64_t> shape, const std::byte *data, Columns &out) {
  Result<Column> column = columnOf(path, spellInput(input), input.shape, dtype, shape, data);
  if (!column)
    return column.error();
  if (!isConvertible(dtype, input.dtype))
    return invalid(path,
                   spellInput(input) + " expects " + std::string(spell(toFileDType(input.dtype))) +
                       ", but got " + std::string(spell(dtype)),
                   dtype == FileDType::F64 ? "convert it, for instance with array.astype(numpy.float32)"
                                           : "convert the array; only values that fit are converted here");
  out.columns.push_back(*column);
  uint64_t numSamples = uint64_t(shape[0]);
  if (out.columns.size() > 1 && numSamples != out.numSamples)
    return invalid(path,
                   spellInput(input) + " has " + std::to_string(numSamples) +
                       " samples, but the one before has " + std::to_string(out.numSamples),
                   "every argument needs the same number of samples in dimension 0");
  out.numSamples = numSamples;
  return {};
}

/// A mask is for the one input of which the loss leaves some values out.
static Status addMask(const std::string &path, std::span<const InputSpec> inputs, const TensorEntry &entry,
                      Columns &out) {
  std::vector<std::string> targets;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].hasIgnoreIndex) {
      targets.push_back(inputs[i].name);
      out.masked = i;
    }
  if (targets.size() != 1)
    return invalid(path,
                   "has a 'loss_mask', but the arguments of which the loss can leave values out are " +
                       spellNames(targets),
                   "compile a model with one cross_entropy of one argument's targets, or remove the mask");
  if (entry.dtype != FileDType::Bool && !isInteger(entry.dtype))
    return invalid(path, "'loss_mask' expects BOOL or integers, but got " + std::string(spell(entry.dtype)),
                   "convert it, for instance with mask.astype(numpy.uint8)");
  Result<Column> column =
      columnOf(path, "'loss_mask'", inputs[out.masked].shape, entry.dtype, entry.shape, entry.data);
  if (!column)
    return column.error();
  if (uint64_t(entry.shape[0]) != out.numSamples)
    return invalid(path,
                   "'loss_mask' has " + std::to_string(entry.shape[0]) + " samples, but the arguments have " +
                       std::to_string(out.numSamples),
                   "every sample needs its mask");
  out.mask = *column;
  return {};
}

static Result<Columns> openSafeTensors(const std::string &path, std::span<const InputSpec> inputs) {
  Result<SafeTensorsFile> file = SafeTensorsFile::open(path);
  if (!file)
    return file.error();
  std::vector<std::string> have, missing, unknown, wanted = namesOf(inputs);
  for (const TensorEntry &entry : file->entries()) {
    have.emplace_back(entry.name);
    if (std::ranges::find(wanted, entry.name) == wanted.end() && entry.name != kLossMask)
      unknown.emplace_back(entry.name);
  }
  std::ranges::sort(have);
  std::ranges::sort(unknown);
  std::ranges::copy_if(wanted, std::back_inserter(missing),
                       [&](const std::string &name) { return !file->find(name); });
  if (!missing.empty() || !unknown.empty())
    return invalid(path,
                   "expects one tensor for each argument of the forward (" + spellNames(wanted) +
                       "), but got " + spellNames(have) + "; missing: " + spellNames(missing) +
                       "; unknown: " + spellNames(unknown),
                   "name the tensors as the forward names its arguments");
  Columns out;
  for (const InputSpec &input : inputs) {
    const TensorEntry *entry = file->find(input.name);
    if (Status status = addColumn(path, input, entry->dtype, entry->shape, entry->data, out); !status)
      return status.error();
  }
  const TensorEntry *mask =
      std::ranges::find(wanted, kLossMask) == wanted.end() ? file->find(kLossMask) : nullptr;
  if (Status status = mask ? addMask(path, inputs, *mask, out) : Status(); !status)
    return status.error();
  out.file = std::move(*file);
  return out;
}

static Result<Columns> openNpy(const std::string &path, std::span<const InputSpec> inputs) {
  if (inputs.size() != 1)
    return invalid(path, "a .npy file holds one argument, but the forward has " + spellNames(namesOf(inputs)),
                   "put one tensor for each argument into a .safetensors file");
  Result<NpyFile> file = NpyFile::open(path);
  if (!file)
    return file.error();
  Columns out;
  if (Status status = addColumn(path, inputs[0], file->dtype(), file->shape(), file->data().data(), out);
      !status)
    return status.error();
  out.file = std::move(*file);
  return out;
}

/// Windows of T + 1 tokens at stride T: the inputs, and a token later the targets.
template <class Tokens>
static Result<Columns> windows(Result<Tokens> tokens, const TokenInputs &places,
                               std::span<const InputSpec> inputs) {
  if (!tokens)
    return tokens.error();
  Columns out;
  const auto length = uint64_t(inputs[places.tokens].shape[1]);
  const size_t width = bitSize(tokens->dtype()) / 8;
  out.places = places;
  out.numTokens = tokens->size();
  out.numSamples = tokens->size() == 0 ? 0 : (tokens->size() - 1) / length;
  // Without a whole window there is nothing to point at.
  const std::byte *first = tokens->data().data();
  const std::byte *second = out.numSamples == 0 ? first : first + width;
  out.columns.resize(inputs.size());
  out.columns[places.tokens] = {first, tokens->dtype(), length * width, length, 0};
  out.columns[places.targets] = {second, tokens->dtype(), length * width, length, 1};
  out.file = std::move(*tokens);
  return out;
}

/// Whether 16-bit tokens look like the halves of 32-bit ones: the upper half of each, the second one, is 0.
static bool looksLikeHalves(std::span<const std::byte> data) {
  constexpr size_t kLeast = 32, kMost = 4096; // pairs
  const size_t pairs = std::min(data.size() / sizeof(uint32_t), kMost);
  bool anyLow = false;
  for (size_t i = 0; i < pairs; ++i) {
    uint16_t halves[2];
    std::memcpy(halves, data.data() + i * sizeof halves, sizeof halves);
    if (halves[1] != 0)
      return false;
    anyLow |= halves[0] != 0;
  }
  return pairs >= kLeast && anyLow;
}

/// Refuses tokens whose width nobody has said where 16 bits are not what the model or the file has: other
/// tokens than the file's would be trained on, and none of them is out of range.
static Status checkAssumedWidth(const std::string &path, const TokenStream &tokens, const InputSpec &input) {
  constexpr int64_t kTokens = 1 << 16;
  const std::string assumed = "has no header, so that its tokens are read as u16 of 16 bits";
  if (input.indexLimit > kTokens)
    return invalid(path,
                   assumed + ", but " + spellInput(input) + " has a vocabulary of " +
                       std::to_string(input.indexLimit) + ", and 16 bits tell " + std::to_string(kTokens) +
                       " tokens apart",
                   "give --token-dtype u32, or u16 if the file has 16-bit tokens all the same");
  if (looksLikeHalves(tokens.data()))
    return invalid(path, assumed + ", but every second one at its beginning is 0, as in a file of u32",
                   "give --token-dtype u32, or u16 if that is how the text begins");
  return {};
}

static Result<TokenStream> openStream(const std::string &path, std::optional<TokenWidth> rawWidth,
                                      const InputSpec &input) {
  Result<TokenStream> tokens = TokenStream::open(path, rawWidth);
  if (!tokens || rawWidth || tokens->hasHeader())
    return tokens;
  Status status = checkAssumedWidth(path, *tokens, input);
  return status ? std::move(tokens) : Result<TokenStream>(status.error());
}

static Result<Columns> openTokens(const std::string &path, const std::string &prefix,
                                  std::optional<TokenWidth> rawWidth, std::span<const InputSpec> inputs) {
  const Result<TokenInputs> places = findTokenInputs(path, inputs);
  if (!places)
    return places.error();
  if (prefix.empty())
    return windows(openStream(path, rawWidth, inputs[places->tokens]), *places, inputs);
  if (rawWidth)
    return Error{ExitCode::Usage,
                 quote(prefix + ".idx") + ": says what its tokens are, --token-dtype need not",
                 "leave --token-dtype out"};
  return windows(IndexedTokens::open(prefix + ".idx", prefix + ".bin"), *places, inputs);
}

Result<Columns> ds::rt::openColumns(const std::string &path, std::optional<TokenWidth> rawWidth,
                                    std::span<const InputSpec> inputs) {
  if (path.ends_with(".safetensors"))
    return openSafeTensors(path, inputs);
  if (path.ends_with(".npy"))
    return openNpy(path, inputs);
  if (const std::string prefix = pairPrefix(path); !prefix.empty() || path.ends_with(".bin"))
    return openTokens(path, prefix, rawWidth, inputs);
  return Error{ExitCode::Usage,
               quote(path) + ": expects a file of data, which ends in .safetensors, .npy, .bin or .idx",
               "the extension says how the data is read; examples/make_tokens.py makes tokens of a text"};
}
