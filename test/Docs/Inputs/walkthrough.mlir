// The model of docs/walkthrough.md: a product, SiLU, a product and its loss, on two ranks that divide everything.
module attributes {ds.phase = #ds.phase<model>, ds.training = #ds.training<
    optimizer = {type = sgd, lr = 1.0e-1},
    zero_optimization = {stage = 3, stage3_param_persistence_threshold = 0}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @w role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<16x32xf32>
  ds.state @v role(parameter) trainable init(#ds.init<normal, 0.0, 0.1>) home(device) : tensor<32x8xf32>
  func.func @forward(%x: tensor<4x16xf32> {ds.input = "x"}, %y: tensor<4xi64> {ds.input = "y"},
                     %w: tensor<16x32xf32> {ds.state = @w}, %v: tensor<32x8xf32> {ds.state = @v}) -> tensor<f32> {
    %h = ds.matmul %x, %w : tensor<4x16xf32>, tensor<16x32xf32> -> tensor<4x32xf32>
    %s = ds.sigmoid %h : tensor<4x32xf32>
    %a = ds.mul %h, %s : tensor<4x32xf32>
    %p = ds.matmul %a, %v : tensor<4x32xf32>, tensor<32x8xf32> -> tensor<4x8xf32>
    %loss, %lse, %count = ds.cross_entropy %p, %y ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
    return %loss : tensor<f32>
  }
}
