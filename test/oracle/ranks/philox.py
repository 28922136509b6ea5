"""philox.py - the generator of `ds.random_uniform`, from its description.

A number is a function of the seed, the counter of the micro-batch, the op's `id` and the number of the element in the whole
value. Ranks that hold parts of a value draw what one rank draws when they name its elements' numbers.
"""

import numpy as np

LOW = np.uint64(0xFFFFFFFF)


def philox4x32(counter, key):
    """Philox-4x32-10 of four arrays of 32-bit words under a key of 64 bits: four such arrays."""
    words, low, high = list(counter), key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * words[0], np.uint64(0xCD9E8D57) * words[2]
        words = [second >> np.uint64(32) ^ words[1] ^ np.uint64(low), second & LOW,
                 first >> np.uint64(32) ^ words[3] ^ np.uint64(high), first & LOW]
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return words


def uniform(seed, counter, op_id, elements):
    """The numbers in [0, 1) of the elements whose numbers are `elements`, an array of 64-bit integers."""
    elements = np.asarray(elements).astype(np.uint64)
    block = elements // np.uint64(4)
    fixed = [np.full(block.shape, value & 0xFFFFFFFF, dtype=np.uint64) for value in (op_id, counter)]
    words = np.stack(philox4x32([block & LOW, block >> np.uint64(32), *fixed], seed & 0xFFFFFFFFFFFFFFFF))
    chosen = np.take_along_axis(words, (elements % np.uint64(4)).astype(np.int64)[None], 0)[0]
    return (chosen >> np.uint64(8)).astype(np.float64) * 2.0 ** -24
