// RUN: ds-opt %s --ds-verify-fused --split-input-file --verify-diagnostics

module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @last(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-error@+2 {{'ds.neg' op stands outside of regions, but one kernel could have it with others}}
    // expected-note@+1 {{--ds-fuse-regions puts it into one}}
    %n = ds.neg %x {ds.work = #ds.work<forward>} : tensor<4x4xf32>
    return %n : tensor<4x4xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]
}

// -----

module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @last(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-error@+1 {{'ds.matmul' op is recomputed, but what is kept is not decided yet}}
    %p = ds.matmul %x, %x {ds.work = #ds.work<recompute>} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %p : tensor<4x4xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]
}

// -----

// What ds-verify-sharded asks of segments holds on.
module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @last(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-note@+2 {{--ds-differentiate says it first}}
    // expected-error@+1 {{'ds.matmul' op expects ds.work of #ds.segment<forward, backward, update>, but got none}}
    %p = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %p : tensor<4x4xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]
}

// -----

// Of a region nothing else is asked.
module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @last(%x: tensor<4x4xf32> {ds.input = "x"}) -> (tensor<4x4xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %n = ds.fused(%x) {ds.work = #ds.work<forward>} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%a: tensor<4x4xf32>):
      %q = ds.neg %a : tensor<4x4xf32>
      ds.yield %q : tensor<4x4xf32>
    }
    %p = ds.matmul %n, %x {ds.work = #ds.work<forward>} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %p : tensor<4x4xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]
}
