"""Operations on 64-bit words and bitmaps, each one or a few machine instructions.

A *bitmap* is a ``uint64[ceil(n / 64) + 1]``: bit `i` is bit ``i % 64`` of word ``i // 64``; the
spare word at the end lets a field of up to 64 bits be read at any position without a test.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from .jit import HAS_BMI2, inlined, kernel

ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)
FOUR = np.uint64(4)
SIX = np.uint64(6)
SEVEN = np.uint64(7)
EIGHT = np.uint64(8)
TWELVE = np.uint64(12)
WORD_MASK = np.uint64(63)
WORD_BITS = np.uint64(64)
ALL_ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """popcount(uint64) -> uint64: number of set bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def trailing_zeros(typingctx: Any, word: Any) -> Any:
    """trailing_zeros(uint64) -> uint64: index of the lowest set bit; `word` must not be 0."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


def _element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return cgutils.gep(builder, data, index)


@intrinsic
def atomic_or(typingctx: Any, array: Any, index: Any, word: Any) -> Any:
    """atomic_or(array, index, word): or `word` into one element, safe against other threads."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        builder.atomic_rmw("or", pointer, args[2], "monotonic")
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.uint64), codegen


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """prefetch(array, index): ask for the cache line of one element; never faults."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        i32 = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [ir.PointerType(), i32, i32, i32])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


@intrinsic
def _deposit_bits(typingctx: Any, word: Any, mask: Any) -> Any:
    """_deposit_bits(word, mask): BMI2's pdep."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        function_type = ir.FunctionType(i64, [i64, i64])
        function = cgutils.get_or_insert_function(
            builder.module, function_type, "llvm.x86.bmi.pdep.64"
        )
        return builder.call(function, args)

    return types.uint64(types.uint64, types.uint64), codegen


KEYS = 16
"""Keys that `keys_at_most` compares at once: two cache lines."""


def _splat(builder: Any, vector: Any, value: Any) -> Any:
    """A vector that holds one value in all its places."""
    i32 = ir.IntType(32)
    empty = ir.Constant(vector, ir.Undefined)
    places = ir.Constant(ir.VectorType(i32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(builder.insert_element(empty, value, i32(0)), empty, places)


def _count_true(builder: Any, mask: Any) -> Any:
    """Number of true places of a vector of booleans, as a 64-bit word."""
    bits = builder.bitcast(mask, ir.IntType(mask.type.count))
    return builder.zext(builder.ctpop(bits), ir.IntType(64))


@intrinsic
def keys_at_most(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """keys_at_most(array, index, value) -> uint64: how many of 16 words are at most `value`."""

    # Vector instructions written out: LLVM does not find them in a loop over a strided array, and
    # lowers these to whatever the processor has.
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(64), KEYS)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        keys = builder.load(pointer, typ=vector, align=8)
        value = _splat(builder, vector, args[2])
        return _count_true(builder, builder.icmp_unsigned("<=", keys, value))

    return types.uint64(array, types.uint64, types.uint64), codegen


@intrinsic
def count_zeros_into(typingctx: Any, array: Any, index: Any, wanted: Any, sums: Any) -> Any:
    """count_zeros_into(array, index, wanted, sums) -> uint64: zeros in 8 words, added up.

    ``sums[k + 1]`` is the number of zeros in the words ``index ... index + k``; returns how many
    of these eight sums are below `wanted`.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(64), 8)
        places = ir.VectorType(ir.IntType(32), 8)
        zeros, ones = ir.Constant(vector, [0] * 8), ir.Constant(vector, [-1] * 8)
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        words = builder.xor(builder.load(pointer, typ=vector, align=8), ones)
        function_type = ir.FunctionType(vector, [vector])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.ctpop.v8i64")
        counts = builder.call(function, [words])
        for distance in (1, 2, 4):
            moved = [k - distance if k >= distance else 8 for k in range(8)]
            shifted = builder.shuffle_vector(counts, zeros, ir.Constant(places, moved))
            counts = builder.add(counts, shifted)
        one = ir.IntType(64)(1)
        target = _element_pointer(context, builder, signature.args[3], args[3], one)
        builder.store(counts, builder.bitcast(target, ir.PointerType(vector)), align=8)
        wanted = _splat(builder, vector, args[2])
        return _count_true(builder, builder.icmp_unsigned("<", counts, wanted))

    return types.uint64(array, types.uint64, types.uint64, sums), codegen


@intrinsic
def load_unaligned(typingctx: Any, array: Any, index: Any, byte: Any) -> Any:
    """load_unaligned(array, index, byte) -> uint64: 8 bytes, from `byte` bytes past an element."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _element_pointer(context, builder, signature.args[0], args[0], args[1])
        pointer = builder.gep(pointer, [args[2]], source_etype=ir.IntType(8))
        return builder.load(pointer, typ=ir.IntType(64), align=1)

    return types.uint64(array, types.uint64, types.uint64), codegen


def _select_in_word_portable(word, rank):
    """Position of the set bit of a word with `rank` set bits below it."""
    position = ZERO
    for half in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), ONE):
        below = popcount(word & ((ONE << half) - ONE))
        if rank >= below:
            rank -= below
            word >>= half
            position += half
    return position


def _select_in_word_bmi2(word, rank):
    """Position of the set bit of a word with `rank` set bits below it."""
    return trailing_zeros(_deposit_bits(ONE << rank, word))


select_in_word = inlined(_select_in_word_bmi2 if HAS_BMI2 else _select_in_word_portable)


def bitmap_words(num_bits: int) -> int:
    """Number of words of a bitmap of `num_bits` bits, the spare word included."""
    return (num_bits + 63) // 64 + 1


def empty_bitmap(num_bits: int) -> NDArray[np.uint64]:
    """A bitmap of `num_bits` zero bits."""
    return np.zeros(bitmap_words(num_bits), dtype=np.uint64)


@inlined
def low_bits(count):
    """A word with its `count` lowest bits set, 0 <= count <= 64."""
    if count == ZERO:
        return ZERO
    return ALL_ONES >> (WORD_BITS - count)


@inlined
def bits_at(bitmap, position, count):
    """`count` bits of a bitmap from bit `position` on, 1 <= count <= 64."""
    word = position >> SIX
    shift = position & WORD_MASK
    low = bitmap[word] >> shift
    high = (bitmap[word + ONE] << ONE) << (WORD_MASK - shift)
    return (low | high) & (ALL_ONES >> (WORD_BITS - count))


@inlined
def or_bits(bitmap, position, bits):
    """Or up to 64 bits into a bitmap at bit `position`; safe to call from several threads."""
    word = position >> SIX
    shift = position & WORD_MASK
    # Testing first: most marks are repeats, and an atomic or costs far more than a load.
    low = bits << shift
    if low & ~bitmap[word]:
        atomic_or(bitmap, word, low)
    high = (bits >> ONE) >> (WORD_MASK - shift)
    if high & ~bitmap[word + ONE]:
        atomic_or(bitmap, word + ONE, high)


@inlined
def or_bit(bitmap, position):
    """Set one bit of a bitmap; safe to call from several threads."""
    word = position >> SIX
    bit = ONE << (position & WORD_MASK)
    if not bitmap[word] & bit:
        atomic_or(bitmap, word, bit)


@kernel
def is_rising(values):
    """Whether no value falls below the one before; ends at the first that does."""
    for i in range(ONE, np.uint64(len(values))):  # noqa: SIM110
        if values[i] < values[i - ONE]:
            return False
    return True
