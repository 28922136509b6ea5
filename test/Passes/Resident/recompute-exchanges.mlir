// What ranks gather for a layer of which each has a part is kept where memory holds it, and gathered again in backward from the part
// where it does not, or where the configuration has it so; a sum that was scattered likewise.
// RUN: sed 's/DEMAND//' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=ROOM
// RUN: sed 's/DEMAND//' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap=memory=least | FileCheck %s --check-prefix=LEAST
// RUN: sed 's/DEMAND/recompute = {ops = ["all_gather"]}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=SHORT
// RUN: sed 's/DEMAND/recompute = {interval = 1}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=LAYERS
// Nothing of it stands outside of the phase that recomputes.
// RUN: sed 's/DEMAND/recompute = {interval = 1}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap --ds-inline-recompute | FileCheck %s --check-prefix=INLINE

module attributes {ds.phase = #ds.phase<fused>, ds.training = #ds.training<DEMAND>} {
  ds.mesh @mesh axes [tp = 4] tensors tp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x16xf32>
  ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<16x64xf32>
  ds.state @g role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x16xf32>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

  // ROOM-COUNT-1: ds.all_gather
  // ROOM-NOT: ds.all_gather
  // ROOM: return

  // LEAST: ds.recompute(%arg0) after
  // LEAST: %[[PART:.*]] = ds.exp
  // LEAST-NEXT: ds.all_gather %[[PART]] along tp
  // LEAST-NEXT: ds.yield

  // SHORT: %[[PART:.*]] = ds.fused(%arg0)
  // SHORT: ds.all_gather %[[PART]] along tp
  // SHORT: %[[AGAIN:.*]] = ds.recompute(%[[PART]]) after
  // SHORT-NEXT: ^bb0(%[[IN:.*]]: tensor<16x64xf32>):
  // SHORT-NEXT: ds.all_gather %[[IN]] along tp : tensor<16x64xf32> -> tensor<64x64xf32>
  // SHORT: ds.matmul %[[AGAIN]], {{.*}} transpose_lhs

  // LAYERS: ds.recompute
  // LAYERS: ds.all_gather
  // INLINE: ds.reduce_scatter
  // INLINE: ds.all_gather {{.*}}ds.work = #ds.work<recompute>

  func.func @blocks(%x: tensor<16x64xf32> {ds.input = "x"}, %w: tensor<64x16xf32> {ds.state = @w}, %v: tensor<16x64xf32> {ds.state = @v}) -> (tensor<f32> {ds.state = @loss}, tensor<64x16xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %s0 = ds.exp %x {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<16x64xf32>
    %all = ds.all_gather %s0 along tp {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<16x64xf32> -> tensor<64x64xf32>
    %p1 = ds.matmul %all, %w {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<64x64xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
    %p2 = ds.matmul %p1, %v {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<64x16xf32>, tensor<16x64xf32> -> tensor<64x64xf32>
    %own = ds.reduce_scatter sum %p2 along tp {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<64x64xf32> -> tensor<16x64xf32>
    %s1 = ds.add %s0, %own {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<16x64xf32>
    %loss = ds.reduce sum %s1 dims [0, 1] {ds.layer = #ds.layer<"head">, ds.work = #ds.work<forward>} : tensor<16x64xf32> -> tensor<f32>
    %one = ds.constant dense<1.0> : tensor<64x16xf32>
    %d = ds.mul %p1, %one {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<64x16xf32>
    %dd = ds.matmul %d, %v {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<64x16xf32>, tensor<16x64xf32> -> tensor<64x64xf32>
    %dp = ds.matmul %dd, %v transpose_rhs {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<64x64xf32>, tensor<16x64xf32> -> tensor<64x16xf32>
    %g = ds.matmul %all, %dp transpose_lhs {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<64x64xf32>, tensor<64x16xf32> -> tensor<64x16xf32>
    return %loss, %g : tensor<f32>, tensor<64x16xf32>
  }
}
