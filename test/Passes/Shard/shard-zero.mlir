// RUN: sed s/STAGE/0/ %s | ds-opt - --ds-shard-zero=remarks 2>&1 | FileCheck %s --check-prefixes=CHECK,S0
// RUN: sed s/STAGE/1/ %s | ds-opt - --ds-shard-zero=remarks 2>&1 | FileCheck %s --check-prefixes=CHECK,S1
// RUN: sed s/STAGE/2/ %s | ds-opt - --ds-shard-zero=remarks 2>&1 | FileCheck %s --check-prefixes=CHECK,S2
// RUN: sed s/STAGE/3/ %s | ds-opt - --ds-shard-zero=remarks 2>&1 | FileCheck %s --check-prefixes=CHECK,S3
// RUN: sed 's/STAGE/3/;s/dp = 2/dp = 1/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ALONE

// Two micro-steps of one layer on two ranks: a weight of 32 elements, a bias of 8, which stage 3 keeps whole, and a
// frozen table. Each trained one has a bucket of 64 elements, 32 per rank.

module attributes {ds.training = #ds.training<gradient_accumulation_steps = 2,
    zero_optimization = {stage = STAGE, stage3_param_persistence_threshold = 8}>} {
  ds.mesh @mesh axes [dp = 2] samples dp zero dp
  ds.state @h.0.w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
  ds.state @h.0.b role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.f role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x4xf32>
  ds.state @h.0.w.sum role(moment) slot("sum") owner(@h.0.w) init(#ds.init<constant, 0.5, 0.0>) home(device) : tensor<8x4xf32>
  ds.state @h.0.b.sum role(moment) slot("sum") owner(@h.0.b) init(#ds.init<constant, 0.5, 0.0>) home(device) : tensor<8xf32>
  ds.state @h.0.w.grad role(gradient) slot("grad") owner(@h.0.w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x4xf32>
  ds.state @h.0.b.grad role(gradient) slot("grad") owner(@h.0.b) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  ds.state @grad_norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  func.func @first(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<8x4xf32> {ds.state = @h.0.w}, %b: tensor<8xf32> {ds.state = @h.0.b},
                   %f: tensor<4x4xf32> {ds.state = @h.0.f})
      -> (tensor<f32> {ds.state = @loss}, tensor<8x4xf32> {ds.state = @h.0.w.grad}, tensor<8xf32> {ds.state = @h.0.b.grad})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %t = ds.transpose %w perm [1, 0] {ds.work = #ds.work<forward>} : tensor<8x4xf32> -> tensor<4x8xf32>
    %v = ds.add %x, %f {ds.work = #ds.work<forward>} : tensor<4x4xf32>
    %y = ds.matmul %v, %t {ds.work = #ds.work<forward>} : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %r = ds.broadcast %b dims [1] {ds.work = #ds.work<forward>} : tensor<8xf32> -> tensor<4x8xf32>
    %z = ds.add %y, %r {ds.work = #ds.work<forward>} : tensor<4x8xf32>
    %loss = ds.reduce sum %z dims [0, 1] {ds.work = #ds.work<forward>} : tensor<4x8xf32> -> tensor<f32>
    %dz = ds.mul %z, %z {ds.work = #ds.work<backward>} : tensor<4x8xf32>
    %dx = ds.matmul %dz, %t transpose_rhs {ds.work = #ds.work<backward>} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
    %dw = ds.matmul %dz, %dx transpose_lhs {ds.work = #ds.work<backward>} : tensor<4x8xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %db = ds.reduce sum %dz dims [0] {ds.work = #ds.work<backward>} : tensor<4x8xf32> -> tensor<8xf32>
    return %loss, %dw, %db : tensor<f32>, tensor<8x4xf32>, tensor<8xf32>
  }
  func.func @last(%x: tensor<4x4xf32> {ds.input = "x"}, %w: tensor<8x4xf32> {ds.state = @h.0.w}, %b: tensor<8xf32> {ds.state = @h.0.b},
                  %f: tensor<4x4xf32> {ds.state = @h.0.f}, %kept: tensor<f32> {ds.state = @loss},
                  %aw: tensor<8x4xf32> {ds.state = @h.0.w.grad}, %ab: tensor<8xf32> {ds.state = @h.0.b.grad},
                  %sw: tensor<8x4xf32> {ds.state = @h.0.w.sum}, %sb: tensor<8xf32> {ds.state = @h.0.b.sum})
      -> (tensor<f32> {ds.state = @loss}, tensor<f64> {ds.state = @grad_norm}, tensor<8x4xf32> {ds.state = @h.0.w},
          tensor<8x4xf32> {ds.state = @h.0.w.sum}, tensor<8xf32> {ds.state = @h.0.b}, tensor<8xf32> {ds.state = @h.0.b.sum})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %t = ds.transpose %w perm [1, 0] {ds.work = #ds.work<forward>} : tensor<8x4xf32> -> tensor<4x8xf32>
    %v = ds.add %x, %f {ds.work = #ds.work<forward>} : tensor<4x4xf32>
    %y = ds.matmul %v, %t {ds.work = #ds.work<forward>} : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %r = ds.broadcast %b dims [1] {ds.work = #ds.work<forward>} : tensor<8xf32> -> tensor<4x8xf32>
    %z = ds.add %y, %r {ds.work = #ds.work<forward>} : tensor<4x8xf32>
    %share = ds.reduce sum %z dims [0, 1] {ds.work = #ds.work<forward>} : tensor<4x8xf32> -> tensor<f32>
    %sum = ds.add %kept, %share {ds.work = #ds.work<forward>} : tensor<f32>
    %loss = ds.rank_mean %sum {ds.work = #ds.work<forward>} : tensor<f32>
    %dz = ds.mul %z, %z {ds.work = #ds.work<backward>} : tensor<4x8xf32>
    %dx = ds.matmul %dz, %t transpose_rhs {ds.work = #ds.work<backward>} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
    %dwpart = ds.matmul %dz, %dx transpose_lhs {ds.work = #ds.work<backward>} : tensor<4x8xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
    %dw = ds.accumulate %dwpart into %aw {ds.work = #ds.work<backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %part = ds.reduce sum %dz dims [0] {ds.work = #ds.work<backward>} : tensor<4x8xf32> -> tensor<8xf32>
    %db = ds.accumulate %part into %ab {ds.work = #ds.work<backward>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %q = ds.sum_of_squares %dw, %db {ds.work = #ds.work<update>} : tensor<8x4xf32>, tensor<8xf32> -> tensor<f64>
    %norm = ds.sqrt %q {ds.work = #ds.work<update>} : tensor<f64>
    %nw:2 = ds.update @h.0.w states(%w, %sw) gradient(%dw) scalars(%norm) {ds.work = #ds.work<update>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<f64>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
    ^bb0(%p: tensor<8x4xf32>, %s: tensor<8x4xf32>, %g: tensor<8x4xf32>, %n: tensor<f64>):
      %n32 = ds.convert %n : tensor<f64> -> tensor<f32>
      %nn = ds.broadcast %n32 dims [] : tensor<f32> -> tensor<8x4xf32>
      %h = ds.div %g, %nn : tensor<8x4xf32>
      %s1 = ds.add %s, %h : tensor<8x4xf32>
      %p1 = ds.sub %p, %s1 : tensor<8x4xf32>
      ds.yield %p1, %s1 : tensor<8x4xf32>, tensor<8x4xf32>
    }
    %nb:2 = ds.update @h.0.b states(%b, %sb) gradient(%db) scalars(%norm) {ds.work = #ds.work<update>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f64>) -> (tensor<8xf32>, tensor<8xf32>) {
    ^bb0(%p: tensor<8xf32>, %s: tensor<8xf32>, %g: tensor<8xf32>, %n: tensor<f64>):
      %n32 = ds.convert %n : tensor<f64> -> tensor<f32>
      %nn = ds.broadcast %n32 dims [] : tensor<f32> -> tensor<8xf32>
      %h = ds.div %g, %nn : tensor<8xf32>
      %s1 = ds.add %s, %h : tensor<8xf32>
      %p1 = ds.sub %p, %s1 : tensor<8xf32>
      ds.yield %p1, %s1 : tensor<8xf32>, tensor<8xf32>
    }
    return %loss, %norm, %nw#0, %nw#1, %nb#0, %nb#1 : tensor<f32>, tensor<f64>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>
  }
}

// With one rank nothing changes.
// ALONE-NOT: ds.bucket
// ALONE: func.func @first(%{{.*}}, %{{.*}}: tensor<8x4xf32> {ds.state = @h.0.w}
// ALONE: ds.update @h.0.w

// What a rank sends to the n - 1 = 1 other, a bucket being 256 bytes and a part 128: stage 0 reduces both buckets once,
// 2 * 128 each, and the loss, 2 * 4. Stages 1 and 2 reduce and gather 2 * 128 each, with the norm 2 * (4 + 8); stage 2
// reduces in @first too. Stage 3 gathers the weight twice and the frozen table once in each micro-step, and in @last
// the bias, which is whole, after its update.
// S0: remark: @last: 3 all_reduce, 520 bytes sent per rank
// S1: remark: @last: 2 all_reduce, 24 bytes sent per rank
// S1: remark: @last: 2 reduce_scatter, 256 bytes sent per rank
// S1: remark: @last: 2 all_gather, 256 bytes sent per rank
// S2: remark: @first: 2 reduce_scatter, 256 bytes sent per rank
// S2: remark: @last: 2 all_reduce, 24 bytes sent per rank
// S2: remark: @last: 2 reduce_scatter, 256 bytes sent per rank
// S2: remark: @last: 2 all_gather, 256 bytes sent per rank
// S3: remark: @first: 3 all_gather, 384 bytes sent per rank
// S3: remark: @first: 2 reduce_scatter, 256 bytes sent per rank
// S3: remark: @last: 4 all_gather, 512 bytes sent per rank

// The members' declarations stay, but for what belongs to them.
// CHECK-LABEL: module attributes {{.*}}ds.phase = #ds.phase<sharded>
// CHECK-NEXT: ds.mesh @mesh axes [dp = 2] samples dp zero dp
// CHECK-NEXT: ds.state @h.0.w role (parameter) trainable
// CHECK-NEXT: ds.state @h.0.b role (parameter) trainable
// CHECK-NEXT: ds.state @h.0.f role (parameter) init
// CHECK-NEXT: ds.state @loss
// CHECK-NEXT: ds.state @grad_norm
// CHECK-NEXT: ds.bucket @bucket_0 members [@h.0.w] offsets [0] elements 64
// S0-NEXT: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) init(#ds.init<zero,
// S0-NEXT: ds.state @bucket_0.sum role (moment) slot("sum") bucket(@bucket_0) init(#ds.init<constant, 5.000000e-01,
// S0-NEXT: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) init
// S1-NEXT: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) init
// S1-NEXT: ds.state @bucket_0.sum role (moment) slot("sum") bucket(@bucket_0) shards [dp] init(#ds.init<constant, 5.000000e-01,
// S1-NEXT: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) init
// S2-NEXT: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) init
// S2-NEXT: ds.state @bucket_0.sum role (moment) slot("sum") bucket(@bucket_0) shards [dp] init
// S2-NEXT: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) shards [dp] init
// S3-NEXT: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) shards [dp] init
// S3-NEXT: ds.state @bucket_0.sum role (moment) slot("sum") bucket(@bucket_0) shards [dp] init
// S3-NEXT: ds.state @bucket_0.grad role (gradient) slot("grad") bucket(@bucket_0) shards [dp] init
// CHECK-NEXT: ds.bucket @bucket_1 members [@h.0.b] offsets [0] elements 64
// CHECK-NEXT: ds.state @bucket_1.parameter role (parameter) bucket(@bucket_1) init
// S3: ds.bucket @bucket_2 members [@h.0.f] offsets [0] elements 64
// S3-NEXT: ds.state @bucket_2.parameter role (parameter) bucket(@bucket_2) shards [dp] init

// @first: forward reads windows; where the weight is gathered, backward has its own gather and transposition. The pieces
// of a gradient and its padding are joined; from stage 2 on the ranks reduce them.
// CHECK: func.func @first(
// S3-SAME: %[[W:[a-z0-9]*]]: tensor<32xf32> {ds.state = @bucket_0.parameter}
// S1-SAME: %[[W:[a-z0-9]*]]: tensor<64xf32> {ds.state = @bucket_0.parameter}
// S3: %[[FULL:.*]] = ds.all_gather %[[W]] along dp
// S3-NEXT: %[[WINDOW:.*]] = ds.slice %[[FULL]] offsets [0] strides [1]{{.*}} : tensor<64xf32> -> tensor<32xf32>
// S1: %[[WINDOW:.*]] = ds.slice %[[W]] offsets [0] strides [1]{{.*}} : tensor<64xf32> -> tensor<32xf32>
// S1-NEXT: %[[SHAPED:.*]] = ds.reshape %[[WINDOW]]{{.*}} : tensor<32xf32> -> tensor<8x4xf32>
// S1-NEXT: %[[T:.*]] = ds.transpose %[[SHAPED]]
// S3: ds.transpose
// S3: %[[LOSS:.*]] = ds.reduce sum
// S3: %[[AGAIN:.*]] = ds.all_gather %[[W]] along dp
// S3: %[[WINDOW2:.*]] = ds.slice %[[AGAIN]]
// S3: %[[SHAPED2:.*]] = ds.reshape %[[WINDOW2]]
// S3: %[[T:.*]] = ds.transpose %[[SHAPED2]]
// S1: ds.matmul %{{.*}}, %[[T]] transpose_rhs
// S3: ds.matmul %{{.*}}, %[[T]] transpose_rhs
// CHECK: %[[DW:.*]] = ds.matmul %{{.*}} transpose_lhs
// CHECK-NEXT: %[[PIECE:.*]] = ds.reshape %[[DW]]{{.*}} : tensor<8x4xf32> -> tensor<32xf32>
// CHECK-NEXT: %[[ZEROS:.*]] = ds.constant dense<0.000000e+00>{{.*}} : tensor<32xf32>
// CHECK-NEXT: %[[FLAT:.*]] = ds.concat %[[PIECE]], %[[ZEROS]] dim 0{{.*}} : tensor<32xf32>, tensor<32xf32> -> tensor<64xf32>
// S0-NOT: ds.all_reduce
// S1-NOT: ds.reduce_scatter
// S2-NEXT: %[[PART:.*]] = ds.reduce_scatter sum %[[FLAT]] along dp
// S0: return %{{.*}}, %[[FLAT]], %{{.*}}
// S1: return %{{.*}}, %[[FLAT]], %{{.*}}
// S2: return %{{.*}}, %[[PART]], %{{.*}}

// @last: the loss is the ranks' mean. What a rank has kept is added to, inside no product any more; stages 0 and 1 reduce
// the sum, the others a micro-step's share.
// CHECK: func.func @last(
// S1-SAME: %[[KEPT:[a-z0-9]*]]: tensor<64xf32> {ds.state = @bucket_0.grad}
// S1-SAME: %[[P:[a-z0-9]*]]: tensor<64xf32> {ds.state = @bucket_0.parameter}, %[[SUM:[a-z0-9]*]]: tensor<32xf32> {ds.state = @bucket_0.sum}
// S2-SAME: %[[KEPT:[a-z0-9]*]]: tensor<32xf32> {ds.state = @bucket_0.grad}
// CHECK: %[[ALL:.*]] = ds.all_reduce sum %{{.*}} along dp{{.*}} : tensor<f32>
// CHECK-NEXT: %[[HALF:.*]] = ds.constant dense<5.000000e-01>{{.*}} : tensor<f32>
// CHECK-NEXT: %[[MEAN:.*]] = ds.mul %[[ALL]], %[[HALF]]
// CHECK-NOT: into(
// CHECK: %[[FLAT:.*]] = ds.concat
// S0-NEXT: %[[LOCAL:.*]] = ds.add %{{.*}}, %[[FLAT]]{{.*}} : tensor<64xf32>
// S0-NEXT: %[[TOTAL:.*]] = ds.all_reduce sum %[[LOCAL]] along dp{{.*}} : tensor<64xf32>
// S0: ds.sum_of_squares %[[TOTAL]], %{{.*}} : tensor<64xf32>, tensor<64xf32> -> tensor<f64>
// S0-NOT: ds.all_reduce
// S1-NEXT: %[[LOCAL:.*]] = ds.add %[[KEPT]], %[[FLAT]]{{.*}} : tensor<64xf32>
// S1-NEXT: %[[TOTAL:.*]] = ds.reduce_scatter sum %[[LOCAL]] along dp{{.*}} : tensor<64xf32> -> tensor<32xf32>
// S2-NEXT: %[[PART:.*]] = ds.reduce_scatter sum %[[FLAT]] along dp{{.*}} : tensor<64xf32> -> tensor<32xf32>
// S2-NEXT: %[[TOTAL:.*]] = ds.add %[[KEPT]], %[[PART]]{{.*}} : tensor<32xf32>
// S1: %[[OWN:.*]] = ds.sum_of_squares %[[TOTAL]], %{{.*}} : tensor<32xf32>, tensor<32xf32> -> tensor<f64>
// S1-NEXT: %[[OFALL:.*]] = ds.all_reduce sum %[[OWN]] along dp{{.*}} : tensor<f64>
// S1-NEXT: %[[NORM:.*]] = ds.sqrt %[[OFALL]]

// The update is that of the part; the parameter is whole again where it was.
// S1: %[[OLD:.*]] = ds.local_shard %[[P]] along dp{{.*}} : tensor<64xf32> -> tensor<32xf32>
// S1: %[[STEP:.*]] = ds.div %[[TOTAL]], %{{.*}} : tensor<32xf32>
// S1-NEXT: %[[NEWSUM:.*]] = ds.add %[[SUM]], %[[STEP]]{{.*}} : tensor<32xf32>
// S1-NEXT: %[[NEW:.*]] = ds.sub %[[OLD]], %[[NEWSUM]]{{.*}} : tensor<32xf32>
// S1-NEXT: %[[WHOLE:.*]] = ds.all_gather %[[NEW]] along dp{{.*}} : tensor<32xf32> -> tensor<64xf32>
// S1: return %[[MEAN]], %[[NORM]], %[[WHOLE]], %[[NEWSUM]], %{{.*}}, %{{.*}} : tensor<f32>, tensor<f64>, tensor<64xf32>, tensor<32xf32>, tensor<64xf32>, tensor<32xf32>
// S3: return %[[MEAN]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<f64>, tensor<32xf32>, tensor<32xf32>, tensor<64xf32>, tensor<32xf32>
