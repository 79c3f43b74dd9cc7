//! Conversions against tables that numpy and `ml_dtypes` compute (`test/num_tables.py`).
//!
//! Needs Python: `BIR_TEST_PYTHON` names an interpreter that has both packages, otherwise
//! `test/venv.py` makes one.

// Helpers outside of test functions may fail a test, too.
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use bir_dialect::bir::num::{
    DType, DTypeClass, Overflow, convert, convert_with, from_f32, from_f32_with, from_f64,
    load_bits, narrow_from_f32, narrow_from_f32_with, packed_element_from_f32, same_value, to_f32,
    to_f64, widen_to_f32,
};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn venv_python() -> PathBuf {
    if let Some(python) = std::env::var_os("BIR_TEST_PYTHON") {
        return python.into();
    }
    let output = Command::new("python3")
        .arg(workspace().join("test/venv.py"))
        .output()
        .expect("python3 runs");
    assert!(
        output.status.success(),
        "test/venv.py failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// The directory of the tables, made when the script that makes them is new.
fn tables() -> &'static Path {
    static TABLES: OnceLock<PathBuf> = OnceLock::new();
    TABLES.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("num-tables");
        let script = workspace().join("test/num_tables.py");
        let wanted = fs::read(&script).unwrap();
        let lock = File::create(directory.with_extension("lock")).unwrap();
        lock.lock().unwrap();
        // Written last, so that half-made tables are made again.
        let stamp = directory.join("stamp");
        if fs::read(&stamp).ok().as_ref() != Some(&wanted) {
            let status = Command::new(venv_python())
                .arg(script)
                .arg(&directory)
                .status()
                .unwrap();
            assert!(status.success(), "num_tables.py failed");
            fs::write(stamp, wanted).unwrap();
        }
        directory
    })
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(tables().join(name)).unwrap()
}

/// The elements of a table, as bits.
fn elements(dtype: DType, name: &str) -> Vec<u64> {
    bytes(name)
        .chunks_exact(dtype.size_bytes() as usize)
        .map(|chunk| load_bits(dtype, chunk).unwrap())
        .collect()
}

fn single() -> impl Iterator<Item = DType> {
    let packed = |d: &DType| d.class() == DTypeClass::Packed;
    DType::ALL.iter().copied().filter(move |d| !packed(d))
}

fn small() -> impl Iterator<Item = DType> {
    single().filter(|d| d.bits() <= 16)
}

#[test]
fn every_small_pattern_converts_as_in_ml_dtypes() {
    for from in small() {
        for to in single().filter(|to| *to != from) {
            let expected = elements(to, &format!("{from}.{to}"));
            assert_eq!(expected.len() as u64, from.mask() + 1);
            for (bits, expected) in (0..).zip(expected) {
                let found = convert(from, to, bits).unwrap();
                assert!(
                    same_value(to, found, expected),
                    "{bits:#x} of {from} is {found:#x} in {to}, expected {expected:#x}"
                );
            }
        }
    }
}

#[test]
fn f32_rounds_as_in_ml_dtypes_at_every_boundary() {
    for to in single().filter(|to| *to != DType::F32) {
        let values = elements(DType::F32, &format!("f32.{to}.in"));
        let expected = elements(to, &format!("f32.{to}"));
        assert_eq!(values.len(), expected.len());
        for (bits, expected) in values.into_iter().zip(expected) {
            let found = convert(DType::F32, to, bits).unwrap();
            let value = f32::from_bits(bits as u32);
            assert!(
                same_value(to, found, expected),
                "{value:e} ({bits:#x}) is {found:#x} in {to}, expected {expected:#x}"
            );
            // Every other way to the same result, NaNs included.
            assert_eq!(from_f32(to, value), Some(found), "{value:e} in {to}");
            assert_eq!(from_f64(to, value.into()), Some(found), "{value:e} in {to}");
        }
    }
}

#[test]
fn f4_elements_round_as_in_ml_dtypes() {
    let values = elements(DType::F32, "f32.f4e2m1fn.in");
    let expected = bytes("f32.f4e2m1fn");
    assert_eq!(values.len(), expected.len());
    for (bits, expected) in values.into_iter().zip(expected) {
        let value = f32::from_bits(bits as u32);
        let found = packed_element_from_f32(DType::F4E2M1FNx4, value, Overflow::Default).unwrap();
        // There is no NaN; 0 is the choice here, the package keeps a sign of its own.
        let expected = if value.is_nan() { 0 } else { expected };
        assert_eq!(found, expected, "{value:e}");
    }
}

#[test]
fn slices_narrow_as_scalars_do() {
    for to in single().filter(|to| *to != DType::F32) {
        let from = elements(DType::F32, &format!("f32.{to}.in"));
        let from: Vec<f32> = from.iter().map(|b| f32::from_bits(*b as u32)).collect();
        let mut narrow = vec![0; from.len() * to.size_bytes() as usize];
        narrow_from_f32(to, &from, &mut narrow).unwrap();
        let mut saturated = narrow.clone();
        narrow_from_f32_with(to, &from, &mut saturated, Overflow::Saturate).unwrap();
        let size = to.size_bytes() as usize;
        let chunks = narrow.chunks_exact(size).zip(saturated.chunks_exact(size));
        for (value, (narrow, saturated)) in from.into_iter().zip(chunks) {
            let bits = value.to_bits().into();
            assert_eq!(load_bits(to, narrow), convert(DType::F32, to, bits));
            let expected = convert_with(DType::F32, to, bits, Overflow::Saturate);
            assert_eq!(load_bits(to, saturated), expected, "{value:e} in {to}");
            assert_eq!(from_f32_with(to, value, Overflow::Saturate), expected);
        }
    }
}

#[test]
fn every_small_pattern_widens_alike_on_every_path() {
    for from in small() {
        let size = from.size_bytes() as usize;
        let all: Vec<u8> = (0..=from.mask())
            .flat_map(|bits| bits.to_le_bytes().into_iter().take(size))
            .collect();
        let mut wide = vec![0.0; all.len() / size];
        widen_to_f32(from, &all, &mut wide).unwrap();
        for (bits, wide) in (0..).zip(wide) {
            let expected = convert(from, DType::F32, bits).unwrap();
            assert_eq!(u64::from(wide.to_bits()), expected, "{bits:#x} of {from}");
            assert_eq!(to_f32(from, bits).map(f32::to_bits), Some(wide.to_bits()));
            let double = to_f64(from, bits).unwrap();
            assert!(double == f64::from(wide) || double.is_nan() && wide.is_nan());
        }
    }
}
