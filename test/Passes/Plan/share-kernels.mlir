// RUN: ds-opt %s --ds-share-kernels --split-input-file | FileCheck %s

// What is of one piece keeps its names.
// CHECK-LABEL: func.func @alone
!b = !ds.buffer<tensor<4xf32>, [1], device>
func.func @alone(%a: !b {ds.input = "a"}) attributes {ds.segment = #ds.segment<forward, update>} {
  // CHECK: ds.launch @kernel_7
  ds.launch @kernel_7 ins(%a) outs(%a) on compute : (!b) -> !b
  return
}
ds.kernel @kernel_7 inputs 1 buffers [!b, !b] {
^bb0(%x: tensor<4xf32>):
  %s = ds.exp %x : tensor<4xf32>
  ds.yield %s : tensor<4xf32>
}

// -----

// Equal kernels of two stages have one name, though each stage has another for them; what each calls @kernel_0 are two. A parameter is
// called kernel_1: no kernel is.
!b = !ds.buffer<tensor<4xf32>, [1], device>
module {
  // CHECK-LABEL: module @zero
  module @zero {
    // CHECK: ds.launch @kernel_0
    func.func @step(%a: !b {ds.input = "a"}) attributes {ds.segment = #ds.segment<forward, update>} {
      ds.launch @kernel_0 ins(%a) outs(%a) on compute : (!b) -> !b
      return
    }
    // CHECK: ds.kernel @kernel_0
    // CHECK: ds.exp
    ds.kernel @kernel_0 inputs 1 buffers [!b, !b] {
    ^bb0(%x: tensor<4xf32>):
      %s = ds.exp %x : tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
  }
  // CHECK-LABEL: module @one
  module @one {
    ds.state @kernel_1 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
    // CHECK: ds.launch @kernel_2
    // CHECK: ds.launch @kernel_0
    func.func @step(%a: !b {ds.input = "a"}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, update>} {
      ds.launch @kernel_0 ins(%a) outs(%a) on compute : (!b) -> !b
      ds.launch @kernel_3 ins(%a) outs(%a) on compute : (!b) -> !b
      return
    }
    // CHECK: ds.kernel @kernel_2
    // CHECK: ds.tanh
    ds.kernel @kernel_0 inputs 1 buffers [!b, !b] {
    ^bb0(%x: tensor<4xf32>):
      %s = ds.tanh %x : tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
    // CHECK: ds.kernel @kernel_0
    // CHECK: ds.exp
    ds.kernel @kernel_3 inputs 1 buffers [!b, !b] {
    ^bb0(%x: tensor<4xf32>):
      %s = ds.exp %x : tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
  }
}
