//===- OperationForms.cpp - Every elementwise op, in every form that it has ------===//

#include "OperationForms.h"
#include "ds/Dialect/Ds.h"

using namespace mlir;

namespace ds::test {
namespace {

/// Constants of which LLVM makes other functions, as MLIR writes them.
constexpr const char *kNumbers[] = {"0.0", "1.0",  "-1.0", "2.0", "3.0",       "10.0",
                                    "0.5", "0.25", "-0.5", "0.9", "0.33333333"};
constexpr const char *kPredicates[] = {"eq", "ne", "lt", "le", "gt", "ge"};

struct FormWriter {
  bool isFloat, isUnsigned;
  std::vector<OperationForm> forms;

  void add(const std::string &op, const std::string &lines, const std::string &result = "") {
    forms.push_back({op, lines, result});
  }
  static std::string line(const std::string &result, const std::string &text) {
    return "  %" + result + " = ds." + text + " : TYPE\n";
  }
  static std::string number(const std::string &value) {
    return "  %c = ds.constant dense<" + value + "> : TYPE\n";
  }
  /// Of x, and of what LLVM looks through.
  void unary(const std::string &op) {
    add(op, line("r", op + " %x"));
    if (!isFloat)
      return;
    add(op, line("a", "neg %x") + line("r", op + " %a"));
    add(op, line("a", "abs %x") + line("r", op + " %a"));
    add(op, line("a", "exp %x") + line("r", op + " %a"));
  }
  void binary(const std::string &op) {
    add(op, line("r", op + " %x, %y"));
    for (std::string value : kNumbers) {
      if (!isFloat)
        value = value.substr(0, value.find('.'));
      if (!isFloat && (value == "-0" || (isUnsigned && value[0] == '-')))
        continue;
      add(op, number(value) + line("r", op + " %x, %c"));
      add(op, number(value) + line("r", op + " %c, %x"));
    }
  }
  void truths() {
    const std::string two = "  %p = ds.compare lt %x, %y : TYPE\n  %q = ds.compare gt %x, %x : TYPE\n";
    add("not", two + "  %r = ds.not %p : TRUTH\n", "i1");
    add("and", two + "  %r = ds.and %p, %q : TRUTH\n", "i1");
    add("or", two + "  %r = ds.or %p, %q : TRUTH\n", "i1");
    for (std::string predicate : kPredicates) {
      const std::string compare = "compare " + predicate;
      add("compare", line("r", compare + " %x, %y"), "i1");
      add("select", line("p", compare + " %x, %y") + line("r", "select %p, %x, %y"));
      add("compare", number(isFloat ? "0.0" : "0") + line("r", compare + " %x, %c"), "i1");
      add("select",
          number(isFloat ? "0.0" : "0") + line("p", compare + " %x, %c") + line("r", "select %p, %x, %c"));
    }
  }
  void conversions() {
    for (std::string to : {"f64", "f32", "bf16", "f16", "i64", "i32", "i8", "i1"})
      add("convert", "  %r = ds.convert %x : TYPE -> TO\n", to);
    add("convert", line("a", "abs %x") + "  %r = ds.convert %a : TYPE -> TO\n", "ui8");
  }
  /// Chains of which LLVM makes one function.
  void chains() {
    add("pow", "  %i = ds.convert %x : TYPE -> LONG\n  %n = ds.convert %i : LONG -> TYPE\n" + number("2.0") +
                   line("r", "pow %c, %n"));
    add("pow", line("e", "exp %x") + line("r", "pow %e, %y"));
    add("pow", number("10.0") + line("e", "pow %c, %x") + line("r", "log %e"));
    add("cos", line("s", "sin %x") + line("c", "cos %x") + line("r", "mul %s, %c"));
    add("sqrt", line("s", "mul %x, %x") + line("r", "sqrt %s"));
    add("exp", number("0.69314718055994529") + line("s", "mul %x, %c") + line("r", "exp %s"));
  }
};

} // namespace

std::vector<OperationForm> operationForms(const std::string &element) {
  FormWriter writer{element.find('f') != std::string::npos, element[0] == 'u', {}};
  for (const char *op : {"neg", "abs"})
    writer.unary(op);
  for (const char *op : {"add", "sub", "mul", "div", "max", "min"})
    writer.binary(op);
  writer.truths();
  writer.conversions();
  if (!writer.isFloat)
    return writer.forms;
  for (const char *op : {"sign", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "sin", "cos",
                         "floor", "gelu", "gelu tanh"})
    writer.unary(op);
  for (const char *op : {"pow", "gelu_grad", "gelu_grad tanh"})
    writer.binary(op);
  writer.chains();
  return writer.forms;
}

std::vector<std::string> scalarBodyOps() {
  MLIRContext context;
  context.loadDialect<mlir::ds::DsDialect>();
  std::vector<std::string> names;
  for (RegisteredOperationName op : context.getRegisteredOperations())
    if (op.hasInterface<mlir::ds::ScalarBodyOpInterface>())
      names.push_back(op.stripDialect().str());
  return names;
}

std::string writeKernel(const std::string &name, const OperationForm &form, const std::string &element,
                        const std::string &shape) {
  auto tensor = [&](const std::string &of) { return "tensor<" + shape + of + ">"; };
  auto buffer = [&](const std::string &of) {
    return "!ds.buffer<" + tensor(of) + (shape.empty() ? ", [], device>" : ", [1], device>");
  };
  const std::string type = tensor(element), result = form.result.empty() ? element : form.result;
  std::string lines = form.lines;
  const std::pair<std::string, std::string> words[] = {
      {"TYPE", type}, {"TRUTH", tensor("i1")}, {"LONG", tensor("i64")}, {"TO", tensor(result)}};
  for (const auto &[word, text] : words)
    for (size_t at = 0; (at = lines.find(word, at)) != std::string::npos; at += text.size())
      lines.replace(at, word.size(), text);
  return "ds.kernel @" + name + " inputs 2 buffers [" + buffer(element) + ", " + buffer(element) + ", " +
         buffer(result) + "] {\n^bb0(%x: " + type + ", %y: " + type + "):\n" + lines +
         "  ds.yield %r : " + tensor(result) + "\n}\n";
}

} // namespace ds::test
