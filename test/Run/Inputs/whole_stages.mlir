// The model of two_stages.mlir in one piece. STEPS micro-batches of 8 samples make a step.
module attributes {ds.training = #ds.training<gradient_accumulation_steps = STEPS, optimizer = {type = sgd, lr = 1.000000e-02, momentum = 9.000000e-01}>} {
  ds.state @w0 role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<6x4xf32>
  ds.state @w1 role(parameter) trainable init(#ds.init<normal, 0.0, 0.5>) home(device) : tensor<3x6xf32>
  func.func @forward(%x: tensor<8x4xf32> {ds.input = "x"}, %t: tensor<8x3xf32> {ds.input = "t"}, %w0: tensor<6x4xf32> {ds.state = @w0}, %w1: tensor<3x6xf32> {ds.state = @w1}) -> tensor<f32> {
    %a = ds.matmul %x, %w0 transpose_rhs : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
    %h = ds.tanh %a : tensor<8x6xf32>
    %y = ds.matmul %h, %w1 transpose_rhs : tensor<8x6xf32>, tensor<3x6xf32> -> tensor<8x3xf32>
    %d = ds.sub %y, %t : tensor<8x3xf32>
    %dd = ds.mul %d, %d : tensor<8x3xf32>
    %sum = ds.reduce sum %dd dims [0, 1] : tensor<8x3xf32> -> tensor<f32>
    return %sum : tensor<f32>
  }
}
