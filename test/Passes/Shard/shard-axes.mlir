// RUN: sed 's/STAGE/2/;s/MESH/[dp = 2, sp = 2, tp = 2] samples dp zero (dp, sp)/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefixes=CHECK,PARTS
// RUN: sed 's/STAGE/0/;s/MESH/[dp = 2, sp = 2, tp = 2] samples dp zero (dp, sp)/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefixes=CHECK,UNCUT
// RUN: sed 's/STAGE/3/;s/MESH/[dp.node = 2, dp.local = 2, sp = 1, tp = 2] samples dp zero dp.local/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=NODES
// RUN: sed 's/STAGE/2/;s/MESH/[pp = 2, dp = 2, sp = 2, tp = 2] samples dp zero (dp, sp) stages pp/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=STAGES
// RUN: sed 's/STAGE/2/;s/MESH/[sp = 2, dp = 2, tp = 2] samples dp zero (dp, sp)/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=CROSSED
// RUN: sed 's/STAGE/2/;s/MESH/[x = 2, sp = 2, tp = 2] samples x zero (x, sp)/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=STRANGE
// RUN: sed 's/STAGE/3/;s/MESH/[sp = 1, tp = 2]/' %s | ds-opt - --ds-shard-zero | FileCheck %s --check-prefix=ALONE

