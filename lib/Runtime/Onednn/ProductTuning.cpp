//===- ProductTuning.cpp - Which form of each product is fastest on a machine ---===//
#include "ds/Runtime/Onednn/ProductTuning.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace ds::rt {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int64_t kLargestPart = int64_t(1) << 40;

Error unreadable(const std::string &path, const std::string &why) {
  return Error{ExitCode::Usage, fmt::format("{}: {}", path, why),
               "make the file with ds-run --tune PROGRAM -o FILE"};
}

/// A whole number of `object` within bounds; -1 where there is none.
int64_t wholeOf(const Json &object, const char *key, int64_t most) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer())
    return -1;
  const auto value = found->get<int64_t>();
  return value < 0 || value > most ? -1 : value;
}

double secondsOf(const Json &object, const char *key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : -1;
}

/// The product that an object tells of, or what is wrong with it.
Result<TunedProduct> readProduct(const Json &object, const std::string &path, const std::string &key) {
  TunedProduct product;
  const int64_t kind = wholeOf(object, "kind", static_cast<int64_t>(kLastProductKind));
  product.form = {static_cast<ProductKind>(kind), wholeOf(object, "rows", kLargestPart),
                  wholeOf(object, "columns", kLargestPart), wholeOf(object, "depth", kLargestPart)};
  product.seconds = secondsOf(object, "seconds");
  product.plainSeconds = secondsOf(object, "plain_seconds");
  const ProductForm &form = product.form;
  if (kind < 0 || form.rows < 0 || form.columns < 0 || form.depth < 0 || !(product.seconds > 0) ||
      !(product.plainSeconds > 0))
    return unreadable(path, fmt::format("'{}' has no form with its times", key));
  return product;
}

} // namespace

std::string printTuning(const ProductTuning &tuning) {
  Json products = Json::object();
  for (const auto &[key, product] : tuning.products)
    products[key] = {{"kind", static_cast<int64_t>(product.form.kind)},
                     {"rows", product.form.rows},
                     {"columns", product.form.columns},
                     {"depth", product.form.depth},
                     {"form", spell(product.form)},
                     {"seconds", product.seconds},
                     {"plain_seconds", product.plainSeconds}};
  const Json all = {{"product_tuning", kVersion},
                    {"processor", tuning.processor},
                    {"date", tuning.date},
                    {"threads", tuning.threads},
                    {"products", products}};
  return all.dump(1) + "\n";
}

Result<ProductTuning> readTuning(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    return unreadable(path, "cannot be opened");
  const Json all = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object() || wholeOf(all, "product_tuning", kVersion) != kVersion)
    return unreadable(path, "is no tuning of products");
  const int64_t threads = wholeOf(all, "threads", 1 << 20);
  const auto products = all.find("products");
  if (threads < 1 || products == all.end() || !products->is_object())
    return unreadable(path, "has no threads or no products");
  ProductTuning tuning;
  tuning.threads = static_cast<uint32_t>(threads);
  for (const auto &[name, text] : {std::pair("processor", &tuning.processor), {"date", &tuning.date}})
    if (const auto found = all.find(name); found != all.end() && found->is_string())
      *text = found->get<std::string>();
  for (const auto &[key, object] : products->items()) {
    Result<TunedProduct> product = readProduct(object, path, key);
    if (!product)
      return product.error();
    tuning.products.emplace(key, *product);
  }
  return tuning;
}

} // namespace ds::rt
