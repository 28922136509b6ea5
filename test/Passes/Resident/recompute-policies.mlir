// What the configuration demands is made again, or goes to the host, whatever memory there is.
// RUN: sed 's/DEMAND/recompute = {interval = 1}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=LAYERS
// RUN: sed 's/DEMAND/recompute = {checkpoints = 1}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=ONCE
// RUN: sed 's/DEMAND/recompute = {layers = [2]}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=SECOND
// The same where names are long.
// RUN: sed 's/DEMAND/recompute = {layers = [2]}/; s/<"h", \([1-3]\)>/<"h", \1, "attention.projection">/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=LONG
// RUN: sed 's/DEMAND/recompute = {ops = ["exp"]}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=OPS
// RUN: sed 's/DEMAND/offload = {activations = move}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=MOVE
// RUN: sed 's/DEMAND/recompute = {interval = 1}, offload = {checkpoints = true}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=BOTH
// RUN: sed 's/DEMAND/offload = {activations = choose}/' %s | ds-opt --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=FREE
// RUN: sed 's/DEMAND/recompute = {ops = ["softmax"]}/' %s | not ds-opt --ds-fuse-regions --ds-rematerialize-cheap 2>&1 | FileCheck %s --check-prefix=NO-OP
// RUN: sed 's/DEMAND/recompute = {layers = [1, 7]}/' %s | not ds-opt --ds-fuse-regions --ds-rematerialize-cheap 2>&1 | FileCheck %s --check-prefix=NO-LAYER

// NO-OP: error: forward has no op "softmax" to be recomputed; it has add, exp, matmul, reduce
// NO-LAYER: error: forward has no layer 7 to be recomputed; it has 1 to 3

module attributes {ds.phase = #ds.phase<fused>, ds.training = #ds.training<DEMAND>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  ds.state @g role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64x64xf32>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>

  // Each layer from the sum before it, when the gradient of the sum behind it is there; of the last one that is nothing.
  // LAYERS: ds.recompute({{[^)]*}}) {ds.layer = #ds.layer<"h", 3>
  // LAYERS: ds.fused({{.*}}ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<backward>
  // LAYERS: ds.recompute({{[^)]*}}) after({{.*}}ds.layer = #ds.layer<"h", 2>
  // LAYERS: ds.recompute({{[^)]*}}) after({{.*}}ds.layer = #ds.layer<"h", 1>
  // LAYERS-NOT: ds.recompute

  // All of them at once, from the first value.
  // ONCE: ds.recompute
  // ONCE: ds.matmul
  // ONCE: ds.matmul
  // ONCE-NOT: ds.recompute

  // SECOND: ds.recompute{{.*}}ds.layer = #ds.layer<"h", 2>
  // SECOND-NOT: ds.recompute

  // LONG: ds.recompute{{.*}}ds.layer = #ds.layer<"h", 2, "attention.projection">
  // LONG-NOT: ds.recompute

  // OPS-COUNT-3: ds.exp {{.*}}work<recompute>
  // OPS-NOT: ds.recompute

  // Once its last reader in forward is done, the sum of the first layer goes.
  // MOVE: %[[S1:.*]]:2 = ds.fused(%{{.*}}ds.layer = #ds.layer<"h", 1>
  // MOVE: ds.fused(%{{.*}}, %[[S1]]#1)
  // MOVE: ds.yield
  // MOVE-NEXT: }
  // MOVE-NEXT: %[[THERE:.*]] = ds.store %[[S1]]#1 {{.*}}work<forward>{{.*}}, host>
  // MOVE: %[[BACK:.*]] = ds.load %[[THERE]] {{.*}}work<recompute>
  // MOVE-NEXT: ds.matmul %[[BACK]], {{.*}} transpose_lhs

  // Sums are what is made again from.
  // BOTH: ds.store
  // BOTH: %[[BACK:.*]] = ds.load
  // BOTH: ds.recompute({{.*}}%[[BACK]]

  // FREE-NOT: ds.store

  func.func @blocks(%x: tensor<512x64xf32> {ds.input = "x"}, %w: tensor<64x64xf32> {ds.state = @w}) -> (tensor<f32> {ds.state = @loss}, tensor<64x64xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %s0 = ds.matmul %x, %w {ds.layer = #ds.layer<"embed">, ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
    %p1 = ds.matmul %s0, %w {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
    %e1 = ds.exp %p1 {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<512x64xf32>
    %s1 = ds.add %s0, %e1 {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<forward>} : tensor<512x64xf32>
    %p2 = ds.matmul %s1, %w {ds.layer = #ds.layer<"h", 2>, ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
    %e2 = ds.exp %p2 {ds.layer = #ds.layer<"h", 2>, ds.work = #ds.work<forward>} : tensor<512x64xf32>
    %s2 = ds.add %s1, %e2 {ds.layer = #ds.layer<"h", 2>, ds.work = #ds.work<forward>} : tensor<512x64xf32>
    %p3 = ds.matmul %s2, %w {ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<forward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
    %e3 = ds.exp %p3 {ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<forward>} : tensor<512x64xf32>
    %s3 = ds.add %s2, %e3 {ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<forward>} : tensor<512x64xf32>
    %loss = ds.reduce sum %s3 dims [0, 1] {ds.work = #ds.work<forward>} : tensor<512x64xf32> -> tensor<f32>
    %d3 = ds.mul %s3, %s3 {ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<backward>} : tensor<512x64xf32>
    %q3 = ds.mul %d3, %e3 {ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<backward>} : tensor<512x64xf32>
    %g3 = ds.matmul %s2, %q3 transpose_lhs {ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<512x64xf32> -> tensor<64x64xf32>
    %b3 = ds.matmul %q3, %w transpose_rhs {ds.layer = #ds.layer<"h", 3>, ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
    %q2 = ds.mul %b3, %e2 {ds.layer = #ds.layer<"h", 2>, ds.work = #ds.work<backward>} : tensor<512x64xf32>
    %g2 = ds.matmul %s1, %q2 transpose_lhs {ds.layer = #ds.layer<"h", 2>, ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<512x64xf32> -> tensor<64x64xf32>
    %b2 = ds.matmul %q2, %w transpose_rhs {ds.layer = #ds.layer<"h", 2>, ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<64x64xf32> -> tensor<512x64xf32>
    %q1 = ds.mul %b2, %e1 {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<512x64xf32>
    %g1 = ds.matmul %s0, %q1 transpose_lhs {ds.layer = #ds.layer<"h", 1>, ds.work = #ds.work<backward>} : tensor<512x64xf32>, tensor<512x64xf32> -> tensor<64x64xf32>
    %t = ds.add %g3, %g2 {ds.work = #ds.work<backward>} : tensor<64x64xf32>
    %g = ds.add %t, %g1 {ds.work = #ds.work<backward>} : tensor<64x64xf32>
    return %loss, %g : tensor<f32>, tensor<64x64xf32>
  }
}