// Three parameters of 256 elements: @cut, of which each rank along tp has half; @whole, whose gradient is a sum over tp and sp
// as well; @tied, which an earlier stage counts. None shares a bucket with another.
module attributes {ds.training = #ds.training<zero_optimization = {stage = STAGE, stage3_param_persistence_threshold = 0}>} {
  ds.mesh @mesh axes MESH
  ds.state @h.0.cut role(parameter) trainable shards [tp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<256xf32>
  ds.state @h.0.whole role(parameter) trainable addends (sp, tp) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<256xf32>
  ds.state @h.0.tied role(parameter) trainable copy init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<256xf32>
  ds.state @grad_norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

  // A bucket counts what a rank has of its members: 128 elements of @cut.
  // CHECK: ds.bucket @bucket_0 members [@h.0.cut] offsets [0] elements 128
  // PARTS: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) init
  // CHECK: ds.bucket @bucket_1 members [@h.0.whole] offsets [0] elements 256
  // CHECK: ds.bucket @bucket_2 members [@h.0.tied] offsets [0] elements 256

  // Samples differ along dp alone: means of losses are over two ranks.
  // CHECK-LABEL: func.func @last
  // CHECK: ds.all_reduce sum %{{.*}} along dp carries statistic{{.*}} : tensor<f32>

  // Along sp all ranks have the same gradient of @cut: each takes its part.
  // PARTS: %[[C:.*]] = ds.reduce_scatter sum %{{.*}} along dp carries bucket{{.*}} : tensor<128xf32> -> tensor<64xf32>
  // PARTS-NEXT: %[[CUT:.*]] = ds.local_shard %[[C]] along sp{{.*}} : tensor<64xf32> -> tensor<32xf32>
  // UNCUT: %[[CUT:.*]] = ds.all_reduce sum %{{.*}} along dp carries bucket{{.*}} : tensor<128xf32>

  // What is an addend along sp, too, is scattered along both; only parts are added up along tp.
  // PARTS: %[[W:.*]] = ds.reduce_scatter sum %{{.*}} along (dp, sp) carries bucket{{.*}} : tensor<256xf32> -> tensor<64xf32>
  // PARTS-NEXT: %[[WHOLE:.*]] = ds.all_reduce sum %[[W]] along tp carries bucket{{.*}} : tensor<64xf32>
  // UNCUT: %[[WHOLE:.*]] = ds.all_reduce sum %{{.*}} along (dp, sp, tp) carries bucket{{.*}} : tensor<256xf32>

  // Squares are summed along what cuts a bucket and along nothing else: first those of @cut along tp, then all. Of the
  // copy there are none.
  // CHECK-DAG: %[[OFCUT:.*]] = ds.sum_of_squares %[[CUT]]
  // CHECK-DAG: %[[OFWHOLE:.*]] = ds.sum_of_squares %[[WHOLE]]
  // CHECK-NOT: ds.sum_of_squares
  // CHECK: %[[OFALL:.*]] = ds.all_reduce sum %[[OFCUT]] along tp carries statistic{{.*}} : tensor<f64>
  // CHECK: %[[SUM:.*]] = ds.add %[[OFWHOLE]], %[[OFALL]]{{.*}} : tensor<f64>
  // PARTS: %[[NORM:.*]] = ds.all_reduce sum %[[SUM]] along (dp, sp) carries statistic{{.*}} : tensor<f64>
  // PARTS-DAG: ds.all_gather %{{.*}} along (dp, sp) carries parameter{{.*}} : tensor<32xf32> -> tensor<128xf32>
  // PARTS: return %{{.*}}, %[[NORM]]
  // UNCUT-NOT: ds.all_gather
  // UNCUT: return %{{.*}}, %[[SUM]]

  // Parts within a node, addends in all nodes: scattered inside, then the parts are added up between.
  // NODES: ds.state @bucket_0.parameter role (parameter) bucket(@bucket_0) shards [dp.local]
  // NODES: %[[INSIDE:.*]] = ds.reduce_scatter sum %{{.*}} along dp.local carries bucket{{.*}} : tensor<128xf32> -> tensor<64xf32>
  // NODES-NEXT: ds.all_reduce sum %[[INSIDE]] along dp.node carries bucket{{.*}} : tensor<64xf32>
  // NODES: ds.all_reduce sum %{{.*}} along tp carries statistic{{.*}} : tensor<f64>
  // NODES: ds.all_reduce sum %{{.*}} along dp.local carries statistic{{.*}} : tensor<f64>
  // NODES-NOT: along dp.node carries statistic{{.*}} : tensor<f64>
  // NODES: return

  // Each stage has parameters of its own: their sums meet last of all, along pp alone.
  // STAGES: ds.all_reduce sum %{{.*}} along tp carries statistic{{.*}} : tensor<f64>
  // STAGES: %[[RANKS:.*]] = ds.all_reduce sum %{{.*}} along (dp, sp) carries statistic{{.*}} : tensor<f64>
  // STAGES: %[[ALL:.*]] = ds.all_reduce sum %[[RANKS]] along pp carries statistic{{.*}} : tensor<f64>
  // STAGES: return %{{.*}}, %[[ALL]]

  // With sp outside of dp, a part along both is no part of a part along dp.
  // CROSSED: %[[SUMMED:.*]] = ds.all_reduce sum %{{.*}} along dp carries bucket{{.*}} : tensor<128xf32>
  // CROSSED-NEXT: ds.local_shard %[[SUMMED]] along (sp, dp){{.*}} : tensor<128xf32> -> tensor<32xf32>

  // Where one sample is read, nothing is divided and the loss is what it is; sums along tp are formed all the same.
  // ALONE: ds.bucket @bucket_0 members [@h.0.cut]
  // ALONE-NOT: shards [
  // ALONE-LABEL: func.func @last
  // ALONE-NOT: ds.all_reduce {{.*}} : tensor<f32>
  // ALONE: %[[GRAD:.*]] = ds.all_reduce sum %{{.*}} along tp carries bucket{{.*}} : tensor<256xf32>
  // ALONE: %[[PART:.*]] = ds.all_reduce sum %{{.*}} along tp carries statistic{{.*}} : tensor<f64>
  // ALONE-NEXT: %[[BOTH:.*]] = ds.add %{{.*}}, %[[PART]]
  // ALONE-NOT: ds.all_gather
  // ALONE: return %{{.*}}, %[[BOTH]]

  // Nobody asks for names.
  // STRANGE: ds.all_reduce sum %{{.*}} along x carries statistic{{.*}} : tensor<f32>
  // STRANGE: ds.reduce_scatter sum %{{.*}} along x carries bucket
  func.func @last(%x: tensor<256xf32> {ds.input = "x"}, %c: tensor<128xf32> {ds.state = @h.0.cut},
                  %w: tensor<256xf32> {ds.state = @h.0.whole}, %t: tensor<256xf32> {ds.state = @h.0.tied})
      -> (tensor<128xf32> {ds.state = @h.0.cut}, tensor<256xf32> {ds.state = @h.0.whole}, tensor<256xf32> {ds.state = @h.0.tied},
          tensor<f32> {ds.state = @loss}, tensor<f64> {ds.state = @grad_norm})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %l = ds.reduce sum %x dims [0] {ds.work = #ds.work<forward>} : tensor<256xf32> -> tensor<f32>
    %loss = ds.rank_mean %l {ds.work = #ds.work<forward>} : tensor<f32>
    %dc = ds.mul %c, %c {ds.work = #ds.work<backward>} : tensor<128xf32>
    %dw = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<256xf32>
    %dt = ds.mul %x, %t {ds.work = #ds.work<backward>} : tensor<256xf32>
    %q = ds.sum_of_squares %dc, %dw, %dt {ds.work = #ds.work<update>} : tensor<128xf32>, tensor<256xf32>, tensor<256xf32> -> tensor<f64>
    %nc = ds.update @h.0.cut states(%c) gradient(%dc) {ds.work = #ds.work<update>} : (tensor<128xf32>, tensor<128xf32>) -> tensor<128xf32> {
    ^bb0(%p: tensor<128xf32>, %g: tensor<128xf32>):
      %n = ds.sub %p, %g : tensor<128xf32>
      ds.yield %n : tensor<128xf32>
    }
    %nw = ds.update @h.0.whole states(%w) gradient(%dw) {ds.work = #ds.work<update>} : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
    ^bb0(%p: tensor<256xf32>, %g: tensor<256xf32>):
      %n = ds.sub %p, %g : tensor<256xf32>
      ds.yield %n : tensor<256xf32>
    }
    %nt = ds.update @h.0.tied states(%t) gradient(%dt) {ds.work = #ds.work<update>} : (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32> {
    ^bb0(%p: tensor<256xf32>, %g: tensor<256xf32>):
      %n = ds.sub %p, %g : tensor<256xf32>
      ds.yield %n : tensor<256xf32>
    }
    return %nc, %nw, %nt, %loss, %q : tensor<128xf32>, tensor<256xf32>, tensor<256xf32>, tensor<f32>, tensor<f64>
  }
}
