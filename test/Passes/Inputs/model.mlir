// A classifier of two layers with all that phases differ in: composite ops, dropout, a loss over classes, three
// micro-steps, two ranks that divide everything.
module attributes {ds.phase = #ds.phase<model>, ds.training = #ds.training<
    gradient_accumulation_steps = 3, gradient_clipping = 1.0,
    optimizer = {type = adam, lr = 1.0e-3},
    zero_optimization = {stage = 3, stage3_param_persistence_threshold = 0}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<16x32xf32>
  ds.state @b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @g role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<32xf32>
  ds.state @v role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<32x8xf32>
  func.func @forward(%x: tensor<4x16xf32> {ds.input = "x"}, %y: tensor<4xi64> {ds.input = "y"},
                     %w: tensor<16x32xf32> {ds.state = @w}, %b: tensor<32xf32> {ds.state = @b},
                     %g: tensor<32xf32> {ds.state = @g}, %v: tensor<32x8xf32> {ds.state = @v}) -> tensor<f32> {
    %p = ds.matmul %x, %w : tensor<4x16xf32>, tensor<16x32xf32> -> tensor<4x32xf32>
    %c = ds.broadcast %b dims [1] : tensor<32xf32> -> tensor<4x32xf32>
    %s = ds.add %p, %c : tensor<4x32xf32>
    %t = ds.tanh %s : tensor<4x32xf32>
    %n, %r = ds.rms_norm %t weight(%g) over 1 epsilon 1.000000e-05 : tensor<4x32xf32>, tensor<32xf32> -> tensor<4x32xf32>, tensor<4xf32>
    %l = ds.matmul %n, %v : tensor<4x32xf32>, tensor<32x8xf32> -> tensor<4x8xf32>
    %loss, %lse, %count = ds.cross_entropy %l, %y ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}
