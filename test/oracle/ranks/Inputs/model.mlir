// A classifier of words with what ranks must agree on: a table that is used at both ends, parameters that all ranks keep whole,
// dropout, whose numbers depend on the sample, and a loss over classes.
module {
  ds.state @table role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<12x40xf32>
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<40x48xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<48xf32>
  ds.state @g role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<40xf32>
  ds.state @v role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<48x40xf32>
  ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
  func.func @forward(%x: tensor<2x3xi64> {ds.input = "x"}, %y: tensor<2x3xi64> {ds.input = "y"},
                     %table: tensor<12x40xf32> {ds.state = @table}, %w: tensor<40x48xf32> {ds.state = @w},
                     %b: tensor<48xf32> {ds.state = @b}, %g: tensor<40xf32> {ds.state = @g}, %v: tensor<48x40xf32> {ds.state = @v},
                     %rng: tensor<2xi64> {ds.state = @rng}) -> tensor<f32> {
    %e = ds.embedding %table, %x : tensor<12x40xf32>, tensor<2x3xi64> -> tensor<2x3x40xf32>
    %h = ds.reshape %e : tensor<2x3x40xf32> -> tensor<6x40xf32>
    %n, %r = ds.rms_norm %h weight(%g) over 1 epsilon 1.000000e-05 : tensor<6x40xf32>, tensor<40xf32> -> tensor<6x40xf32>, tensor<6xf32>
    %u = ds.matmul %n, %w bias(%b) : tensor<6x40xf32>, tensor<40x48xf32>, tensor<48xf32> -> tensor<6x48xf32>
    %t = ds.tanh %u : tensor<6x48xf32>
    %d = ds.dropout %t, %rng probability 2.500000e-01 id 3 : tensor<6x48xf32>, tensor<2xi64>
    %o = ds.matmul %d, %v : tensor<6x48xf32>, tensor<48x40xf32> -> tensor<6x40xf32>
    %l = ds.matmul %o, %table transpose_rhs : tensor<6x40xf32>, tensor<12x40xf32> -> tensor<6x12xf32>
    %targets = ds.reshape %y : tensor<2x3xi64> -> tensor<6xi64>
    %loss, %lse, %count = ds.cross_entropy %l, %targets ignore_index -100 : (tensor<6x12xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}
