// RUN: ds-opt %s --split-input-file --ds-build-step --ds-decompose | FileCheck %s --implicit-check-not=@forward

// One micro-step: only @last and @evaluate. A plain rate is a constant of the update. The loss state is the loss.

module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 0.5}>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @u role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  func.func @forward(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w}, %u: tensor<8xf32> {ds.state = @u})
      -> (tensor<f32>, tensor<8xf32> {ds.state = #ds.gradient<@w>}) {
    %p = ds.mul %x, %w : tensor<8xf32>
    %loss = ds.reduce sum %p dims [0] : tensor<8xf32> -> tensor<f32>
    return %loss, %x : tensor<f32>, tensor<8xf32>
  }
}
// CHECK-LABEL: {ds.phase = #ds.phase<step>, ds.training
// CHECK-DAG: ds.state @loss role{{ ?}}(scalar) {{.*}} : tensor<f32>
// CHECK-DAG: ds.state @step role{{ ?}}(scalar) {{.*}} : tensor<i64>
// CHECK-DAG: ds.state @lr role{{ ?}}(scalar) {{.*}} : tensor<f64>
// CHECK-DAG: ds.state @grad_norm role{{ ?}}(scalar) {{.*}} : tensor<f32>
// CHECK-DAG: ds.state @eval_loss role{{ ?}}(scalar) {{.*}} : tensor<f32>
// CHECK-NOT: func.func @first
// CHECK: func.func @last(%[[X:.*]]: tensor<8xf32> {ds.input = "x"}, %[[W:.*]]: tensor<8xf32> {ds.state = @w}, %[[STEP:.*]]: tensor<i64> {ds.state = @step})
// CHECK-SAME: -> (tensor<f32> {ds.state = @loss}, tensor<f64> {ds.state = @lr}, tensor<i64> {ds.state = @step}, tensor<8xf32> {ds.state = @w}, tensor<f32> {ds.state = @grad_norm})
// CHECK-SAME: #ds.segment<forward, backward, update>
// CHECK-DAG: %[[ONE:.*]] = ds.constant dense<1>{{.*}} : tensor<i64>
// CHECK-DAG: %[[RATE:.*]] = ds.constant dense<5.000000e-01>{{.*}} : tensor<8xf32>
// CHECK-DAG: %[[LR:.*]] = ds.constant dense<5.000000e-01>{{.*}} : tensor<f64>
// CHECK-DAG: %[[NEXT:.*]] = ds.add %[[STEP]], %[[ONE]]
// CHECK: %[[UPDATE:.*]] = ds.mul %[[X]], %[[RATE]]
// CHECK: %[[NEW:.*]] = ds.sub %[[W]], %[[UPDATE]]
// CHECK: %[[LOSS:.*]] = ds.reduce sum %{{.*}} dims [0]
// CHECK: %[[NORM:.*]] = ds.convert
// CHECK: return %[[LOSS]], %[[LR]], %[[NEXT]], %[[NEW]], %[[NORM]]
// CHECK: func.func @evaluate(%{{.*}}: tensor<8xf32> {ds.input = "x"}, %{{.*}}: tensor<8xf32> {ds.state = @w}) -> (tensor<f32> {ds.state = @eval_loss})
// CHECK-SAME: #ds.segment<evaluation>
// CHECK-NEXT: ds.mul
// CHECK-NEXT: ds.reduce
// CHECK-NEXT: return

// -----

