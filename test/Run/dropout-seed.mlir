// Dropout draws by the seed: one seed gives one run, another seed another, and evaluation drops nothing.
// REQUIRES: train, torch
// RUN: mkdir -p %t && %python -c "import numpy; numpy.save('%t/x.npy', numpy.ones((8, 64), 'f4'))"
// RUN: ds-opt %s --set train_micro_batch_size_per_gpu=4 --set optimizer.type=SGD --set optimizer.params.lr=0.0 \
// RUN:   --emit=program -o %t/drop.dsx
// DEFINE: %{run} = ds-run %t/drop.dsx --data %t/x.npy --steps 2 --eval-data %t/x.npy --eval-every 1
// RUN: %{run} --seed 1 --log-jsonl %t/a.jsonl
// RUN: %{run} --seed 1 --log-jsonl %t/b.jsonl
// RUN: %{run} --seed 2 --log-jsonl %t/c.jsonl
// RUN: %python -c "import json; a, b, c = ([json.loads(l) for l in open(f'%t/{n}.jsonl')] for n in 'abc'); \
// RUN:   losses = lambda log: [step['loss'] for step in log]; \
// RUN:   assert losses(a) == losses(b) and losses(a) != losses(c) and losses(a)[0] != losses(a)[1], (a, b, c); \
// RUN:   assert [s['eval_loss'] for s in a] == [256.0, 256.0], a"

ds.state @rng role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2xi64>
ds.state @w role(parameter) trainable init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<4x64xf32>
func.func @forward(%x: tensor<4x64xf32> {ds.input = "x"}, %rng: tensor<2xi64> {ds.state = @rng},
                   %w: tensor<4x64xf32> {ds.state = @w}) -> tensor<f32> {
  // 4 * 64 ones add up to 256; what is kept counts twice.
  %y = ds.mul %x, %w : tensor<4x64xf32>
  %d = ds.dropout %y, %rng probability 0.5 id 0 : tensor<4x64xf32>, tensor<2xi64>
  %l = ds.reduce sum %d dims [0, 1] : tensor<4x64xf32> -> tensor<f32>
  return %l : tensor<f32>
}
