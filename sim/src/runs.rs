//! Runs of elements: from memory to f32 or integers and back, whatever their distance.

use bir_dialect::bir::num::{
    DType, Overflow, load_bits, narrow_from_f32_inline, store_bits, to_f32, widen_to_f32_inline,
};

use crate::simd::{Kernel, Lanes};

struct Widen<'a> {
    dtype: DType,
    from: &'a [u8],
    to: &'a mut [f32],
}

impl Kernel for Widen<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        // Lengths fit, and packed dtypes never come here: the op table keeps them out of arithmetic.
        let _ = widen_to_f32_inline(self.dtype, self.from, self.to);
    }
}

struct Narrow<'a> {
    dtype: DType,
    from: &'a [f32],
    to: &'a mut [u8],
}

impl Kernel for Narrow<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let _ = narrow_from_f32_inline(self.dtype, self.from, self.to, Overflow::Default);
    }
}

/// Equally spaced elements of the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spaced {
    /// First byte.
    pub(crate) at: usize,
    /// Bytes to the next.
    pub(crate) step: i64,
    /// How many.
    pub(crate) count: usize,
    pub(crate) dtype: DType,
    /// Bytes of one.
    pub(crate) size: usize,
}

impl Spaced {
    fn is_contiguous(&self) -> bool {
        self.step == self.size as i64 || self.count == 1
    }

    fn range(&self) -> std::ops::Range<usize> {
        self.at..self.at + self.count * self.size
    }
}

fn gather<const N: usize>(bytes: &[u8], run: &Spaced, out: &mut [u8]) {
    let mut at = run.at as i64;
    for to in out.as_chunks_mut::<N>().0 {
        to.copy_from_slice(&bytes[at as usize..][..N]);
        at += run.step;
    }
}

fn scatter<const N: usize>(bytes: &mut [u8], run: &Spaced, from: &[u8]) {
    let mut at = run.at as i64;
    for from in from.as_chunks::<N>().0 {
        bytes[at as usize..][..N].copy_from_slice(from);
        at += run.step;
    }
}

/// Copies a run into a contiguous stretch of bytes.
pub(crate) fn pack(bytes: &[u8], run: &Spaced, out: &mut [u8]) {
    if run.is_contiguous() {
        out.copy_from_slice(&bytes[run.range()]);
        return;
    }
    match run.size {
        1 => gather::<1>(bytes, run, out),
        2 => gather::<2>(bytes, run, out),
        4 => gather::<4>(bytes, run, out),
        _ => gather::<8>(bytes, run, out),
    }
}

/// Copies a contiguous stretch of bytes into a run.
pub(crate) fn unpack(bytes: &mut [u8], run: &Spaced, from: &[u8]) {
    if run.is_contiguous() {
        bytes[run.range()].copy_from_slice(from);
        return;
    }
    match run.size {
        1 => scatter::<1>(bytes, run, from),
        2 => scatter::<2>(bytes, run, from),
        4 => scatter::<4>(bytes, run, from),
        _ => scatter::<8>(bytes, run, from),
    }
}

/// Reads a run as f32; `spare` is room for bytes in between.
pub(crate) fn load(lanes: Lanes, bytes: &[u8], run: &Spaced, out: &mut [f32], spare: &mut Vec<u8>) {
    if run.is_contiguous() {
        let from = &bytes[run.range()];
        if run.dtype == DType::F32 {
            bytemuck::cast_slice_mut::<f32, u8>(out).copy_from_slice(from);
        } else {
            lanes.run(Widen {
                dtype: run.dtype,
                from,
                to: out,
            });
        }
        return;
    }
    if run.dtype == DType::F32 {
        gather::<4>(bytes, run, bytemuck::cast_slice_mut(out));
        return;
    }
    resize(spare, run.count * run.size);
    let packed = &mut spare[..run.count * run.size];
    pack(bytes, run, packed);
    lanes.run(Widen {
        dtype: run.dtype,
        from: packed,
        to: out,
    });
}

