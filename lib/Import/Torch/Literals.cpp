//===- Literals.cpp - Numbers, tensors and names as MLIR spells them --------------===//

#include "Literals.h"

#include <array>
#include <cmath>
#include <cstring>

namespace ds::ts {

/// The bytes of one number of that type.
static at::Tensor asElement(const c10::Scalar &value, at::ScalarType type) {
  return at::scalar_tensor(value, at::TensorOptions().dtype(at::kDouble)).to(type);
}

/// The shortest spelling that reads back as the same number of that width.
static std::string spellShortest(double value, bool isSingle) {
  std::array<char, 64> text;
  if (!std::isfinite(value)) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    std::snprintf(text.data(), text.size(), "0x%016lX", bits);
    return text.data();
  }
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*e", digits, value);
    double back = std::strtod(text.data(), nullptr);
    if (back == value || (isSingle && static_cast<float>(back) == static_cast<float>(value)))
      break;
  }
  return text.data();
}

std::string spellDouble(double value) { return spellShortest(value, /*isSingle=*/false); }

std::string spellNumber(const c10::Scalar &value, at::ScalarType type) {
  if (type == at::kBool)
    return value.toBool() ? "true" : "false";
  if (c10::isIntegralType(type, /*includeBool=*/false))
    return std::to_string(value.isFloatingPoint() ? static_cast<int64_t>(value.toDouble())
                                                  : value.to<int64_t>());
  double rounded = asElement(value.toDouble(), type).item<double>();
  if (std::isfinite(rounded))
    return spellShortest(rounded, type == at::kFloat);
  at::Tensor element = asElement(value.toDouble(), type);
  std::string text = "0x";
  auto *bytes = static_cast<const unsigned char *>(element.data_ptr());
  for (size_t i = element.element_size(); i-- > 0;) {
    std::array<char, 3> digits;
    std::snprintf(digits.data(), digits.size(), "%02X", bytes[i]);
    text += digits.data();
  }
  return text;
}

std::string quote(const std::string &text) {
  std::string result = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f) {
      std::array<char, 4> escaped;
      std::snprintf(escaped.data(), escaped.size(), "\\%02X", c);
      result += escaped.data();
    } else {
      result += static_cast<char>(c);
    }
  }
  return result + "\"";
}

/// Nested lists of truth values: MLIR's hexadecimal literals do not hold them.
static std::string spellNested(const bool *&data, at::IntArrayRef sizes) {
  if (sizes.empty())
    return *data++ ? "true" : "false";
  std::string text = "[";
  for (int64_t i = 0; i < sizes[0]; ++i)
    text += (i ? ", " : "") + spellNested(data, sizes.slice(1));
  return text + "]";
}

std::string spellLiteral(const at::Tensor &tensor) {
  if (tensor.scalar_type() == at::kBool) {
    auto *data = tensor.data_ptr<bool>();
    const bool *next = data;
    return spellNested(next, tensor.sizes());
  }
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string text = "\"0x";
  auto *bytes = static_cast<const unsigned char *>(tensor.data_ptr());
  for (size_t i = 0; i < tensor.nbytes(); ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text + "\"";
}

} // namespace ds::ts
