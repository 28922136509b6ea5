//===- MemvizPickle.h - JSON values as Python's pickle ---------------------------------===//
#ifndef DS_LIB_REPORT_MEMVIZPICKLE_H
#define DS_LIB_REPORT_MEMVIZPICKLE_H

#include <nlohmann/json.hpp>

#include <string>

namespace ds::report {

/// `value` as pickle of protocol 4. Of the opcodes those alone are used that PyTorch's visualiser reads: it
/// has a reader of its own, which knows no reference to any Python object.
std::string writePickle(const nlohmann::ordered_json &value);

} // namespace ds::report

#endif // DS_LIB_REPORT_MEMVIZPICKLE_H
