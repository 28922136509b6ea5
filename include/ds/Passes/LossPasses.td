//===- LossPasses.td - In what pieces a loss is made ---------------*- tablegen -*-===//
#ifndef DS_LOSS_PASSES
#define DS_LOSS_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// model, before differentiation
//===----------------------------------------------------------------------===//

def OfferLoss : Pass<"ds-offer-loss", "::mlir::ModuleOp"> {
  let summary = "Says in what pieces logits and their cross-entropy could be made";
  let description = [{
    Rows of a cross-entropy whose logits are a product can be taken in chunks, so that one chunk of logits lives at a time
    (Hsu et al., "Liger Kernel: Efficient Triton Kernels for LLM Training", 2024, section 3.2). Each such loss says in
    `piece_rows` in chunks of how many rows it could be made, most first; it stays whole.

    | key of `ds.training` | type | meaning |
    |---|---|---|
    | loss_normalization | string | "tokens": a cross-entropy is divided by the state `@mean_targets`; "micro_batches", as without it: by the number of its targets |
    | loss_chunks | i64 | 1: nothing is offered; N: at most N chunks of equal size, of which the last may be smaller; 0: what memory may choose among |

    Requires: phase model, not differentiated; types are final (ds-lower-precision).
    Ensures:
    - With "tokens", `@mean_targets` (f32) is declared, which the host sets before a step: how many targets a micro-batch
      of a rank has on average. Fails where the model has no cross-entropy, where one is divided by another number, and
      where targets are not the same elements of each sample of one input.
    - `ds.indices` says which elements of each sample of an input are targets, where that is known: moved, split or joined
      with constants that are ignored.
    - With 0 the powers of two of at least 512 rows are offered that save 16 MiB, and more than adding up a 16-bit
      weight's gradient in f32 takes.
    - Nothing is offered by logits that something else reads, a product with relu, an accumulator, a transposed left or a batched
      right side, and where anything but conversions, reshapes that keep the columns, and slices of rows, as a shift by one
      token makes them, stands between product and loss. Nothing, too, where ranks share sequences and have no equal
      parts of the rows.
    - With `remarks`, each loss that offers nothing says why.

    Of 1600 x 8192 logits in f32:
    ```
    %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 {piece_rows = array<i64: 1024, 512>} : ...
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [Option<"remarks", "remarks", "bool", "false", "Say of each cross-entropy that offers nothing why">];
}

def SplitLoss : Pass<"ds-split-loss", "::mlir::ModuleOp"> {
  let summary = "Makes logits and their cross-entropy some rows at a time";
  let description = [{
    Requires: phase model, not differentiated; losses say what they offer (ds-offer-loss).
    Ensures:
    - A loss that offers chunks of `rows` is made in them; others stay whole. With `rows=shapes` the rows are those that
      `loss_chunks` of `ds.training` asks for; with 0 the least power of two for which a chunk's logits are as large as the
      product's whole input, at least 512.
    - Each chunk is a `ds.matmul` of a piece of the product's rows and a `ds.cross_entropy` over the count of all rows;
      the loss is the sum of the chunks' losses, in row order.
    - Where ranks share sequences, rows are counted by rank, and each chunk has as many of each rank's part.
    - Conversions between are made chunk by chunk; reshapes and slices are applied to the product's input.
    - `loss_split` of `ds.decisions` says {chunks, rows}. With `remarks`, each loss that is split is reported.

    With `{loss_chunks = 2}`
    ```
    %x = ds.matmul %h, %w transpose_rhs : tensor<8x4xf32>, tensor<100x4xf32> -> tensor<8x100xf32>
    %loss, %lse, %count = ds.cross_entropy %x, %t ignore_index -100 {piece_rows = array<i64: 4>} : ...
    ```
    becomes
    ```
    %n = ... the number of targets in %t that are not -100 ...
    %h:2 = ds.split %h dim 0 : tensor<8x4xf32> -> tensor<4x4xf32>, tensor<4x4xf32>
    %t:2 = ds.split %t dim 0 : tensor<8xi64> -> tensor<4xi64>, tensor<4xi64>
    %x0 = ds.matmul %h#0, %w transpose_rhs : tensor<4x4xf32>, tensor<100x4xf32> -> tensor<4x100xf32>
    %l0, %lse0, %c0 = ds.cross_entropy %x0, %t#0 over(%n) ignore_index -100 : ...
    %x1 = ds.matmul %h#1, %w transpose_rhs : tensor<4x4xf32>, tensor<100x4xf32> -> tensor<4x100xf32>
    %l1, %lse1, %c1 = ds.cross_entropy %x1, %t#1 over(%n) ignore_index -100 : ...
    %loss = ds.add %l0, %l1 : tensor<f32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"rows", "rows", "::mlir::ds::LossRows", "::mlir::ds::LossWord::Shapes",
           "Rows of a chunk; shapes: as asked for, or by the sizes of logits, whole: all">,
    Option<"remarks", "remarks", "bool", "false", "Say of each cross-entropy that is split in how many chunks">];
}

#endif // DS_LOSS_PASSES
