//! numpy's `.npy` and `.npz` files.
//!
//! numpy has no names for the dtypes of `ml_dtypes`: such arrays are written as it writes them, as
//! raw elements of the width (`|V2`, `|V1`), and are read from that, from unsigned integers of the
//! width, or from floats of a width numpy has none of its own for. `bool` is numpy's own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Cursor, Read, Seek, Write as _};
use std::path::Path;

use bir_dialect::bir::num::DType;
use npyz::{NpyHeader, Order};

use crate::tensor::{Tensor, shape_text};

/// An array as a file holds it: what its elements are is known when it meets a location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// numpy's type string, `<f4`.
    pub descr: String,
    /// Sizes.
    pub dims: Vec<u64>,
    /// Row-major elements.
    pub bytes: Vec<u8>,
}

/// The type string numpy uses for a dtype.
pub fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
        // A 32-bit container numpy can look at.
        DType::Tf32 => "<f4",
        DType::F8E5M2x4 | DType::F8E4M3FNx4 => "<u4",
        DType::F4E2M1FNx4 => "<u2",
        DType::Bf16 => "|V2",
        DType::F8E5M2 | DType::F8E4M3 | DType::F8E4M3FN | DType::F8E8M0FNU => "|V1",
    }
}

/// Whether an array of that type string can be a tensor of the dtype.
fn fits(found: &str, dtype: DType) -> bool {
    let (kind, width) = match found.trim_start_matches(['<', '|', '=']) {
        text if text.len() >= 2 && text.is_char_boundary(1) => text.split_at(1),
        _ => return false,
    };
    let Ok(width) = width.parse::<u32>() else {
        return false;
    };
    if width != dtype.size_bytes() {
        return false;
    }
    let own = descr(dtype).trim_start_matches(['<', '|']);
    let named = !own.starts_with('V') && !matches!(dtype, DType::Tf32);
    kind == &own[..1]
        || !named && matches!(kind, "V" | "u")
        // `<f2` is numpy's own `f16`, never a `bf16`.
        || !named && kind == "f" && dtype != DType::Bf16
        || dtype == DType::Bool && kind == "u"
}

impl Array {
    /// The tensor of a dtype with these elements; `what` names the array in the message.
    ///
    /// # Errors
    ///
    /// If the array is of another dtype.
    pub fn into_tensor(self, dtype: DType, what: &str) -> Result<Tensor, String> {
        if !fits(&self.descr, dtype) {
            return Err(format!(
                "{what} has dtype `{}`, expected `{}` for {dtype}",
                self.descr,
                descr(dtype)
            ));
        }
        let mut bytes = self.bytes;
        if dtype == DType::Bool {
            bytes.iter_mut().for_each(|byte| *byte = (*byte).min(1));
        }
        Ok(Tensor {
            dtype,
            dims: self.dims,
            bytes,
        })
    }
}

/// Most bytes of a header: numpy's own have some hundreds.
const HEADER_LIMIT: u32 = 1 << 16;

/// What starts a file up to the length of its header, which is refused where it is absurd: whoever
/// reads the header makes room for all of it.
fn prefix(reader: &mut impl Read, what: &str) -> Result<Vec<u8>, String> {
    let mut prefix = Vec::new();
    reader
        .take(12)
        .read_to_end(&mut prefix)
        .map_err(|error| format!("cannot read {what}: {error}"))?;
    if let [0x93, b'N', b'U', b'M', b'P', b'Y', version, _, length @ ..] = prefix.as_slice()
        && *version > 1
        && let Ok(length) = <[u8; 4]>::try_from(length)
    {
        let length = u32::from_le_bytes(length);
        if length > HEADER_LIMIT {
            return Err(format!(
                "{what} is no readable .npy array: a header of {length} bytes, more than {HEADER_LIMIT}"
            ));
        }
    }
    Ok(prefix)
}

/// Brackets within brackets in a header; a record of records has six.
const NESTED: usize = 8;

