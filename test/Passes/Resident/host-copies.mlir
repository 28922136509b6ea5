// Forward makes what is stored and backward reads what is loaded: a step takes the longer of forward and its stores, then the
// longer of backward and its loads. Four values of 64 MiB take 1.22 ms each at 55 GB/s, 4.88 ms one way and 9.76 ms both, which is
// more than all that is computed.
// RUN: ds-opt %s --ds-set-machine=cluster=h100-80g --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s
// RUN: sed 's/= move/= keep/' %s | ds-opt --ds-set-machine=cluster=h100-80g --ds-fuse-regions --ds-rematerialize-cheap | FileCheck %s --check-prefix=KEEP
// CHECK: residency = {{.*}}host_values = 4, {{.*}}expected_seconds = 0.00976
// KEEP-NOT: host_values
// KEEP: residency = {{.*}}expected_seconds = 0.00295
module attributes {ds.phase = #ds.phase<fused>, ds.training = #ds.training<offload = {activations = move}>} {
  ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4096x4096xf32>

  func.func @step(%x: tensor<4096x4096xf32> {ds.input = "x"}, %a: tensor<4096x64xf32> {ds.input = "a"}, %c: tensor<64x4096xf32> {ds.input = "c"}) -> (tensor<4096x4096xf32> {ds.state = @g}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %e0 = ds.matmul %a, %c {ds.work = #ds.work<forward>} : tensor<4096x64xf32>, tensor<64x4096xf32> -> tensor<4096x4096xf32>
    %e1 = ds.matmul %a, %c {ds.work = #ds.work<forward>} : tensor<4096x64xf32>, tensor<64x4096xf32> -> tensor<4096x4096xf32>
    %e2 = ds.matmul %a, %c {ds.work = #ds.work<forward>} : tensor<4096x64xf32>, tensor<64x4096xf32> -> tensor<4096x4096xf32>
    %e3 = ds.matmul %a, %c {ds.work = #ds.work<forward>} : tensor<4096x64xf32>, tensor<64x4096xf32> -> tensor<4096x4096xf32>
    %b0 = ds.matmul %x, %x {ds.work = #ds.work<backward>} : tensor<4096x4096xf32>, tensor<4096x4096xf32> -> tensor<4096x4096xf32>
    %b1 = ds.mul %b0, %e3 {ds.work = #ds.work<backward>} : tensor<4096x4096xf32>
    %b2 = ds.mul %b1, %e2 {ds.work = #ds.work<backward>} : tensor<4096x4096xf32>
    %b3 = ds.mul %b2, %e1 {ds.work = #ds.work<backward>} : tensor<4096x4096xf32>
    %b4 = ds.mul %b3, %e0 {ds.work = #ds.work<backward>} : tensor<4096x4096xf32>
    return %b4 : tensor<4096x4096xf32>
  }
}
