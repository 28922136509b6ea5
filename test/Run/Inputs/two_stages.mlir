// y = tanh(x w0^T) w1^T, loss = sum (y - t)^2, by SGD with momentum, as two stages in phase step: what
// ds-build-step makes of whole_stages.mlir, parted by hand behind tanh. A step has two micro-batches of 8 samples on each
// of DP ranks along dp; gradients are means, of SEED = 1 / (2 DP) each. ds-shard-zero makes the norm
// one of both stages' gradients.
module {
  module @first_half attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = sgd, lr = 1.000000e-02, momentum = 9.000000e-01}>} {
    ds.mesh @mesh axes [pp = 2, dp = DP] samples dp zero dp stages pp
    ds.state @w0 role (parameter) trainable init(#ds.init<normal, 0.000000e+00, 5.000000e-01>) home (device) : tensor<6x4xf32>
    ds.state @w0.grad role (gradient) slot("grad") owner(@w0) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<6x4xf32>
    ds.state @w0.momentum_buffer role (moment) slot("momentum_buffer") owner(@w0) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<6x4xf32>
    ds.state @step role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<i64>
    ds.state @lr role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<f64>
    ds.state @grad_norm role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<f32>
    ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@last, first 1, count 1, gradients add, reduced true>]
    func.func @first(%x: tensor<8x4xf32> {ds.input = "x"}, %w0: tensor<6x4xf32> {ds.state = @w0}) -> (tensor<6x4xf32> {ds.state = @w0.grad}) attributes {ds.segment = #ds.segment<forward, backward>} {
      %one = ds.constant dense<1.000000e+00> : tensor<8x6xf32>
      %a = ds.matmul %x, %w0 transpose_rhs {ds.work = #ds.work<forward>} : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
      %h = ds.tanh %a {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      ds.send %h to 1 along pp {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      %dh = ds.recv from 1 along pp {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %hh = ds.mul %h, %h {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %slope = ds.sub %one, %hh {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %da = ds.mul %dh, %slope {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %g = ds.matmul %da, %x transpose_lhs {ds.work = #ds.work<backward>} : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
      %sum = ds.accumulate %g {ds.work = #ds.work<backward>} : (tensor<6x4xf32>) -> tensor<6x4xf32>
      return %sum : tensor<6x4xf32>
    }
    func.func @last(%x: tensor<8x4xf32> {ds.input = "x"}, %w0: tensor<6x4xf32> {ds.state = @w0}, %step: tensor<i64> {ds.state = @step}, %before: tensor<6x4xf32> {ds.state = @w0.grad}, %moment: tensor<6x4xf32> {ds.state = @w0.momentum_buffer}) -> (tensor<f64> {ds.state = @lr}, tensor<i64> {ds.state = @step}, tensor<6x4xf32> {ds.state = @w0.momentum_buffer}, tensor<6x4xf32> {ds.state = @w0}, tensor<f32> {ds.state = @grad_norm}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
      %one = ds.constant dense<1.000000e+00> : tensor<8x6xf32>
      %rate = ds.constant dense<1.000000e-02> : tensor<f64>
      %more = ds.constant dense<1> : tensor<i64>
      %next = ds.add %step, %more {ds.work = #ds.work<update>} : tensor<i64>
      %a = ds.matmul %x, %w0 transpose_rhs {ds.work = #ds.work<forward>} : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
      %h = ds.tanh %a {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      ds.send %h to 1 along pp {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      %dh = ds.recv from 1 along pp {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %hh = ds.mul %h, %h {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %slope = ds.sub %one, %hh {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %da = ds.mul %dh, %slope {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %g = ds.matmul %da, %x transpose_lhs {ds.work = #ds.work<backward>} : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
      %sum = ds.accumulate %g into %before {ds.work = #ds.work<backward>} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
      %squares = ds.sum_of_squares %sum {ds.work = #ds.work<update>} : tensor<6x4xf32> -> tensor<f64>
      %new:2 = ds.update @w0 states(%w0, %moment) gradient(%sum) {ds.work = #ds.work<update>} : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
      ^bb0(%p: tensor<6x4xf32>, %m: tensor<6x4xf32>, %d: tensor<6x4xf32>):
        %lr = ds.constant dense<1.000000e-02> : tensor<6x4xf32>
        %keep = ds.constant dense<0.899999976> : tensor<6x4xf32>
        %kept = ds.mul %m, %keep : tensor<6x4xf32>
        %now = ds.add %kept, %d : tensor<6x4xf32>
        %by = ds.mul %now, %lr : tensor<6x4xf32>
        %to = ds.sub %p, %by : tensor<6x4xf32>
        ds.yield %now, %to : tensor<6x4xf32>, tensor<6x4xf32>
      }
      %root = ds.sqrt %squares {ds.work = #ds.work<update>} : tensor<f64>
      %norm = ds.convert %root {ds.work = #ds.work<update>} : tensor<f64> -> tensor<f32>
      return %rate, %next, %new#0, %new#1, %norm : tensor<f64>, tensor<i64>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<f32>
    }
    func.func @evaluate(%x: tensor<8x4xf32> {ds.input = "x"}, %w0: tensor<6x4xf32> {ds.state = @w0}) attributes {ds.segment = #ds.segment<evaluation>} {
      %a = ds.matmul %x, %w0 transpose_rhs {ds.work = #ds.work<forward>} : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
      %h = ds.tanh %a {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      ds.send %h to 1 along pp {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      return
    }
  }
  module @second_half {
    ds.mesh @mesh axes [pp = 2, dp = DP] samples dp zero dp stages pp
    ds.state @w1 role (parameter) trainable init(#ds.init<normal, 0.000000e+00, 5.000000e-01>) home (device) : tensor<3x6xf32>
    ds.state @w1.grad role (gradient) slot("grad") owner(@w1) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<3x6xf32>
    ds.state @w1.momentum_buffer role (moment) slot("momentum_buffer") owner(@w1) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<3x6xf32>
    ds.state @loss role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<f32>
    ds.state @eval_loss role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<f32>
    ds.state @step role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<i64>
    ds.state @lr role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<f64>
    ds.state @grad_norm role (scalar) init(#ds.init<zero, 0.000000e+00, 0.000000e+00>) home (device) : tensor<f32>
    ds.schedule stage 1 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@last, first 1, count 1, gradients add, reduced true>]
    func.func @first(%t: tensor<8x3xf32> {ds.input = "t"}, %w1: tensor<3x6xf32> {ds.state = @w1}) -> (tensor<f32> {ds.state = @loss}, tensor<3x6xf32> {ds.state = @w1.grad}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, backward>} {
      %half = ds.constant dense<5.000000e-01> : tensor<f32>
      %seed = ds.constant dense<SEED> : tensor<8x3xf32>
      %h = ds.recv from 0 along pp {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      %y = ds.matmul %h, %w1 transpose_rhs {ds.work = #ds.work<forward>} : tensor<8x6xf32>, tensor<3x6xf32> -> tensor<8x3xf32>
      %d = ds.sub %y, %t {ds.work = #ds.work<forward>} : tensor<8x3xf32>
      %dd = ds.mul %d, %d {ds.work = #ds.work<forward>} : tensor<8x3xf32>
      %total = ds.reduce sum %dd dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x3xf32> -> tensor<f32>
      %share = ds.mul %d, %seed {ds.work = #ds.work<backward>} : tensor<8x3xf32>
      %dy = ds.add %share, %share {ds.work = #ds.work<backward>} : tensor<8x3xf32>
      %dh = ds.matmul %dy, %w1 {ds.work = #ds.work<backward>} : tensor<8x3xf32>, tensor<3x6xf32> -> tensor<8x6xf32>
      ds.send %dh to 0 along pp {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %g = ds.matmul %dy, %h transpose_lhs {ds.work = #ds.work<backward>} : tensor<8x3xf32>, tensor<8x6xf32> -> tensor<3x6xf32>
      %loss = ds.mul %total, %half {ds.work = #ds.work<forward>} : tensor<f32>
      %sum = ds.accumulate %g {ds.work = #ds.work<backward>} : (tensor<3x6xf32>) -> tensor<3x6xf32>
      return %loss, %sum : tensor<f32>, tensor<3x6xf32>
    }
    func.func @last(%t: tensor<8x3xf32> {ds.input = "t"}, %w1: tensor<3x6xf32> {ds.state = @w1}, %lossBefore: tensor<f32> {ds.state = @loss}, %step: tensor<i64> {ds.state = @step}, %before: tensor<3x6xf32> {ds.state = @w1.grad}, %moment: tensor<3x6xf32> {ds.state = @w1.momentum_buffer}) -> (tensor<f32> {ds.state = @loss}, tensor<f64> {ds.state = @lr}, tensor<i64> {ds.state = @step}, tensor<3x6xf32> {ds.state = @w1.momentum_buffer}, tensor<3x6xf32> {ds.state = @w1}, tensor<f32> {ds.state = @grad_norm}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, forward, backward, update>} {
      %half = ds.constant dense<5.000000e-01> : tensor<f32>
      %seed = ds.constant dense<SEED> : tensor<8x3xf32>
      %rate = ds.constant dense<1.000000e-02> : tensor<f64>
      %more = ds.constant dense<1> : tensor<i64>
      %next = ds.add %step, %more {ds.work = #ds.work<update>} : tensor<i64>
      %h = ds.recv from 0 along pp {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      %y = ds.matmul %h, %w1 transpose_rhs {ds.work = #ds.work<forward>} : tensor<8x6xf32>, tensor<3x6xf32> -> tensor<8x3xf32>
      %d = ds.sub %y, %t {ds.work = #ds.work<forward>} : tensor<8x3xf32>
      %dd = ds.mul %d, %d {ds.work = #ds.work<forward>} : tensor<8x3xf32>
      %total = ds.reduce sum %dd dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x3xf32> -> tensor<f32>
      %share = ds.mul %d, %seed {ds.work = #ds.work<backward>} : tensor<8x3xf32>
      %dy = ds.add %share, %share {ds.work = #ds.work<backward>} : tensor<8x3xf32>
      %dh = ds.matmul %dy, %w1 {ds.work = #ds.work<backward>} : tensor<8x3xf32>, tensor<3x6xf32> -> tensor<8x6xf32>
      ds.send %dh to 0 along pp {ds.work = #ds.work<backward>} : tensor<8x6xf32>
      %g = ds.matmul %dy, %h transpose_lhs {ds.work = #ds.work<backward>} : tensor<8x3xf32>, tensor<8x6xf32> -> tensor<3x6xf32>
      %sum = ds.accumulate %g into %before {ds.work = #ds.work<backward>} : (tensor<3x6xf32>, tensor<3x6xf32>) -> tensor<3x6xf32>
      %squares = ds.sum_of_squares %sum {ds.work = #ds.work<update>} : tensor<3x6xf32> -> tensor<f64>
      %new:2 = ds.update @w1 states(%w1, %moment) gradient(%sum) {ds.work = #ds.work<update>} : (tensor<3x6xf32>, tensor<3x6xf32>, tensor<3x6xf32>) -> (tensor<3x6xf32>, tensor<3x6xf32>) {
      ^bb0(%p: tensor<3x6xf32>, %m: tensor<3x6xf32>, %e: tensor<3x6xf32>):
        %lr = ds.constant dense<1.000000e-02> : tensor<3x6xf32>
        %keep = ds.constant dense<0.899999976> : tensor<3x6xf32>
        %kept = ds.mul %m, %keep : tensor<3x6xf32>
        %now = ds.add %kept, %e : tensor<3x6xf32>
        %by = ds.mul %now, %lr : tensor<3x6xf32>
        %to = ds.sub %p, %by : tensor<3x6xf32>
        ds.yield %now, %to : tensor<3x6xf32>, tensor<3x6xf32>
      }
      %part = ds.mul %total, %half {ds.work = #ds.work<forward>} : tensor<f32>
      %own = ds.add %lossBefore, %part {ds.work = #ds.work<forward>} : tensor<f32>
      %loss = ds.rank_mean %own {ds.work = #ds.work<forward>} : tensor<f32>
      %root = ds.sqrt %squares {ds.work = #ds.work<update>} : tensor<f64>
      %norm = ds.convert %root {ds.work = #ds.work<update>} : tensor<f64> -> tensor<f32>
      return %loss, %rate, %next, %new#0, %new#1, %norm : tensor<f32>, tensor<f64>, tensor<i64>, tensor<3x6xf32>, tensor<3x6xf32>, tensor<f32>
    }
    func.func @evaluate(%t: tensor<8x3xf32> {ds.input = "t"}, %w1: tensor<3x6xf32> {ds.state = @w1}) -> (tensor<f32> {ds.state = @eval_loss}) attributes {ds.segment = #ds.segment<stage 1, chunk 0, evaluation>} {
      %h = ds.recv from 0 along pp {ds.work = #ds.work<forward>} : tensor<8x6xf32>
      %y = ds.matmul %h, %w1 transpose_rhs {ds.work = #ds.work<forward>} : tensor<8x6xf32>, tensor<3x6xf32> -> tensor<8x3xf32>
      %d = ds.sub %y, %t {ds.work = #ds.work<forward>} : tensor<8x3xf32>
      %dd = ds.mul %d, %d {ds.work = #ds.work<forward>} : tensor<8x3xf32>
      %total = ds.reduce sum %dd dims [0, 1] {ds.work = #ds.work<forward>} : tensor<8x3xf32> -> tensor<f32>
      %loss = ds.rank_mean %total {ds.work = #ds.work<forward>} : tensor<f32>
      return %loss : tensor<f32>
    }
  }
}
