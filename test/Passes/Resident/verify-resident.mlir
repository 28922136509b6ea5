// RUN: ds-opt %s --ds-verify-resident --split-input-file --verify-diagnostics

module attributes {ds.phase = #ds.phase<resident>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @last(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<4x4xf32> {ds.state = @w})
      -> (tensor<4x4xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // expected-error@+1 {{'ds.matmul' op is recomputed, but neither may a fused region hold it nor does a ds.recompute}}
    %p = ds.matmul %x, %w {ds.work = #ds.work<recompute>} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %p : tensor<4x4xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]
}

// -----

// What is kept in another space is the state as it is declared.
module attributes {ds.phase = #ds.phase<resident>} {
  // expected-note@+1 {{state @m is declared here}}
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  // expected-error@+1 {{expects argument 0 of type 'tensor<4xf32>', but got '!ds.stored<tensor<4xf32>, host>'}}
  func.func @last(%m: !ds.stored<tensor<4xf32>, host> {ds.state = @m}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    return
  }
}
