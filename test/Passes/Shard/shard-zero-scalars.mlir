// RUN: ds-opt %s --ds-shard-zero | FileCheck %s

// What is not divided, on two ranks at stage 1. Frozen parameters stay as they are: there is nothing of them to save.
// CHECK-NOT: members [@h.0.f]
// CHECK: ds.bucket @bucket_0 members [@h.0.w]
// CHECK-NOT: ds.bucket
module attributes {ds.training = #ds.training<zero_optimization = {stage = 1}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @h.0.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.w.master role(master) slot("master") owner(@h.0.w) init(#ds.init<constant, 3.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.f role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
  ds.state @noise role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @steps role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  ds.state @eval_loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

  // A master is filled from the members when weights are read: it starts from zeros.
  // CHECK: ds.state @bucket_0.master role (master) slot("master") {{.*}} init(#ds.init<zero,

  // CHECK-LABEL: func.func @last(
  // CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<8xf32> {ds.state = @h.0.f}
  // CHECK-SAME: %[[RNG:[a-z0-9]+]]: tensor<2xi64> {ds.state = @rng}
  //
  // A rank draws what lies its number further, and the counter goes on by the model's three for each of the two.
  // CHECK: %[[OWN:.*]] = ds.local_shard %{{.*}} along dp{{.*}} : tensor<2xi64> -> tensor<1xi64>
  // CHECK: %[[AT:.*]] = ds.add %[[RNG]], %{{.*}} : tensor<2xi64>
  // CHECK: %[[NOISE:.*]] = ds.random_uniform %[[AT]]
  //
  // Noise differs from rank to rank although no input is in it: its mean is kept. What counts steps does not.
  // CHECK-DAG: ds.all_reduce sum %[[NOISE]] along dp{{.*}} : tensor<8xf32>
  // CHECK-DAG: ds.advance %[[RNG]] by 6
  // CHECK-DAG: ds.all_reduce sum %{{.*}} along dp{{.*}} : tensor<f32>
  // CHECK-NOT: ds.all_reduce
  // CHECK: return
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @h.0.w}, %m: tensor<8xf32> {ds.state = @h.0.w.master},
                  %f: tensor<8xf32> {ds.state = @h.0.f}, %rng: tensor<2xi64> {ds.state = @rng}, %steps: tensor<f32> {ds.state = @steps})
      -> (tensor<8xf32> {ds.state = @h.0.w}, tensor<8xf32> {ds.state = @h.0.w.master}, tensor<2xi64> {ds.state = @rng},
          tensor<8xf32> {ds.state = @noise}, tensor<f32> {ds.state = @steps}, tensor<f32> {ds.state = @loss})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %noise = ds.random_uniform %rng id 3 first 0 {ds.work = #ds.work<backward>} : tensor<2xi64> -> tensor<8xf32>
    %next = ds.advance %rng by 3 {ds.work = #ds.work<backward>} : tensor<2xi64>
    %one = ds.constant dense<1.0> : tensor<f32>
    %steps1 = ds.add %steps, %one {ds.work = #ds.work<backward>} : tensor<f32>
    %y = ds.mul %x, %w {ds.work = #ds.work<forward>} : tensor<8xf32>
    %z = ds.mul %y, %f {ds.work = #ds.work<forward>} : tensor<8xf32>
    %sum = ds.reduce sum %z dims [0] {ds.work = #ds.work<forward>} : tensor<8xf32> -> tensor<f32>
    %loss = ds.rank_mean %sum {ds.work = #ds.work<forward>} : tensor<f32>
    %g = ds.mul %x, %f {ds.work = #ds.work<backward>} : tensor<8xf32>
    %n:2 = ds.update @h.0.w states(%w, %m) gradient(%g) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%p: tensor<8xf32>, %q: tensor<8xf32>, %d: tensor<8xf32>):
      %r = ds.sub %q, %d : tensor<8xf32>
      ds.yield %r, %r : tensor<8xf32>, tensor<8xf32>
    }
    return %n#0, %n#1, %next, %noise, %steps1, %loss : tensor<8xf32>, tensor<8xf32>, tensor<2xi64>, tensor<8xf32>, tensor<f32>, tensor<f32>
  }

  // Evaluation has a mean of the ranks' losses, too.
  // CHECK-LABEL: func.func @evaluate(
  // CHECK: %[[SUM:.*]] = ds.all_reduce sum %{{.*}} along dp{{.*}} : tensor<f32>
  // CHECK: %[[HALF:.*]] = ds.constant dense<5.000000e-01>{{.*}} : tensor<f32>
  // CHECK: %[[MEAN:.*]] = ds.mul %[[SUM]], %[[HALF]]
  // CHECK: return %[[MEAN]]
  func.func @evaluate(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @h.0.w}) -> (tensor<f32> {ds.state = @eval_loss})
      attributes {ds.segment = #ds.segment<evaluation>} {
    %y = ds.mul %x, %w {ds.work = #ds.work<forward>} : tensor<8xf32>
    %sum = ds.reduce sum %y dims [0] {ds.work = #ds.work<forward>} : tensor<8xf32> -> tensor<f32>
    %loss = ds.rank_mean %sum {ds.work = #ds.work<forward>} : tensor<f32>
    return %loss : tensor<f32>
  }
}