/// All up to the data, behind a prefix. A header that nests deeply takes the library that reads it
/// exponential time.
fn header(mut all: Vec<u8>, reader: &mut impl Read, what: &str) -> Result<Vec<u8>, String> {
    // The library says so of what is no array, and no more of it need be read.
    if !all.starts_with(b"\x93NUMPY") {
        return Ok(all);
    }
    let length = match all.as_slice() {
        [_, _, _, _, _, _, 1, _, low, high, ..] => {
            10 + usize::from(u16::from_le_bytes([*low, *high]))
        }
        [_, _, _, _, _, _, _, _, length @ ..] => match <[u8; 4]>::try_from(length) {
            Ok(length) => 12 + u32::from_le_bytes(length) as usize,
            Err(_) => 0,
        },
        _ => 0,
    };
    reader
        .take(length.saturating_sub(all.len()) as u64)
        .read_to_end(&mut all)
        .map_err(|error| format!("cannot read {what}: {error}"))?;
    let mut depth = 0usize;
    for byte in all.iter().skip(12) {
        match byte {
            b'[' | b'(' | b'{' => depth += 1,
            b']' | b')' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTED {
            return Err(format!(
                "{what} is no readable .npy array: its header nests more than {NESTED} deep"
            ));
        }
    }
    // `ml_dtypes` calls its `float8_e5m2` a float of one byte, of which the library has not heard; to us, such
    // elements are raw ones.
    const ONE_BYTE_FLOAT: &[u8] = b"'<f1'";
    let at = all.windows(5).position(|part| part == ONE_BYTE_FLOAT);
    if let Some(at) = at {
        all[at..at + 5].copy_from_slice(b"'|V1'");
    }
    Ok(all)
}

/// The start of a message from elsewhere that may quote all of its input.
fn short(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(120)
        .collect()
}

/// Reads an array. `size` is the length of the file, if known.
fn read_array(mut reader: impl Read, what: &str, limit: u64) -> Result<Array, String> {
    let prefix = prefix(&mut reader, what)?;
    let header = header(prefix, &mut reader, what)?;
    let mut reader = Cursor::new(header).chain(reader);
    let header = NpyHeader::from_reader(&mut reader)
        .map_err(|error| format!("{what} is no readable .npy array: {}", short(&error)))?;
    let text = header.dtype().descr();
    let descr = text.trim_matches('\'').to_owned();
    if descr.starts_with('>') {
        return Err(format!(
            "{what} is big-endian (`{descr}`), expected little-endian"
        ));
    }
    let width = header
        .dtype()
        .num_bytes()
        .filter(|&width| (1..=8).contains(&width))
        .ok_or_else(|| format!("{what} has elements of `{descr}`, expected numbers"))?;
    let dims = header.shape().to_vec();
    let elements = dims
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(dim));
    let expected = elements
        .and_then(|elements| elements.checked_mul(width as u64))
        .filter(|&bytes| bytes <= limit)
        .ok_or_else(|| {
            format!(
                "{what} of shape {dims:?} is larger than the limit of {limit} bytes (--max-bytes)"
            )
        })?;
    let mut bytes = Vec::new();
    reader
        .take(expected + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read {what}: {error}"))?;
    if (bytes.len() as u64) < expected {
        return Err(format!(
            "{what} is truncated: {} of {expected} bytes of {dims:?}",
            bytes.len()
        ));
    }
    bytes.truncate(expected as usize);
    if header.order() == Order::Fortran && dims.len() > 1 {
        bytes = from_fortran(&bytes, &dims, width);
    }
    Ok(Array { descr, dims, bytes })
}

/// Elements in column-major order, made row-major.
fn from_fortran(bytes: &[u8], dims: &[u64], width: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut strides = Vec::with_capacity(dims.len());
    let mut stride = 1usize;
    for &dim in dims {
        strides.push(stride);
        stride *= dim as usize;
    }
    let mut index = vec![0u64; dims.len()];
    for _ in 0..bytes.len() / width {
        let at: usize = index
            .iter()
            .zip(&strides)
            .map(|(&i, &stride)| i as usize * stride)
            .sum();
        out.extend_from_slice(&bytes[at * width..][..width]);
        for (i, &dim) in index.iter_mut().zip(dims).rev() {
            *i += 1;
            if *i < dim {
                break;
            }
            *i = 0;
        }
    }
    out
}

/// Reads a `.npy` file of at most `limit` bytes.
///
/// # Errors
///
/// A message that names the file: missing, no `.npy`, truncated, too large.
pub fn read(path: &Path, limit: u64) -> Result<Array, String> {
    let what = format!("`{}`", path.display());
    let file = fs::File::open(path).map_err(|error| format!("cannot read {what}: {error}"))?;
    read_array(io::BufReader::new(file), &what, limit)
}

/// Reads all arrays of an `.npz` file, by name, of at most `limit` bytes each.
///
/// # Errors
///
/// A message that names the file and array.
pub fn read_all(path: &Path, limit: u64) -> Result<BTreeMap<String, Array>, String> {
    let what = format!("`{}`", path.display());
    let file = fs::File::open(path).map_err(|error| format!("cannot read {what}: {error}"))?;
    read_archive(io::BufReader::new(file), &what, limit)
}

fn read_archive(
    reader: impl Read + Seek,
    what: &str,
    limit: u64,
) -> Result<BTreeMap<String, Array>, String> {
    let bad = |error: zip::result::ZipError| format!("{what} is no readable .npz archive: {error}");
    let mut archive = zip::ZipArchive::new(reader).map_err(bad)?;
    let mut arrays = BTreeMap::new();
    for at in 0..archive.len() {
        let entry = archive.by_index(at).map_err(bad)?;
        let Some(name) = entry.name().strip_suffix(".npy") else {
            continue;
        };
        // As on the command line, with or without `%`.
        let name = name.trim_start_matches('%').to_owned();
        let array = read_array(entry, &format!("array `{name}` of {what}"), limit)?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

/// The bytes of a `.npy` file.
pub fn encode(tensor: &Tensor) -> Vec<u8> {
    let mut dims: String = tensor.dims.iter().map(|dim| format!("{dim}, ")).collect();
    if tensor.dims.len() != 1 {
        dims.truncate(dims.len().saturating_sub(2));
    } else {
        dims.truncate(dims.len() - 1);
    }
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}",
        descr(tensor.dtype)
    );
    // Magic, version, length and text fill a multiple of 64 bytes.
    let unpadded = 10 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut bytes = Vec::with_capacity(10 + header.len() + tensor.bytes.len());
    bytes.extend_from_slice(b"\x93NUMPY\x01\x00");
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(&tensor.bytes);
    bytes
}

/// The bytes of an `.npz` file.
///
/// # Errors
///
/// If a tensor does not fit a zip archive.
pub fn encode_all<'t>(
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
) -> Result<Vec<u8>, String> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    // A fixed time: equal outputs make equal files.
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default());
    let write = || -> Result<(), zip::result::ZipError> {
        for (name, tensor) in tensors {
            let large = tensor.bytes.len() >= 1 << 31;
            archive.start_file(format!("{name}.npy"), options.large_file(large))?;
            archive.write_all(&encode(tensor))?;
        }
        Ok(())
    };
    write().map_err(|error| format!("cannot make an .npz archive: {error}"))?;
    archive
        .finish()
        .map(Cursor::into_inner)
        .map_err(|error| format!("cannot make an .npz archive: {error}"))
}

/// Writes files whole or not at all: temporary files first, then renames.
///
/// # Errors
///
/// A message that names the file.
pub fn write_files(files: &[(std::path::PathBuf, Vec<u8>)]) -> Result<(), String> {
    let mut ready = Vec::new();
    for (path, bytes) in files {
        // A link stays one: what it leads to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        let failed =
            |error: io::Error| format!("cannot write `{}`: {}", path.display(), reason(&error));
        if fs::metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            fs::write(&path, bytes).map_err(failed)?;
            continue;
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut file =
            tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(file.path(), fs::Permissions::from_mode(0o644)).map_err(failed)?;
        }
        ready.push((path, file));
    }
    for (path, file) in ready {
        file.persist(&path)
            .map_err(|error| format!("cannot write `{}`: {}", path.display(), error.error))?;
    }
    Ok(())
}

/// What went wrong, without the name of the temporary file.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at path ") {
        Some((reason, _)) => reason.to_owned(),
        None => text,
    }
}

/// What an array is called in messages about shapes.
pub fn shape(dtype: DType, dims: &[u64]) -> String {
    shape_text(dims, dtype)
}
