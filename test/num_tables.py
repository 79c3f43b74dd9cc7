"""Writes tables of dtype conversions, computed by numpy and ml_dtypes, for dialect/tests/num.rs.

usage: num_tables.py DIRECTORY

FROM.TO holds what every bit pattern of the 8- or 16-bit dtype FROM becomes in TO, in order.
f32.TO.in holds f32 inputs, f32.TO what they become: both sides of and on every rounding boundary of
TO, its limits, special values, and random patterns. Everything is little-endian and unpadded.
"""

import pathlib
import sys

import ml_dtypes
import numpy as np

FLOATS = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
}
INTEGERS = {
    f"{name}{bits}": np.dtype(f"{name}{bits // 8}")
    for name in "iu"
    for bits in (8, 16, 32, 64)
}
F4 = "f4e2m1fn"  # no dtype by itself, but the element of one


def patterns(name):
    """Every pattern of a small dtype, as exact f64 values."""
    if name == "bool":
        return np.concatenate([[0.0], np.ones(255)])
    dtype = FLOATS.get(name) or INTEGERS[name]
    bits = np.arange(1 << (8 * np.dtype(dtype).itemsize))
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    return bits.astype(unsigned).view(dtype).astype(np.float64)


def to_tf32(values):
    """f64 to tf32 by arithmetic, not by bits: 11 significant bits, none below 2^-136."""
    _, exponent = np.frexp(values)
    step = np.ldexp(1.0, np.maximum(exponent, -125) - 11)
    rounded = np.rint(values / step) * step
    rounded = np.where(np.isfinite(values), rounded, values)
    return rounded.astype(np.float32)  # overflows to infinity where it should


def to_integer(values, dtype):
    info = np.iinfo(dtype)
    rounded = np.rint(values)
    # The limits of 64 bits are no f64, so compare first and convert what is inside.
    inside = (rounded > float(info.min)) & (rounded < float(info.max))
    result = np.where(inside, rounded, 0).astype(dtype)
    result[rounded <= float(info.min)] = info.min
    result[rounded >= float(info.max)] = info.max
    return result


def convert(values, name):
    """f64 values that are exact in f32 to the elements of a dtype."""
    if name == "f32":
        return values.astype(np.float32)
    if name == "tf32":
        return to_tf32(values)
    if name == "bool":
        return (values != 0).astype(np.uint8)
    if name == F4:
        return values.astype(np.float32).astype(ml_dtypes.float4_e2m1fn)
    if name in INTEGERS:
        return to_integer(values, INTEGERS[name])
    result = values.astype(np.float32).astype(FLOATS[name])
    if name == "f8e8m0fnu":
        # ml_dtypes 0.6.0 rounds all of 2^-127 .. 2^-126 up, unlike every other interval.
        low = (values > 2.0**-127) & (values < 1.5 * 2.0**-127)
        result.view(np.uint8)[low] = 0
    return result


def representable(name):
    """The finite values of a dtype from 0 on, ascending, and one step beyond the largest."""
    if name == "tf32":
        bits = np.arange(0x7F800000 >> 13, dtype=np.uint32) << 13
        values = bits.view(np.float32).astype(np.float64)
    elif name == F4:
        values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    elif name == "bool":
        values = np.array([0.0, 1.0])
    elif name in INTEGERS and INTEGERS[name].itemsize > 2:
        # f32 has no fractions above 2^23, so there is little to find between.
        values = np.arange(1 << 12).astype(np.float64)
        values = np.concatenate([values, 2.0**22 + values, 2.0**23 - values])
        values = np.unique(values)
    else:
        values = patterns(name)
        values = np.unique(np.abs(values[np.isfinite(values)]))
    return np.append(values, 2 * values[-1] - values[-2])


def inputs(name, random):
    values = representable(name)
    middle = ((values[:-1] + values[1:]) / 2).astype(np.float32).view(np.uint32)
    ends = values[np.abs(values) < 3.4e38].astype(np.float32).view(np.uint32)
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32).view(np.uint32)
    positive = np.concatenate([middle, ends, powers])
    positive = np.concatenate([positive - np.uint32(1), positive, positive + np.uint32(1)])
    positive = positive[positive < 0x7F800000]
    special = np.array([0, 1, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF])
    positive = np.concatenate([positive, special.astype(np.uint32)])
    bits = np.concatenate([positive, positive | np.uint32(0x80000000), random])
    return np.unique(bits).astype("<u4")


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    small = [*FLOATS, "i8", "i16", "u8", "u16", "bool"]
    every = ["f32", "tf32", *FLOATS, *INTEGERS, "bool"]
    for source in small:
        values = patterns(source)
        for target in every:
            convert(values, target).tofile(directory / f"{source}.{target}")
    random = np.random.default_rng(1).integers(0, 1 << 32, 20000).astype(np.uint32)
    for target in [*every[1:], F4]:
        bits = inputs(target, random)
        bits.tofile(directory / f"f32.{target}.in")
        values = bits.view(np.float32).astype(np.float64)
        convert(values, target).tofile(directory / f"f32.{target}")


if __name__ == "__main__":
    # Overflow and NaN are what the tables are about.
    np.seterr(all="ignore")
    main(pathlib.Path(sys.argv[1]))
