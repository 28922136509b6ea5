// RUN: ds-opt %s --ds-add-adapters="layers=*.fc:2" | FileCheck %s --check-prefix=ALL
// RUN: ds-opt %s --ds-add-adapters="layers=a.*:2:4,b.fc:3:4" | FileCheck %s --check-prefix=SOME

// What PEFT is to find layers by: the end of their names where all that end so are meant, else their whole names; layers of
// another size by their whole names.
// ALL: "{\22peft_config\22:{{.*}}\22r\22: 2,{{.*}}\22target_modules\22: [\0A    \22fc\22\0A  ],{{.*}}\22rank_pattern\22: {},
// SOME: \22r\22: 2,\0A  \22lora_alpha\22: 4,{{.*}}\22target_modules\22: [\0A    \22fc\22,\0A    \22a.up\22\0A  ],\0A  \22rank_pattern\22: {\0A    \22b.fc\22: 3\0A  },\0A  \22alpha_pattern\22: {},
module {
  ds.state @a.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  ds.state @a.up.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  ds.state @b.fc.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  ds.state @b.up.weight role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>
  func.func @forward(%x: tensor<2x8xf32> {ds.input = "x"}, %w0: tensor<8x8xf32> {ds.state = @a.fc.weight},
                     %w1: tensor<8x8xf32> {ds.state = @a.up.weight}, %w2: tensor<8x8xf32> {ds.state = @b.fc.weight},
                     %w3: tensor<8x8xf32> {ds.state = @b.up.weight}) -> tensor<f32> {
    %y0 = ds.matmul %x, %w0 : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %y1 = ds.matmul %y0, %w1 : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %y2 = ds.matmul %y1, %w2 : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %y3 = ds.matmul %y2, %w3 : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %l = ds.reduce sum %y3 dims [0, 1] : tensor<2x8xf32> -> tensor<f32>
    return %l : tensor<f32>
  }
}
