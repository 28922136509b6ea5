//===- BuiltinModels.h - Published models by their names --------------------------===//
#ifndef DS_IMPORT_BUILTINMODELS_H
#define DS_IMPORT_BUILTINMODELS_H

#include <string_view>
#include <utility>
#include <vector>

namespace ds {

/// The config.json of a published model by its name, "gpt2-xl", or by the path of such a file in a folder of
/// that name, "gpt2-xl/config.json"; empty where there is none. Files come first: callers ask where there is
/// no file.
std::string_view builtinModelText(std::string_view name);

/// All names, smaller models of a family first.
std::vector<std::string_view> builtinModelNames();

} // namespace ds

#endif // DS_IMPORT_BUILTINMODELS_H
