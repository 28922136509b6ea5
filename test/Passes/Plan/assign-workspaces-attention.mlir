// RUN: ds-opt %s --ds-set-machine=attention-bytes=16777216 --ds-assign-workspaces | FileCheck %s
// RUN: ds-opt %s --ds-set-machine=attention-bytes=0 --ds-assign-workspaces | FileCheck %s --check-prefix=NONE
// RUN: ds-opt %s --ds-set-machine=attention-bytes=16777216 --ds-assign-workspaces=memory=least | FileCheck %s --check-prefix=NONE

// Attention's gradient takes a workspace of as many bytes as the plan has for it, or none.
module attributes {ds.machine = #ds.machine<target = "cuda:sm_90">} {
// A sample would take 24 MiB. Half of its 12 heads take 6 * (1024 * 1024 * 2 + 1024 * 4) + 512 = 12608000 bytes.
// CHECK-LABEL: @takes_smaller_pieces
// NONE-LABEL: @takes_smaller_pieces
func.func @takes_smaller_pieces(%q: !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, %k: !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, %lse: !ds.buffer<tensor<64x12x1024xf32>, [12288, 1024, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<12608000xi8>, [1], device>
  // NONE-NEXT: ds.call attention_backward
  ds.call attention_backward(%q, %k, %k, %q, %lse, %q, %q, %k, %k) writes [6, 7, 8] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x12x1024xf32>, [12288, 1024, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>, !ds.buffer<tensor<64x1024x12x64xbf16>, [786432, 768, 64, 1], device>
  return
}

// Engines without gradients ask for counters and descriptors alone.
// CHECK-LABEL: @keeps_the_little_of_the_forward
// NONE-LABEL: @keeps_the_little_of_the_forward
func.func @keeps_the_little_of_the_forward(%q: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %k: !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, %lse: !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<512xi8>, [1], device>
  // NONE-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<512xi8>, [1], device>
  ds.call attention_forward(%q, %k, %k, %q, %lse) writes [3, 4] params [1, 1.250000e-01] on compute : !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x128x4x64xbf16>, [32768, 256, 64, 1], device>, !ds.buffer<tensor<2x4x128xf32>, [512, 128, 1], device>
  return
}

// One key head's scores are 8 GiB. In blocks of 4096 they take 128 MiB, 8 for dk and dv of each query head and 512 bytes, with 2^16
// for row sums, 2^23 + 2 * 2^24 for f32 sums and 2^22 + 2 * 2^20 for parts of gradients: the same whatever pieces may take.
// CHECK-LABEL: @blocks_take_what_they_take
// NONE-LABEL: @blocks_take_what_they_take
func.func @blocks_take_what_they_take(%q: !ds.buffer<tensor<1x32768x4x128xbf16>, [16777216, 512, 128, 1], device>, %k: !ds.buffer<tensor<1x32768x1x128xbf16>, [4194304, 128, 128, 1], device>, %lse: !ds.buffer<tensor<1x4x32768xf32>, [131072, 32768, 1], device>) {
  // CHECK-NEXT: ds.alloc workspace alignment 256 : !ds.buffer<tensor<190906880xi8>, [1], device>
  // NONE-NEXT: ds.call attention_backward
  ds.call attention_backward(%q, %k, %k, %q, %lse, %q, %q, %k, %k) writes [6, 7, 8] params [1, 1.250000e-01, 4096] on compute : !ds.buffer<tensor<1x32768x4x128xbf16>, [16777216, 512, 128, 1], device>, !ds.buffer<tensor<1x32768x1x128xbf16>, [4194304, 128, 128, 1], device>, !ds.buffer<tensor<1x32768x1x128xbf16>, [4194304, 128, 128, 1], device>, !ds.buffer<tensor<1x32768x4x128xbf16>, [16777216, 512, 128, 1], device>, !ds.buffer<tensor<1x4x32768xf32>, [131072, 32768, 1], device>, !ds.buffer<tensor<1x32768x4x128xbf16>, [16777216, 512, 128, 1], device>, !ds.buffer<tensor<1x32768x4x128xbf16>, [16777216, 512, 128, 1], device>, !ds.buffer<tensor<1x32768x1x128xbf16>, [4194304, 128, 128, 1], device>, !ds.buffer<tensor<1x32768x1x128xbf16>, [4194304, 128, 128, 1], device>
  return
}
}
