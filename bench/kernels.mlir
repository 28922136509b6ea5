// Kernels of a GPT's training step, for bench/kernels.py.

ds.kernel @adamw inputs 7 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
^bb0(%p: tensor<?xf32>, %g: tensor<?xf32>, %m: tensor<?xf32>, %v: tensor<?xf32>, %lr0: tensor<f32>, %c10: tensor<f32>, %c20: tensor<f32>):
  %lr = ds.broadcast %lr0 dims [] : tensor<f32> -> tensor<?xf32>
  %c1 = ds.broadcast %c10 dims [] : tensor<f32> -> tensor<?xf32>
  %c2 = ds.broadcast %c20 dims [] : tensor<f32> -> tensor<?xf32>
  %b1 = ds.constant dense<0.9> : tensor<f32>
  %b1b = ds.broadcast %b1 dims [] : tensor<f32> -> tensor<?xf32>
  %o1 = ds.constant dense<0.1> : tensor<f32>
  %o1b = ds.broadcast %o1 dims [] : tensor<f32> -> tensor<?xf32>
  %b2 = ds.constant dense<0.999> : tensor<f32>
  %b2b = ds.broadcast %b2 dims [] : tensor<f32> -> tensor<?xf32>
  %o2 = ds.constant dense<0.001> : tensor<f32>
  %o2b = ds.broadcast %o2 dims [] : tensor<f32> -> tensor<?xf32>
  %eps = ds.constant dense<1.0e-8> : tensor<f32>
  %epsb = ds.broadcast %eps dims [] : tensor<f32> -> tensor<?xf32>
  %wd = ds.constant dense<0.01> : tensor<f32>
  %wdb = ds.broadcast %wd dims [] : tensor<f32> -> tensor<?xf32>
  %m1 = ds.mul %m, %b1b : tensor<?xf32>
  %m2 = ds.mul %g, %o1b : tensor<?xf32>
  %mn = ds.add %m1, %m2 : tensor<?xf32>
  %v1 = ds.mul %v, %b2b : tensor<?xf32>
  %gg = ds.mul %g, %g : tensor<?xf32>
  %v2 = ds.mul %gg, %o2b : tensor<?xf32>
  %vn = ds.add %v1, %v2 : tensor<?xf32>
  %mh = ds.div %mn, %c1 : tensor<?xf32>
  %vh = ds.div %vn, %c2 : tensor<?xf32>
  %sq = ds.sqrt %vh : tensor<?xf32>
  %den = ds.add %sq, %epsb : tensor<?xf32>
  %up = ds.div %mh, %den : tensor<?xf32>
  %decay = ds.mul %p, %wdb : tensor<?xf32>
  %all = ds.add %up, %decay : tensor<?xf32>
  %step = ds.mul %all, %lr : tensor<?xf32>
  %pn = ds.sub %p, %step : tensor<?xf32>
  ds.yield %pn, %mn, %vn : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

ds.kernel @layer_norm inputs 3 buffers [!ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<384xf32>, [1], device>, !ds.buffer<tensor<384xf32>, [1], device>, !ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<1024xf32>, [1], device>, !ds.buffer<tensor<1024xf32>, [1], device>] {
^bb0(%a0: tensor<1024x384xf32>, %a1: tensor<384xf32>, %a2: tensor<384xf32>):
  %n = ds.constant dense<0.0026041666666666665> : tensor<1024xf32>
  %s = ds.reduce sum %a0 dims [1] : tensor<1024x384xf32> -> tensor<1024xf32>
  %mean = ds.mul %s, %n : tensor<1024xf32>
  %mb = ds.broadcast %mean dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %d = ds.sub %a0, %mb : tensor<1024x384xf32>
  %dd = ds.mul %d, %d : tensor<1024x384xf32>
  %ss = ds.reduce sum %dd dims [1] : tensor<1024x384xf32> -> tensor<1024xf32>
  %var = ds.mul %ss, %n : tensor<1024xf32>
  %eps = ds.constant dense<1.0e-5> : tensor<1024xf32>
  %ve = ds.add %var, %eps : tensor<1024xf32>
  %rstd = ds.rsqrt %ve : tensor<1024xf32>
  %rb = ds.broadcast %rstd dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %xh = ds.mul %d, %rb : tensor<1024x384xf32>
  %wb = ds.broadcast %a1 dims [1] : tensor<384xf32> -> tensor<1024x384xf32>
  %bb = ds.broadcast %a2 dims [1] : tensor<384xf32> -> tensor<1024x384xf32>
  %y = ds.mul %xh, %wb : tensor<1024x384xf32>
  %z = ds.add %y, %bb : tensor<1024x384xf32>
  ds.yield %z, %mean, %rstd : tensor<1024x384xf32>, tensor<1024xf32>, tensor<1024xf32>
}

