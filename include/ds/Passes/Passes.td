//===- Passes.td - The passes, in pipeline order --------------------*- tablegen -*-===//
#ifndef DS_PASSES
#define DS_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// model -> step
//===----------------------------------------------------------------------===//

def Differentiate : Pass<"ds-differentiate", "::mlir::ModuleOp"> {
  let summary = "Appends to the forward the gradients of its loss by all trainable parameters";
  let description = [{
    A reverse sweep over `@forward`: each op that influences the loss and is influenced by a trainable parameter is
    asked, last op first, how its results' gradients pass to its operands.

    Requires: phase model; the first result of `@forward` is the loss, a rank-0 float.

    Ensures:
    - `@forward` returns, after its own results, one gradient per trainable parameter that influences the loss, in
      argument order, marked `ds.gradient = @parameter`, of the parameter's type.
    - The seed is 1 / `gradient_accumulation_steps` of `ds.training` (1 without it), so that gradients of the
      micro-steps of one step add up to the gradient of their mean.
    - A parameter that does not influence the loss has no gradient, as in PyTorch, where its `.grad` is None: it is
      not updated, and weight decay does not reach it. With `remarks`, each is named.
    - Frozen parameters, inputs, and what depends only on them are not differentiated, and no op is emitted whose
      result would be a gradient that nothing reads.
    - Gradients of a value that is used several times are added in the order of the sweep: last use first.

    ```
    func.func @forward(%x: tensor<4x8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}) -> tensor<f32> {
      %b = ds.broadcast %w dims [1] : tensor<8xf32> -> tensor<4x8xf32>
      %y = ds.mul %x, %b : tensor<4x8xf32>
      %l = ds.reduce sum %y dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
      return %l : tensor<f32>
    }
    ```
    becomes
    ```
    func.func @forward(%x: ..., %w: ...) -> (tensor<f32>, tensor<8xf32> {ds.gradient = @w}) {
      ...
      %one = ds.constant dense<1.0> : tensor<f32>
      %g = ds.broadcast %one dims [] : tensor<f32> -> tensor<4x8xf32>
      %gb = ds.mul %g, %x : tensor<4x8xf32>
      %gw = ds.reduce sum %gb dims [0] : tensor<4x8xf32> -> tensor<8xf32>
      return %l, %gw : tensor<f32>, tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
  let options = [Option<"remarks", "remarks", "bool", "false", "Name each parameter that gets no gradient">];
}

def Decompose : Pass<"ds-decompose"> {
  let summary = "Replaces composite layers by elementwise ops, broadcasts and reductions";
  let description = [{
    Requires: differentiation has run; a composite's gradient names its results (row statistics), which here become
    ordinary values.

    Ensures: no op that can decompose itself is left.

    ```
    %y = ds.softmax %x dim 1 : tensor<4x8xf32>
    ```
    becomes
    ```
    %m = ds.reduce max %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    %b = ds.broadcast %m dims [0] : tensor<4xf32> -> tensor<4x8xf32>
    %d = ds.sub %x, %b : tensor<4x8xf32>
    %e = ds.exp %d : tensor<4x8xf32>
    %s = ds.reduce sum %e dims [1] : tensor<4x8xf32> -> tensor<4xf32>
    %r = ds.broadcast %s dims [0] : tensor<4xf32> -> tensor<4x8xf32>
    %y = ds.div %e, %r : tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::ds::DsDialect"];
}

include "ds/Passes/SchedulePasses.td"

#endif // DS_PASSES
