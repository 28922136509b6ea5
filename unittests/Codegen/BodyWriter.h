//===- BodyWriter.h - Random bodies of kernels, as text --------------------------===//
//
// Bodies are grown from their output backwards: "a value of this shape" is an elementwise op of such values,
// an index op of a value of another shape, a row-wise statistic repeated over the row, or an input. Sizes are
// 0, 1, primes and powers of two; buffers are contiguous, padded or permuted.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CODEGEN_BODYWRITER_H
#define DS_UNITTESTS_CODEGEN_BODYWRITER_H

#include "KernelHarness.h"

#include <random>
#include <string>
#include <vector>

namespace ds::test {

using Shape = std::vector<int64_t>;

/// "[1, 2]".
std::string list(const Shape &numbers);

/// "tensor<1x2xf32>".
std::string typeOf(const Shape &shape, const std::string &element);

/// The lines of one kernel, of which the shapes and the inputs are random.
class BodyText {
public:
  struct Written {
    std::string name, type;
    Shape shape;
    double bound; ///< no element is larger
    bool exact;   ///< the interpreter gets the same bits
  };

  explicit BodyText(unsigned seed) : generator(seed) {}

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(generator); }
  Shape randomShape();
  Written line(const std::string &text, const Shape &shape, const std::string &type, double bound,
               bool exact = false);
  Written input(const Shape &shape, const std::string &type);
  /// Forgets all lines.
  void clear();
  /// A whole ds.kernel of the lines; `inputs` receives values for its inputs.
  std::string kernel(const std::string &name, const std::vector<Written> &outputs,
                     std::vector<Tensor> &inputs);

  std::mt19937 generator;
  std::vector<Written> written; ///< that may be read again

private:
  std::string bufferType(const Shape &shape, const std::string &element);

  std::string body;
  std::vector<Written> arguments;
  std::vector<Tensor> tensors;
  unsigned count = 0;
};

/// Writes random kernels: a method for each kind of value that one may hold.
class BodyWriter {
public:
  BodyWriter(unsigned seed, std::string element) : text(seed), element(std::move(element)) {}

  /// A whole ds.kernel; `inputs` receives values for its inputs.
  std::string kernel(const std::string &name, std::vector<Tensor> &inputs);

private:
  using Written = BodyText::Written;
  /// The dimensions of a shape that statistics reduce and keep.
  struct Halves {
    Shape reduced, kept, keptShape;
    int64_t elements = 1; ///< in `reduced`
  };

  Written make(const Shape &shape, int depth);
  Written elementwise(const Shape &shape, int depth);
  Written gelu(const Shape &shape, int depth, Written x);       ///< or its gradient, of x
  Written arithmetic(const Shape &shape, int depth, Written x); ///< x and another value
  Written indexed(const Shape &shape, int depth);
  Written leaf(const Shape &shape);
  Written truth(const Shape &shape);
  Written broadcastOf(const Shape &shape, int depth);
  Written sliceOf(const Shape &shape, int depth);
  Written padOf(const Shape &shape, int depth);
  Written concatOf(const Shape &shape, int depth);
  Written reshapeOf(const Shape &shape, int depth);
  Written transposeOf(const Shape &shape, int depth);
  Written statisticOf(const Shape &shape, int depth);
  Written bounded(Written value, double most);
  Halves split(const Shape &shape) const;
  std::vector<Written> reductions(const Shape &shape, int depth);
  std::vector<Written> maps(const Shape &shape, int depth);

  BodyText text;
  std::string element; ///< of everything that is not said to be of another type
  unsigned statisticDims =
      0; ///< trailing (or, where negative dims are kept, leading) dimensions statistics reduce
  bool columns = false;
};

} // namespace ds::test

#endif // DS_UNITTESTS_CODEGEN_BODYWRITER_H
