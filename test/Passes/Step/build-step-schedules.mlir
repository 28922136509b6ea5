// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-build-step --ds-decompose --mlir-print-op-generic | %python %oracle/check_ir_step.py | FileCheck %s
// REQUIRES: torch

// Whole steps, as in build-step-numbers.mlir, with every schedule of the learning rate.
// CHECK: 9 modules agree

// Warm-up along a logarithm, 4 steps, then constant.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = WarmupLR, warmup_min_lr = 0.001, warmup_max_lr = 0.1, warmup_num_steps = 4}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Warm-up along a line from 0.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = WarmupLR, warmup_max_lr = 0.1, warmup_num_steps = 4, warmup_log = false}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Warm-up and decay to the end, which is passed.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = WarmupDecayLR, warmup_max_lr = 0.1, warmup_num_steps = 3, total_num_steps = 6}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Warm-up and cosine, past its end.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = WarmupCosineLR, warmup_num_steps = 2, total_num_steps = 6, warmup_min_ratio = 0.1, cos_min_ratio = 0.05}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Range test.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = LRRangeTest, lr_range_test_min_lr = 0.01, lr_range_test_step_size = 3, lr_range_test_step_rate = 2.0}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// Range test with stairs.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = LRRangeTest, lr_range_test_min_lr = 0.01, lr_range_test_step_size = 3, lr_range_test_staircase = true}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// One cycle with momentum, decaying after 2 + 3 steps.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = OneCycle, cycle_min_lr = 0.001, cycle_max_lr = 0.1, cycle_first_step_size = 2, cycle_second_step_size = 3, decay_step_size = 2, decay_lr_rate = 0.5, decay_mom_rate = 0.01}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// One cycle without momentum or decay.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = OneCycle, cycle_min_lr = 0.001, cycle_max_lr = 0.1, cycle_first_step_size = 3, cycle_momentum = false}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// One cycle in stairs: 2 on 4 steps up, 3 on 3 steps down.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05}, scheduler = {type = OneCycle, cycle_min_lr = 0.001, cycle_max_lr = 0.1, cycle_first_step_size = 4, cycle_second_step_size = 3, cycle_first_stair_count = 2, cycle_second_stair_count = 3}>} {
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<6x5xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  ds.state @unused role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>
  func.func @forward(%x: tensor<4x5xf32> {ds.input = "x"}, %w: tensor<6x5xf32> {ds.state = @w}, %b: tensor<6xf32> {ds.state = @b},
                     %unused: tensor<6xf32> {ds.state = @unused}) -> tensor<f32> {
    %h = ds.matmul %x, %w bias(%b) transpose_rhs : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6xf32> -> tensor<4x6xf32>
    %a = ds.tanh %h : tensor<4x6xf32>
    %back = ds.matmul %a, %w : tensor<4x6xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
    %d = ds.sub %back, %x : tensor<4x5xf32>
    %s = ds.mul %d, %d : tensor<4x5xf32>
    %loss = ds.reduce sum %s dims [0, 1] : tensor<4x5xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}
