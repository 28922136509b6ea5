// RUN: ds-opt %s --split-input-file --pass-pipeline='builtin.module(ds-cut-stages)' --verify-diagnostics

!w = tensor<4x4xf32>
!h = tensor<2x4xf32>
module {
  ds.mesh @mesh axes [pp = 4] stages pp
  ds.state @w0 role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : !w
  // expected-error@below {{expects at most 3 stages, one for each of its numbered layers, for what is before them and for what is behind, but got 4}}
  // expected-note@below {{pipeline.stages says how many}}
  func.func @forward(%x: !h {ds.input = "x"}, %w0: !w {ds.state = @w0}) -> tensor<f32> {
    %h0 = ds.matmul %x, %w0 {ds.layer = #ds.layer<"l", 0>} : !h, !w -> !h
    %h1 = ds.tanh %h0 {ds.layer = #ds.layer<"l", 1>} : !h
    %loss = ds.reduce sum %h1 dims [0, 1] {ds.layer = #ds.layer<"head">} : !h -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A parameter of all three layers.
!w = tensor<4x4xf32>
!h = tensor<2x4xf32>
module {
  ds.mesh @mesh axes [pp = 3] stages pp
  // expected-error@below {{expects at most two stages that read a trained parameter, but 3 do}}
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : !w
  func.func @forward(%x: !h {ds.input = "x"}, %w: !w {ds.state = @w}) -> tensor<f32> {
    %h0 = ds.matmul %x, %w {ds.layer = #ds.layer<"l", 0>} : !h, !w -> !h
    %h1 = ds.matmul %h0, %w {ds.layer = #ds.layer<"l", 1>} : !h, !w -> !h
    %h2 = ds.matmul %h1, %w {ds.layer = #ds.layer<"l", 2>} : !h, !w -> !h
    %loss = ds.reduce sum %h2 dims [0, 1] {ds.layer = #ds.layer<"l", 2>} : !h -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// A buffer that layer 0 changes and layer 1 reads.
!w = tensor<4x4xf32>
!h = tensor<2x4xf32>
module {
  ds.mesh @mesh axes [pp = 2] stages pp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : !w
  // expected-error@below {{expects one stage that reads what forward changes, but stages 0 and 1 do}}
  ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : !h
  func.func @forward(%x: !h {ds.input = "x"}, %w: !w {ds.state = @w}, %b: !h {ds.state = @b}) -> (tensor<f32>, !h {ds.state = @b}) {
    %h0 = ds.matmul %x, %w {ds.layer = #ds.layer<"l", 0>} : !h, !w -> !h
    %n = ds.add %h0, %b {ds.layer = #ds.layer<"l", 0>} : !h
    %h1 = ds.add %h0, %b {ds.layer = #ds.layer<"l", 1>} : !h
    %loss = ds.reduce sum %h1 dims [0, 1] {ds.layer = #ds.layer<"l", 1>} : !h -> tensor<f32>
    return %loss, %n : tensor<f32>, !h
  }
}
