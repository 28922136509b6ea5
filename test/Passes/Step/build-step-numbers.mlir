// RUN: ds-opt %s --split-input-file --ds-differentiate --ds-build-step --ds-decompose --mlir-print-op-generic | %python %oracle/check_ir_step.py | FileCheck %s
// REQUIRES: torch

// Whole steps, executed in the interpreter, against PyTorch: every optimizer, eight steps each. The
// weight is used twice, and a parameter that is not used at all does not move although decay is asked.
// CHECK: 15 modules agree

// Nothing said: Adam without decay.
module attributes {ds.training = #ds.training<>} {
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

// AdamW; biases are not decayed; three micro-steps; clipped.
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 3, gradient_clipping = 0.5, no_decay = ["^b$"], optimizer = {type = adam, lr = 0.05, weight_decay = 0.1}>} {
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

// Two micro-steps, not clipped.
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = adam, lr = 0.05, weight_decay = 0.1}>} {
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

// Adam with L2 decay, own betas and epsilon, a bound that is never reached.
module attributes {ds.training = #ds.training<gradient_clipping = 1.0e6, optimizer = {type = adam, lr = 0.05, weight_decay = 0.1, adam_w_mode = false, beta1 = 0.8, beta2 = 0.9, eps = 0.01}>} {
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

// Adam without bias correction.
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 0.05, weight_decay = 0.1, bias_correction = false}>} {
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

// Plain SGD.
module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 0.01}>} {
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

// SGD with momentum and decay.
module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 0.01, momentum = 0.9, weight_decay = 0.1}>} {
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

// SGD with dampening.
module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 0.01, momentum = 0.9, dampening = 0.5}>} {
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

// Nesterov.
module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 0.01, momentum = 0.9, nesterov = true}>} {
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

// Adagrad.
module attributes {ds.training = #ds.training<optimizer = {type = adagrad, weight_decay = 0.1}>} {
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

// Lion.
module attributes {ds.training = #ds.training<optimizer = {type = lion, lr = 0.01, weight_decay = 0.1}>} {
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

// Lamb.
module attributes {ds.training = #ds.training<optimizer = {type = lamb, lr = 0.01, weight_decay = 0.1}>} {
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

// Lamb with a narrow trust ratio.
module attributes {ds.training = #ds.training<optimizer = {type = lamb, lr = 0.01, min_coeff = 0.9, max_coeff = 1.1, bias_correction = false}>} {
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

// Adagrad with a rate that decays, from a sum that is not zero.
module attributes {ds.training = #ds.training<optimizer = {type = adagrad, lr = 0.05, lr_decay = 0.1, initial_accumulator_value = 0.5}>} {
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

// Lamb with epsilon inside the root.
module attributes {ds.training = #ds.training<optimizer = {type = lamb, lr = 0.01, eps = 0.01, eps_inside_sqrt = true}>} {
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