ds.kernel @layer_norm_backward inputs 5 buffers [!ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<384xf32>, [1], device>, !ds.buffer<tensor<1024xf32>, [1], device>, !ds.buffer<tensor<1024xf32>, [1], device>, !ds.buffer<tensor<1024x384xf32>, [384, 1], device>] {
^bb0(%a0: tensor<1024x384xf32>, %a1: tensor<1024x384xf32>, %a2: tensor<384xf32>, %a3: tensor<1024xf32>, %a4: tensor<1024xf32>):
  %n = ds.constant dense<0.0026041666666666665> : tensor<1024xf32>
  %mb = ds.broadcast %a3 dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %rb = ds.broadcast %a4 dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %d = ds.sub %a1, %mb : tensor<1024x384xf32>
  %xh = ds.mul %d, %rb : tensor<1024x384xf32>
  %wb = ds.broadcast %a2 dims [1] : tensor<384xf32> -> tensor<1024x384xf32>
  %g = ds.mul %a0, %wb : tensor<1024x384xf32>
  %gx = ds.mul %g, %xh : tensor<1024x384xf32>
  %s1 = ds.reduce sum %g dims [1] : tensor<1024x384xf32> -> tensor<1024xf32>
  %s2 = ds.reduce sum %gx dims [1] : tensor<1024x384xf32> -> tensor<1024xf32>
  %m1 = ds.mul %s1, %n : tensor<1024xf32>
  %m2 = ds.mul %s2, %n : tensor<1024xf32>
  %m1b = ds.broadcast %m1 dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %m2b = ds.broadcast %m2 dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %t = ds.mul %xh, %m2b : tensor<1024x384xf32>
  %u = ds.sub %g, %m1b : tensor<1024x384xf32>
  %v = ds.sub %u, %t : tensor<1024x384xf32>
  %dx = ds.mul %v, %rb : tensor<1024x384xf32>
  ds.yield %dx : tensor<1024x384xf32>
}

ds.kernel @layer_norm_gains inputs 4 buffers [!ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<1024xf32>, [1], device>, !ds.buffer<tensor<1024xf32>, [1], device>, !ds.buffer<tensor<384xf32>, [1], device>, !ds.buffer<tensor<384xf32>, [1], device>] {
^bb0(%a0: tensor<1024x384xf32>, %a1: tensor<1024x384xf32>, %a2: tensor<1024xf32>, %a3: tensor<1024xf32>):
  %mb = ds.broadcast %a2 dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %rb = ds.broadcast %a3 dims [0] : tensor<1024xf32> -> tensor<1024x384xf32>
  %d = ds.sub %a1, %mb : tensor<1024x384xf32>
  %xh = ds.mul %d, %rb : tensor<1024x384xf32>
  %gx = ds.mul %a0, %xh : tensor<1024x384xf32>
  %dw = ds.reduce sum %gx dims [0] : tensor<1024x384xf32> -> tensor<384xf32>
  %db = ds.reduce sum %a0 dims [0] : tensor<1024x384xf32> -> tensor<384xf32>
  ds.yield %dw, %db : tensor<384xf32>, tensor<384xf32>
}

ds.kernel @gelu inputs 1 buffers [!ds.buffer<tensor<1024x1536xf32>, [1536, 1], device>, !ds.buffer<tensor<1024x1536xf32>, [1536, 1], device>] {
^bb0(%a0: tensor<1024x1536xf32>):
  %y = ds.gelu tanh %a0 : tensor<1024x1536xf32>
  ds.yield %y : tensor<1024x1536xf32>
}

ds.kernel @gelu_backward inputs 2 buffers [!ds.buffer<tensor<1024x1536xf32>, [1536, 1], device>, !ds.buffer<tensor<1024x1536xf32>, [1536, 1], device>, !ds.buffer<tensor<1024x1536xf32>, [1536, 1], device>] {
^bb0(%a0: tensor<1024x1536xf32>, %a1: tensor<1024x1536xf32>):
  %y = ds.gelu_grad tanh %a1, %a0 : tensor<1024x1536xf32>
  ds.yield %y : tensor<1024x1536xf32>
}

ds.kernel @residual_add inputs 2 buffers [!ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<1024x384xf32>, [384, 1], device>, !ds.buffer<tensor<1024x384xf32>, [384, 1], device>] {
^bb0(%a0: tensor<1024x384xf32>, %a1: tensor<1024x384xf32>):
  %y = ds.add %a0, %a1 : tensor<1024x384xf32>
  ds.yield %y : tensor<1024x384xf32>
}

ds.kernel @bias_gradient inputs 1 buffers [!ds.buffer<tensor<1024x1536xf32>, [1536, 1], device>, !ds.buffer<tensor<1536xf32>, [1], device>] {
^bb0(%a0: tensor<1024x1536xf32>):
  %y = ds.reduce sum %a0 dims [0] : tensor<1024x1536xf32> -> tensor<1536xf32>
  ds.yield %y : tensor<1536xf32>
}

ds.kernel @softmax inputs 1 buffers [!ds.buffer<tensor<6144x256xf32>, [256, 1], device>, !ds.buffer<tensor<6144x256xf32>, [256, 1], device>] {
^bb0(%a0: tensor<6144x256xf32>):
  %m = ds.reduce max %a0 dims [1] : tensor<6144x256xf32> -> tensor<6144xf32>
  %mb = ds.broadcast %m dims [0] : tensor<6144xf32> -> tensor<6144x256xf32>
  %d = ds.sub %a0, %mb : tensor<6144x256xf32>
  %e = ds.exp %d : tensor<6144x256xf32>
  %s = ds.reduce sum %e dims [1] : tensor<6144x256xf32> -> tensor<6144xf32>
  %sb = ds.broadcast %s dims [0] : tensor<6144xf32> -> tensor<6144x256xf32>
  %y = ds.div %e, %sb : tensor<6144x256xf32>
  ds.yield %y : tensor<6144x256xf32>
}

