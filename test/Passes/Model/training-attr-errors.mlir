// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-differentiate

// What the module attribute ds.training may hold is checked where it is read; no pass sees another.

// expected-error@+1 {{ds.training expects at least 1 for gradient_accumulation_steps, but got 0}}
module attributes {ds.training = #ds.training<gradient_accumulation_steps = 0>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects at least 0 for gradient_clipping, but got -1.000000e+00}}
module attributes {ds.training = #ds.training<gradient_clipping = -1.0>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training has no key "learning_rate" in optimizer}}
module attributes {ds.training = #ds.training<optimizer = {type = adam, learning_rate = 0.1}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects a float for optimizer.lr, but got 1 : i64}}
module attributes {ds.training = #ds.training<optimizer = {type = adam, lr = 1}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects sgd, adam, adagrad, lion or lamb for optimizer.type, but got muon}}
module attributes {ds.training = #ds.training<optimizer = {type = muon}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects a positive scheduler.total_num_steps, or -1 for that of the run, but got 0}}
module attributes {ds.training = #ds.training<scheduler = {type = WarmupDecayLR}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects a regular expression in no_decay, but got "("}}
module attributes {ds.training = #ds.training<no_decay = ["("]>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects f32, bf16 or f16 for precision.compute, but got f8}}
module attributes {ds.training = #ds.training<precision = {compute = f8}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training has no key "dtype" in precision}}
module attributes {ds.training = #ds.training<precision = {dtype = "bf16"}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects a positive loss_scale.initial, but got 0}}
module attributes {ds.training = #ds.training<loss_scale = {skip = true, scale = true, initial = 0.0}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects at least 1 for loss_scale.window, but got 0}}
module attributes {ds.training = #ds.training<loss_scale = {skip = true, scale = true, dynamic = true, window = 0}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects loss_scale.skip where losses are scaled, but got false}}
module attributes {ds.training = #ds.training<loss_scale = {scale = true}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects mean or sum for reduce_op, but got max}}
module attributes {ds.training = #ds.training<reduce_op = max>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects f32, bf16 or f16 for communication_data_type, but got i8}}
module attributes {ds.training = #ds.training<communication_data_type = i8>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training has no key "level" in zero_optimization}}
module attributes {ds.training = #ds.training<zero_optimization = {level = 2}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects 0 to 3 for zero_optimization.stage, but got 4}}
module attributes {ds.training = #ds.training<zero_optimization = {stage = 4}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects bucket sizes of at least 1 element, but got 0}}
module attributes {ds.training = #ds.training<zero_optimization = {sub_group_size = 0}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects at least 0 for recompute.interval, but got -1}}
module attributes {ds.training = #ds.training<recompute = {interval = -1}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects one of recompute.checkpoints and recompute.interval, but got both}}
module attributes {ds.training = #ds.training<recompute = {checkpoints = 2, interval = 1}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects layers or ops in recompute, but got both}}
module attributes {ds.training = #ds.training<recompute = {layers = [1], ops = ["exp"]}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects a string for recompute.ops, but got 1 : i64}}
module attributes {ds.training = #ds.training<recompute = {ops = [1]}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training expects keep, choose or move for offload.activations, but got all}}
module attributes {ds.training = #ds.training<offload = {activations = all}>} {
  func.func @forward(%x: tensor<f32> {ds.input = "x"}) -> tensor<f32> { return %x : tensor<f32> }
}

// -----

// expected-error@+1 {{ds.training has optimizer.lr twice}}
module attributes {ds.training = #ds.training<optimizer = {lr = 1.0, lr = 2.0}>} {
}

// -----

// expected-error@+1 {{ds.training expects optimizer.type before what depends on it}}
module attributes {ds.training = #ds.training<optimizer = {lr = 1.0, type = sgd}>} {
}

// -----

// expected-error@+1 {{ds.training has no key "stages"}}
module attributes {ds.training = #ds.training<stages = 4>} {
}

// -----

// expected-error@+1 {{ds.training expects an integer for loss_chunks, but got true}}
module attributes {ds.training = #ds.training<loss_chunks = true>} {
}

// -----

// expected-error@+1 {{expected valid keyword}}
module attributes {ds.training = #ds.training<optimizer = {type = "sgd"}>} {
}

// -----

// expected-error@+1 {{expected '{'}}
module attributes {ds.training = #ds.training<optimizer = 3>} {
}