// Two micro-steps need no @middle. @first writes the gradient as it is; @last adds it inside its product.

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = sgd}>} {
  ds.state @two role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %g: tensor<2x4xf32> {ds.input = "g"}, %l: tensor<f32> {ds.input = "l"}, %w: tensor<8x4xf32> {ds.state = @two})
      -> (tensor<f32>, tensor<8x4xf32> {ds.state = #ds.gradient<@two>}) {
    %dw = ds.matmul %x, %g transpose_lhs : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
    return %l, %dw : tensor<f32>, tensor<8x4xf32>
  }
}
// CHECK-LABEL: ds.state @two role
// CHECK: ds.state @two.grad role{{ ?}}(gradient) slot("grad") owner(@two) {{.*}} : tensor<8x4xf32>
// CHECK: func.func @first
// CHECK-SAME: -> (tensor<f32> {ds.state = @loss}, tensor<8x4xf32> {ds.state = @two.grad})
// CHECK-SAME: #ds.segment<forward, backward>
// CHECK: %[[HALF:.*]] = ds.constant dense<5.000000e-01>
// CHECK: %[[DW:.*]] = ds.matmul %{{.*}}, %{{.*}} transpose_lhs{{.*}} :
// CHECK: %[[SHARE:.*]] = ds.mul %{{.*}}, %[[HALF]]
// CHECK: return %[[SHARE]], %[[DW]]
// CHECK-NOT: func.func @middle
// CHECK: func.func @last
// CHECK-SAME: %[[LOSS:[a-z0-9]*]]: tensor<f32> {ds.state = @loss}
// CHECK-SAME: %[[KEPT:[a-z0-9]*]]: tensor<8x4xf32> {ds.state = @two.grad}
// CHECK-NOT: {ds.state = @two.grad}
// CHECK: %[[SUM:.*]] = ds.matmul %{{.*}}, %{{.*}} into(%[[KEPT]]) transpose_lhs
// CHECK-NOT: ds.add %[[SUM]]
// CHECK: %[[MEAN:.*]] = ds.add %[[LOSS]], %{{.*}} : tensor<f32>

// -----

