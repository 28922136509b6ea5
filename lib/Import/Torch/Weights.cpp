//===- Weights.cpp - Writes the archive's values as a safetensors file ----------===//

#include "Weights.h"
#include "Failure.h"
#include "ds/Support/WeightsMark.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace ds::ts {

static void writeBytes(int fd, const char *data, size_t size) {
  while (size > 0) {
    ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      throw Failure({ExitCode::Io, std::string("cannot write the imported model: ") + std::strerror(errno),
                     "free some space in the output's directory"});
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void writeAll(int fd, const std::string &data) { writeBytes(fd, data.data(), data.size()); }

static const char *dtypeOf(at::ScalarType type) {
  switch (type) {
  case at::kFloat:
    return "F32";
  case at::kDouble:
    return "F64";
  case at::kHalf:
    return "F16";
  case at::kBFloat16:
    return "BF16";
  case at::kLong:
    return "I64";
  case at::kInt:
    return "I32";
  case at::kChar:
    return "I8";
  case at::kByte:
    return "U8";
  case at::kBool:
    return "BOOL";
  default:
    fail(std::string("a weights file does not hold tensors of type ") + c10::toString(type));
  }
}

/// A JSON string; `quote` is MLIR's, whose escapes differ.
static std::string quoteJson(const std::string &text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    std::array<char, 8> escaped{};
    if (c == '"' || c == '\\' || c < 0x20)
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", c);
    else
      escaped[0] = static_cast<char>(c);
    result += escaped.data();
  }
  return result + "\"";
}

void writeWeights(int fd, States &states) {
  std::vector<const State *> written;
  for (const State &state : states.all())
    if (state.kind != StateKind::Generator && (state.kind == StateKind::Parameter || !state.argument.empty()))
      written.push_back(&state);
  std::sort(written.begin(), written.end(), [](const State *a, const State *b) {
    size_t left = a->value.element_size(), right = b->value.element_size();
    return left != right ? left > right : a->name < b->name;
  });
  std::string header = std::string("{\"__metadata__\":{\"format\":\"pt\",") + quoteJson(kWeightsWriterKey) +
                       ":" + quoteJson(kWeightsWriter) + "}";
  size_t offset = 0;
  for (const State *state : written) {
    size_t end = offset + state->value.nbytes();
    std::string shape;
    for (int64_t size : state->value.sizes())
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    header += "," + quoteJson(state->name) + ":{\"dtype\":\"" + dtypeOf(state->value.scalar_type()) +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(offset) + "," +
              std::to_string(end) + "]}";
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  uint64_t size = header.size();
  writeBytes(fd, reinterpret_cast<const char *>(&size), sizeof size);
  writeAll(fd, header);
  for (const State *state : written) {
    at::Tensor value = state->value.contiguous();
    writeBytes(fd, static_cast<const char *>(value.data_ptr()), value.nbytes());
  }
}

} // namespace ds::ts