/// Reads one element as f32.
pub(crate) fn load_one(bytes: &[u8], at: usize, dtype: DType) -> f32 {
    load_bits(dtype, &bytes[at..])
        .and_then(|bits| to_f32(dtype, bits))
        .unwrap_or(0.0)
}

/// Writes f32 values to a run, converted.
pub(crate) fn store(
    lanes: Lanes,
    bytes: &mut [u8],
    run: &Spaced,
    from: &[f32],
    spare: &mut Vec<u8>,
) {
    if run.dtype == DType::F32 {
        unpack(bytes, run, bytemuck::cast_slice(from));
        return;
    }
    if run.is_contiguous() {
        lanes.run(Narrow {
            dtype: run.dtype,
            from,
            to: &mut bytes[run.range()],
        });
        return;
    }
    resize(spare, run.count * run.size);
    let packed = &mut spare[..run.count * run.size];
    lanes.run(Narrow {
        dtype: run.dtype,
        from,
        to: packed,
    });
    unpack(bytes, run, packed);
}

/// What can be made larger.
pub(crate) trait Room {
    /// Room for so many elements at least; those that are there stay.
    fn reach(&mut self, len: usize);
}

impl<T: Clone + Default> Room for Vec<T> {
    fn reach(&mut self, len: usize) {
        if self.len() < len {
            self.resize(len, T::default());
        }
    }
}

/// Makes room without giving any back.
pub(crate) fn resize(room: &mut impl Room, len: usize) {
    room.reach(len);
}

/// Numbers in cache lines of their own: a vector that lies across two costs twice as much to store.
#[derive(Default)]
pub(crate) struct Row {
    /// `LINE` numbers more than there is room for.
    room: Vec<f32>,
    /// Where the first line starts.
    skew: usize,
}

impl Row {
    /// Numbers in a cache line.
    const LINE: usize = 16;
}

impl Room for Row {
    fn reach(&mut self, len: usize) {
        if self.len() < len {
            let mut room = vec![0.0; len + Row::LINE];
            let address = room.as_ptr() as usize / 4;
            let skew = address.next_multiple_of(Row::LINE) - address;
            room[skew..skew + self.len()].copy_from_slice(self);
            *self = Row { room, skew };
        }
    }
}

impl std::ops::Deref for Row {
    type Target = [f32];

    #[inline]
    fn deref(&self) -> &[f32] {
        let len = self.room.len().saturating_sub(Row::LINE);
        &self.room[self.skew..self.skew + len]
    }
}

impl std::ops::DerefMut for Row {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        let len = self.room.len().saturating_sub(Row::LINE);
        &mut self.room[self.skew..self.skew + len]
    }
}

/// Copies elements of one size from run to run.
pub(crate) fn copy(bytes: &mut [u8], dst: &Spaced, src: &Spaced, spare: &mut Vec<u8>) {
    if dst.is_contiguous() && src.is_contiguous() {
        bytes.copy_within(src.range(), dst.at);
        return;
    }
    let len = src.count * src.size;
    resize(spare, len);
    pack(bytes, src, &mut spare[..len]);
    unpack(bytes, dst, &spare[..len]);
}

/// Reads a run of integers, sign- or zero-extended.
pub(crate) fn load_ints(bytes: &[u8], run: &Spaced, out: &mut [i64]) {
    let mut at = run.at as i64;
    let signed = run.dtype.integer_range().is_some_and(|(low, _)| low < 0);
    let unused = 64 - run.dtype.bits();
    for out in out {
        let bits = load_bits(run.dtype, &bytes[at as usize..]).unwrap_or(0);
        *out = if signed {
            ((bits << unused) as i64) >> unused
        } else {
            bits as i64
        };
        at += run.step;
    }
}

/// Writes a run of integers, cut to the dtype's width.
pub(crate) fn store_ints(bytes: &mut [u8], run: &Spaced, from: &[i64]) {
    let mut at = run.at as i64;
    for &value in from {
        let _ = store_bits(run.dtype, value as u64, &mut bytes[at as usize..]);
        at += run.step;
    }
}
