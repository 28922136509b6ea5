//===- ExchangePasses.td - Exchanges of cut layers beside products -----*- tablegen -*-===//
#ifndef DS_EXCHANGE_PASSES
#define DS_EXCHANGE_PASSES

include "mlir/Pass/PassBase.td"

def OverlapExchanges : Pass<"ds-overlap-exchanges", "::mlir::func::FuncOp"> {
  let summary = "Exchanges the rows of products in pieces, beside the products of other pieces";
  let description = [{
    Where ranks share layers, the result of a product is added up over ranks, or a product reads what they gather. Both are cut
    along rows: while ranks exchange one piece, compute makes another. Rows are independent, so each element is the sum that it
    was.

    - A sum that each rank has whole (all-reduce): any rows are a piece.
    - A sum of which each rank keeps its rows (reduce-scatter), and rows that are gathered: a piece is one sample or
      several, for what a rank has of a sample lies together. In a micro-batch of several samples both needed a copy
      that brings samples or ranks to the front; by sample they do not.

    How many pieces there are is chosen by predicted times: those of products on fewer rows, a latency for each exchange, and
    what of it compute hides. `tp_overlap_comm` true takes the best of what is cut, false cuts nothing. Before, products that
    stand before a sum which does not need them, such as the gradients of weights, are put after it.

    A library may add up in another order where a product has other rows. On the CPU pieces are two, and where a product could
    be cut and is not, it is made in the same two parts, and so is any other of its sizes.

    Requires: phase scheduled, no events and workspaces yet.
    Ensures: (E1) a product by rows whose result an all-reduce adds up, with nothing between that touches it, is as many
    products, the all-reduce of its rows behind each, if that is predicted to take less time, or asked for; (E2) so is one
    whose result a reduce-scatter cuts along the sequence, by samples, without the copy between; (E3) rows that are gathered by
    sample lie where the copies of them lay, which are gone, and the first product that reads them is cut, if what stands before
    it lets it pass; (E4) results are the same, on the CPU to the bit: products that have sums of columns beside them or are
    made of transposed rows, and what other commands touch in between, stay whole; (E5) a product stands behind a sum that it has
    nothing to do with, until that is hidden, unless more would be live then than anywhere before; (E6) no product moves past a
    command of another stream but that sum.

    ```
    ds.call matmul(%x, %w, %y) writes [2] params [0, 1, 0, 0] on compute
    ds.communicate all_reduce ins(%y) outs(%y) reduce sum along tp on exchange
    ```
    becomes
    ```
    ds.call matmul(%x0, %w, %y0) writes [2] params [0, 1, 0, 0] on compute
    ds.communicate all_reduce ins(%y0) outs(%y0) reduce sum along tp on exchange
    ds.call matmul(%x1, %w, %y1) writes [2] params [0, 1, 0, 0] on compute
    ds.communicate all_reduce ins(%y1) outs(%y1) reduce sum along tp on exchange
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [
    Option<"remarks", "remarks", "bool", "false", "Report what is cut, and the seconds that it is predicted to save">,
  ];
}

#endif // DS_EXCHANGE_PASSES
