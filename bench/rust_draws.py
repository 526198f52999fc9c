"""Draws as `research/reproduce` draws its masks, so that Python trains on the same rows: the ChaCha stream cipher with 8
rounds as a generator of numbers, and the shuffle of the crate `rand` 0.10."""

import numpy as np

CONSTANTS = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]  # "expand 32-byte k"
COLUMNS = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
DIAGONALS = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
LIMIT = 1 << 32


def key(seed):
    """Eight words from a 64-bit seed, by the generator PCG32."""
    words = []
    for _ in range(8):
        seed = (seed * 6364136223846793005 + 11634580027462260723) % (1 << 64)
        word, turn = ((seed >> 18 ^ seed) >> 27) % LIMIT, seed >> 59
        words.append((word >> turn | word << (32 - turn)) % LIMIT)
    return words


def chacha8(seed, blocks):
    """The first words of the stream, 16 per block."""
    counter = np.arange(blocks, dtype=np.uint32)
    start = [np.full(blocks, word, np.uint32) for word in CONSTANTS + key(seed)]
    start += [counter] + [np.zeros(blocks, np.uint32)] * 3
    x = [word.copy() for word in start]

    def turned(word, bits):
        return word << np.uint32(bits) | word >> np.uint32(32 - bits)

    for _ in range(4):
        for a, b, c, d in COLUMNS + DIAGONALS:
            for to, by, target, bits in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]:
                x[to] = x[to] + x[by]
                x[target] = turned(x[target] ^ x[to], bits)
    return np.stack([x + first for x, first in zip(x, start)], 1).ravel().tolist()


class Draws:
    """A stream of numbers from a seed."""

    def __init__(self, seed, blocks=1 << 14):
        self.words = iter(chacha8(seed, blocks))

    def below(self, bound):
        high, low = divmod(next(self.words) * bound, LIMIT)
        if low > LIMIT - bound:  # not quite uniform: look at 32 more bits
            high += low + next(self.words) * bound // LIMIT >= LIMIT
        return high

    def shuffled(self, rows):
        """Fisher and Yates; one number is drawn for as many positions as its 32 bits are enough for."""
        rows, chunk, left = list(rows), 0, 1
        for i in range(len(rows)):
            n = i + 1
            if left == 0:
                bound = n
                while bound * (n + left + 1) < LIMIT:
                    bound, left = bound * (n + left + 1), left + 1
                chunk = self.below(bound)
            else:
                left -= 1
            j, chunk = (chunk, 0) if left == 0 else (chunk % n, chunk // n)
            rows[i], rows[j] = rows[j], rows[i]
        return rows