// With four, @middle adds to what is kept. A tied table's two gradients meet in one chain: what is kept, the product
// into it, the rows into that. No table is made beside it.

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 4, optimizer = {type = sgd}>} {
  ds.state @t role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
  func.func @forward(%i: tensor<2xi64> {ds.input = "i"}, %x: tensor<2x8xf32> {ds.input = "x"}, %g: tensor<2x4xf32> {ds.input = "g"}, %l: tensor<f32> {ds.input = "l"}, %t: tensor<8x4xf32> {ds.state = @t})
      -> (tensor<f32>, tensor<8x4xf32> {ds.state = #ds.gradient<@t>}) {
    %product = ds.matmul %x, %g transpose_lhs : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
    %rows = ds.embedding_grad %i, %g : tensor<2xi64>, tensor<2x4xf32> -> tensor<8x4xf32>
    %dt = ds.add %product, %rows : tensor<8x4xf32>
    return %l, %dt : tensor<f32>, tensor<8x4xf32>
  }
}
// CHECK-LABEL: ds.state @t role
// CHECK: ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@middle, first 1, count 2, gradients add>, #ds.run<@last, first 3, count 1, gradients add, reduced true>]
// CHECK: func.func @first
// CHECK: %[[PRODUCT:.*]] = ds.matmul %{{.*}}, %{{.*}} transpose_lhs{{.*}} :
// CHECK: %[[DT:.*]] = ds.embedding_grad %{{.*}}, %{{.*}} into(%[[PRODUCT]]{{.*}} : tensor<8x4xf32>)
// CHECK: return %{{.*}}, %[[DT]]
// CHECK: func.func @middle
// CHECK-SAME: %[[KEPT:[a-z0-9]*]]: tensor<8x4xf32> {ds.state = @t.grad}) -> (tensor<f32> {ds.state = @loss}, tensor<8x4xf32> {ds.state = @t.grad})
// CHECK-SAME: #ds.segment<forward, backward>
// CHECK: %[[PRODUCT:.*]] = ds.matmul %{{.*}}, %{{.*}} into(%[[KEPT]]) transpose_lhs
// CHECK: %[[SUM:.*]] = ds.embedding_grad %{{.*}}, %{{.*}} into(%[[PRODUCT]]{{.*}} : tensor<8x4xf32>)
// CHECK: return %{{.*}}, %[[SUM]]
// CHECK: func.func @last
// CHECK: ds.matmul %{{.*}}, %{{.*}} into(

// -----

// A product that something else reads as well, or with a ReLU, is not accumulated into.

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = sgd}>} {
  ds.state @single role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %g: tensor<2x4xf32> {ds.input = "g"}, %v: tensor<8x4xf32> {ds.state = @single}, %w: tensor<8x4xf32> {ds.state = @w})
      -> (tensor<f32>, tensor<8x4xf32> {ds.state = #ds.gradient<@single>}, tensor<8x4xf32> {ds.state = #ds.gradient<@w>}) {
    %dv = ds.matmul %x, %g transpose_lhs epilogue(relu) : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
    %dw = ds.matmul %x, %g transpose_lhs : tensor<2x8xf32>, tensor<2x4xf32> -> tensor<8x4xf32>
    %l = ds.reduce sum %dw dims [0, 1] : tensor<8x4xf32> -> tensor<f32>
    return %l, %dv, %dw : tensor<f32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
}
// CHECK-LABEL: ds.state @single role
// CHECK: func.func @last
// CHECK-NOT: into(
// CHECK: func.func @evaluate

// -----

// Without clipping the second layer is updated before the first layer's gradient is made, but after its weight was
// read for the last time: by the product that carries the gradient on.

module attributes {ds.training = #ds.training<optimizer = {type = sgd, lr = 0.5}>} {
  ds.state @early role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  func.func @forward(%x: tensor<4x4xf32> {ds.input = "x"}, %v: tensor<4x4xf32> {ds.state = @early}, %w: tensor<4x4xf32> {ds.state = @w})
      -> (tensor<f32>, tensor<4x4xf32> {ds.state = #ds.gradient<@early>}, tensor<4x4xf32> {ds.state = #ds.gradient<@w>}) {
    %y = ds.matmul %x, %v : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %z = ds.matmul %y, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %l = ds.reduce sum %z dims [0, 1] : tensor<4x4xf32> -> tensor<f32>
    %dw = ds.matmul %y, %x transpose_lhs : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %dy = ds.matmul %x, %w transpose_rhs : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %dv = ds.matmul %x, %dy transpose_lhs : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %l, %dv, %dw : tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>
  }
}
// CHECK-LABEL: ds.state @early role
// CHECK: func.func @last(%{{.*}}: tensor<4x4xf32> {ds.input = "x"}, %[[V:.*]]: tensor<4x4xf32> {ds.state = @early}, %[[W:.*]]: tensor<4x4xf32> {ds.state = @w}
// CHECK: %[[DW:.*]] = ds.matmul %{{.*}}, %{{.*}} transpose_lhs
// CHECK-NEXT: %[[DY:.*]] = ds.matmul %{{.*}}, %[[W]] transpose_rhs
// CHECK-NOT: ds.matmul
// CHECK: ds.sub %[[W]]
// CHECK: %[[DV:.*]] = ds.matmul %{{.*}}, %[[DY]] transpose_lhs
// CHECK: ds.sub %[[V]]

// -----

// With clipping all updates follow the norm: one coefficient, min(1, clipping / (norm + 1e-6)), for all gradients.

module attributes {ds.training = #ds.training<gradient_clipping = 2.0, optimizer = {type = sgd, lr = 0.5}>} {
  ds.state @late role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  func.func @forward(%x: tensor<4xf32> {ds.input = "x"}, %l: tensor<f32> {ds.input = "l"}, %v: tensor<4xf32> {ds.state = @late}, %w: tensor<4xf32> {ds.state = @w})
      -> (tensor<f32>, tensor<4xf32> {ds.state = #ds.gradient<@late>}, tensor<4xf32> {ds.state = #ds.gradient<@w>}) {
    %dv = ds.exp %x : tensor<4xf32>
    %dw = ds.neg %x : tensor<4xf32>
    return %l, %dv, %dw : tensor<f32>, tensor<4xf32>, tensor<4xf32>
  }
}
// CHECK-LABEL: ds.state @late role
// CHECK: func.func @last
// CHECK-DAG: %[[ONE:.*]] = ds.constant dense<1.000000e+00>{{.*}} : tensor<f64>
// CHECK-DAG: %[[TINY:.*]] = ds.constant dense<9.9{{.*}}E-7>{{.*}} : tensor<f64>
// CHECK-DAG: %[[BOUND:.*]] = ds.constant dense<2.000000e+00>{{.*}} : tensor<f64>
// CHECK: %[[DV:.*]] = ds.exp
// CHECK: %[[DW:.*]] = ds.neg
// CHECK-NOT: ds.sub
// CHECK: %[[SUM:.*]] = ds.sum_of_squares %[[DV]], %[[DW]]
// CHECK: %[[NORM:.*]] = ds.sqrt %[[SUM]]
// CHECK: %[[LOGGED:.*]] = ds.convert %[[NORM]]{{.*}} : tensor<f64> -> tensor<f32>
// CHECK: %[[SHIFTED:.*]] = ds.add %[[NORM]], %[[TINY]]
// CHECK: %[[RATIO:.*]] = ds.div %[[BOUND]], %[[SHIFTED]]
// CHECK: %[[BOUNDED:.*]] = ds.min %[[RATIO]], %[[ONE]]
// CHECK: %[[COEFFICIENT:.*]] = ds.convert %[[BOUNDED]]{{.*}} : tensor<f64> -> tensor<f32>
// CHECK: %[[FACTORS:.*]] = ds.broadcast %[[COEFFICIENT]]
// CHECK: ds.mul %[[DV]], %[[FACTORS]]
// CHECK: ds.sub
// CHECK: ds.mul %[[DW]]
// CHECK: ds.sub
// CHECK: return {{.*}}, %[[LOGGED]]

// -----

// Squares are summed in f32 over 2 blocks of 16384 elements, in f64 over the blocks; the tail of
// 40000 - 2 * 16384 = 7232 elements is a block of its own.

module attributes {ds.training = #ds.training<optimizer = {type = sgd}>} {
  ds.state @blocks role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<200x200xf32>
  func.func @forward(%x: tensor<200x200xf32> {ds.input = "x"}, %l: tensor<f32> {ds.input = "l"}, %w: tensor<200x200xf32> {ds.state = @blocks})
      -> (tensor<f32>, tensor<200x200xf32> {ds.state = #ds.gradient<@blocks>}) {
    %dw = ds.exp %x : tensor<200x200xf32>
    return %l, %dw : tensor<f32>, tensor<200x200xf32>
  }
}
// CHECK-LABEL: ds.state @blocks role
// CHECK: func.func @last
// CHECK: %[[FLAT:.*]] = ds.reshape %{{.*}} : tensor<200x200xf32> -> tensor<40000xf32>
// CHECK: %[[MAIN:.*]] = ds.slice %[[FLAT]] offsets [0] strides [1]{{.*}} : tensor<40000xf32> -> tensor<32768xf32>
// CHECK: %[[BLOCKS:.*]] = ds.reshape %[[MAIN]]{{.*}} : tensor<32768xf32> -> tensor<2x16384xf32>
// CHECK: %[[SQUARES:.*]] = ds.mul %[[BLOCKS]], %[[BLOCKS]]
// CHECK: %[[PARTIAL:.*]] = ds.reduce sum %[[SQUARES]] dims [1]{{.*}} : tensor<2x16384xf32> -> tensor<2xf32>
// CHECK: %[[WIDE:.*]] = ds.convert %[[PARTIAL]]{{.*}} : tensor<2xf32> -> tensor<2xf64>
// CHECK: ds.reduce sum %[[WIDE]] dims [0]{{.*}} : tensor<2xf64> -> tensor<f64>
// CHECK: ds.slice %[[FLAT]] offsets [32768] strides [1]{{.*}} : tensor<40000xf32> -> tensor<7232xf32>

// -----

// The generator that dropout reads moves on by one in every micro-step; evaluation has no dropout and does not read it.

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2, optimizer = {type = sgd}>} {
  ds.state @random role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
  func.func @forward(%w: tensor<4xf32> {ds.state = @random}, %rng: tensor<2xi64> {ds.state = @rng}) -> (tensor<f32>, tensor<4xf32> {ds.state = #ds.gradient<@random>}) {
    %d = ds.dropout %w, %rng probability 0.1 id 0 : tensor<4xf32>, tensor<2xi64>
    %l = ds.reduce sum %d dims [0] : tensor<4xf32> -> tensor<f32>
    return %l, %d : tensor<f32>, tensor<4xf32>
  }
}
// CHECK-LABEL: ds.state @random role
// CHECK: func.func @first
// CHECK-SAME: %[[RNG:[a-z0-9]*]]: tensor<2xi64> {ds.state = @rng}
// CHECK-SAME: tensor<2xi64> {ds.state = @rng}
// CHECK: %[[INCREMENT:.*]] = ds.iota dim 0 start 0 step 1{{.*}} : tensor<2xi64>
// CHECK: %[[NEXT:.*]] = ds.add %[[RNG]], %[[INCREMENT]]
// CHECK: return %{{.*}}, %[[NEXT]]
// CHECK: func.func @last
// CHECK: ds.iota
// CHECK: func.func @evaluate(%[[W:.*]]: tensor<4xf32> {ds.state = @random}) ->
// CHECK-NEXT: %[[L:.*]] = ds.reduce sum %[[W]]
// CHECK-NEXT: return %[[L]]

// -----

// Moments start as zero and belong to their parameter; those of a 16-bit parameter are f32. The name that no_decay
// matches keeps its value: the other is multiplied by 1 - 0.5 * 0.25 = 0.875 first.

module attributes {ds.training = #ds.training<no_decay = ["bias$"], optimizer = {type = lion, lr = 0.5, weight_decay = 0.25}>} {
  ds.state @h.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xbf16>
  ds.state @h.bias role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
  func.func @forward(%l: tensor<f32> {ds.input = "l"}, %g: tensor<4xbf16> {ds.input = "g"}, %k: tensor<4xf32> {ds.input = "k"}, %w: tensor<4xbf16> {ds.state = @h.weight}, %b: tensor<4xf32> {ds.state = @h.bias})
      -> (tensor<f32>, tensor<4xbf16> {ds.state = #ds.gradient<@h.weight>}, tensor<4xf32> {ds.state = #ds.gradient<@h.bias>}) {
    return %l, %g, %k : tensor<f32>, tensor<4xbf16>, tensor<4xf32>
  }
}
// CHECK-LABEL: ds.state @h.weight role
// CHECK-DAG: ds.state @h.weight.exp_avg role{{ ?}}(moment) slot("exp_avg") owner(@h.weight) init(#ds.init<zero, {{.*}} : tensor<4xf32>
// CHECK-DAG: ds.state @h.bias.exp_avg role{{ ?}}(moment) slot("exp_avg") owner(@h.bias) init(#ds.init<zero, {{.*}} : tensor<4xf32>
// CHECK: func.func @last
// CHECK-SAME: %[[W:[a-z0-9]*]]: tensor<4xbf16> {ds.state = @h.weight}, %[[B:[a-z0-9]*]]: tensor<4xf32> {ds.state = @h.bias}
// CHECK-DAG: %[[KEPT:.*]] = ds.constant dense<8.750000e-01>{{.*}} : tensor<4xf32>
// CHECK-DAG: %[[WIDE:.*]] = ds.convert %[[W]]{{.*}} : tensor<4xbf16> -> tensor<4xf32>
// CHECK-DAG: %[[DECAYED:.*]] = ds.mul %[[WIDE]], %[[KEPT]]
// CHECK-DAG: %[[NEW:.*]] = ds.sub %[[DECAYED]]
// CHECK-DAG: ds.convert %[[NEW]]{{.*}} : tensor<4xf32> -> tensor<4xbf16>
// CHECK-DAG: ds.sub %[[B]]
