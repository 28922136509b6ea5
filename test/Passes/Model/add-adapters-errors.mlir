// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-add-adapters="layers=*.fc:4"

// No layer is called so; the nearest names are told.
// expected-error@+2 {{--lora '*.fc': no layer has such a name}}
// expected-note@+1 {{the nearest are '*.fc1', '*.head'}}
module {
  ds.state @a.fc1.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  ds.state @a.head.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  ds.state @a.fc.bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %w: tensor<8x8xf32> {ds.state = @a.fc1.weight},
                     %h: tensor<8x8xf32> {ds.state = @a.head.weight}) -> tensor<f32> {
    %l = ds.reduce sum %x dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A rank above the lesser of inputs and outputs has no more to say than the matrix itself.
// expected-error@+2 {{--lora '*.fc': a.fc cannot have an adapter: rank 4 is above its width of 3}}
// expected-note@+1 {{give such layers a rank of at most 3}}
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<3x8xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %w: tensor<3x8xf32> {ds.state = @a.fc.weight}) -> tensor<f32> {
    %y = ds.matmul %x, %w transpose_rhs : tensor<2x8xf32>, tensor<3x8xf32> -> tensor<2x3xf32>
    %l = ds.reduce sum %y dims [0, 1] : tensor<2x3xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// An embedding, here one that an output layer shares and is named by.
// expected-error@+2 {{--lora '*.fc': a.fc cannot have an adapter: its weight is read by ds.embedding, as an embedding}}
// expected-note@+1 {{name linear layers alone, as '*_proj'; --phase model --emit ir shows what reads a weight}}
module {
  ds.state @a.table.weight role(parameter) trainable aliases ["a.fc.weight"] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%i: tensor<2xi64> {ds.input = "i"}, %w: tensor<8x8xf32> {ds.state = @a.table.weight}) -> tensor<f32> {
    %x = ds.embedding %w, %i : tensor<8x8xf32>, tensor<2xi64> -> tensor<2x8xf32>
    %y = ds.matmul %x, %w transpose_rhs : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %l = ds.reduce sum %y dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A norm.
// expected-error@+2 {{--lora '*.fc': a.fc cannot have an adapter: its weight is read by ds.rms_norm, which is no linear layer}}
// expected-note@+1 {{name linear layers alone}}
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @a.fc.weight}) -> tensor<f32> {
    %y, %r = ds.rms_norm %x weight(%w) over 1 epsilon 1.0e-5 : tensor<2x8xf32>, tensor<8xf32> -> tensor<2x8xf32>, tensor<2xf32>
    %l = ds.reduce sum %y dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A product whose left side is the parameter.
// expected-error@+2 {{--lora '*.fc': a.fc cannot have an adapter: its weight is read by ds.matmul, which is no linear layer}}
// expected-note@+1 {{name linear layers alone}}
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%x: tensor<8x8xf32> {ds.input = "x"}, %w: tensor<8x8xf32> {ds.state = @a.fc.weight}) -> tensor<f32> {
    %y = ds.matmul %w, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %l = ds.reduce sum %y dims [0, 1] : tensor<8x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Experts: a matrix each.
// expected-error@+2 {{--lora '*.fc': a.fc cannot have an adapter: its weight has 3 dimensions, not 2}}
// expected-note@+1 {{name linear layers alone}}
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x8x8xf32>
  func.func @forward(%x: tensor<2x8x8xf32> {ds.input = "x"}, %w: tensor<2x8x8xf32> {ds.state = @a.fc.weight}) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<2x8x8xf32>, tensor<2x8x8xf32> -> tensor<2x8x8xf32>
    %l = ds.reduce sum %y dims [0, 1, 2] : tensor<2x8x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// One weight, used as it is and transposed.
// expected-error@+2 {{--lora '*.fc': a.fc cannot have an adapter: its weight is used both as it is and transposed}}
// expected-note@+1 {{name linear layers alone}}
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %w: tensor<8x8xf32> {ds.state = @a.fc.weight}) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %z = ds.matmul %y, %w transpose_rhs : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %l = ds.reduce sum %z dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// Two layers of two layouts.
// expected-error@+2 {{--lora '*.fc': b.fc cannot have an adapter: its weight is laid out otherwise than that of a.fc}}
// expected-note@+1 {{adapter_config.json has one fan_in_fan_out for all: name layers of one layout}}
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  ds.state @b.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %w: tensor<8x8xf32> {ds.state = @a.fc.weight},
                     %v: tensor<8x8xf32> {ds.state = @b.fc.weight}) -> tensor<f32> {
    %y = ds.matmul %x, %w : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %z = ds.matmul %y, %v transpose_rhs : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %l = ds.reduce sum %z dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// A weight that nothing reads.
// expected-error@+2 {{--lora '*.fc': a.fc cannot have an adapter: nothing reads its weight}}
// expected-note@+1 {{name linear layers alone}}
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}) -> tensor<f32> {
    %l = ds.reduce sum %x dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}

// -----

// expected-error@+1 {{expects a function @forward to add adapters to, but the module has none}}
module {
}
