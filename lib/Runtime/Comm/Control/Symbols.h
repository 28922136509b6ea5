//===- Symbols.h - Names of addresses ----------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_SYMBOLS_H
#define DS_LIB_RUNTIME_COMM_CONTROL_SYMBOLS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ds::rt {

/// Reads the symbol tables of files when they are first asked for.
class Symbols {
public:
  /// "ds::rt::Executor::run(unsigned int)+0x2b (ds-run+0x1234)", or what of it is known.
  std::string describe(const void *address);

private:
  struct Function {
    uint64_t begin, bytes;
    std::string name;
  };
  const std::vector<Function> &functionsOf(const std::string &file);

  std::map<std::string, std::vector<Function>> files; ///< by path; ascending
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_SYMBOLS_H
