// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @recompute_c1_arguments(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'ds.recompute' op expects 1 block arguments of the kept values' types}}
  %r = ds.recompute (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<8xf32>):
    %c = ds.constant dense<0.0> : tensor<4xf32>
    ds.yield %c : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @recompute_c1_results(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'ds.recompute' op expects to yield 1 values of the results' types}}
  %r = ds.recompute (%x) : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<4xf32>):
    ds.yield %a : tensor<4xf32>
  }
  return %r : tensor<8xf32>
}

// -----

ds.mesh @mesh axes [dp = 2]
func.func @recompute_c2_collective(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'ds.recompute' op expects ops that may run twice in its body, but got ds.all_gather}}
  %r = ds.recompute (%x) : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-note@+1 {{this op}}
    %g = ds.all_gather %a along dp carries parameter : tensor<4xf32> -> tensor<8xf32>
    ds.yield %g : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
