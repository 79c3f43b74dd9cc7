//! Values of inputs and outputs from numpy's files, as the flags of several tools name them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bir_dialect::text::diag::did_you_mean;
use bir_sim::{Port, PortKind, Tensor, npy};

/// Reads `NAME=FILE`, with or without `%` before the name.
pub fn named(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.trim_start_matches('%').to_owned(), PathBuf::from(path)))
        }
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

/// The port of that name that is an input or an output, as `wanted` says; the error names it.
pub fn port<'p>(ports: &'p [Port], name: &str, wanted: PortKind) -> Result<&'p Port, String> {
    let fits = |port: &&Port| port.kind == wanted || port.kind == PortKind::InOut;
    let what = if wanted == PortKind::Input {
        "input"
    } else {
        "output"
    };
    ports
        .iter()
        .filter(fits)
        .find(|port| port.name == name || wanted == PortKind::Input && port.takes(name))
        .ok_or_else(|| {
            let known = ports.iter().filter(fits).map(|port| port.name.as_str());
            let help = did_you_mean(name, known).map_or(String::new(), |help| format!("; {help}"));
            format!("the function has no {what} `%{name}`{help}")
        })
}

/// The value of a port that an array holds; `what` names the array in the error.
pub fn tensor(port: &Port, array: npy::Array, what: &str) -> Result<Tensor, String> {
    let tensor = array.into_tensor(port.dtype, what)?;
    if tensor.dims != port.dims {
        return Err(format!(
            "{what} is {}, expected {} for `%{}`",
            tensor.shape_text(),
            npy::shape(port.dtype, &port.dims),
            port.name
        ));
    }
    Ok(tensor)
}

/// The value of a port from a `.npy` file of at most `limit` bytes; the error names the file.
pub fn from_file(port: &Port, path: &Path, limit: u64) -> Result<Tensor, String> {
    let array = npy::read(path, limit)?;
    tensor(port, array, &format!("`{}`", path.display()))
}

/// Values given for inputs: those of an archive, then single files in place of some of them, each
/// of at most `limit` bytes. The error names the file and array.
pub fn given(
    ports: &[Port],
    archive: Option<&Path>,
    files: &[(String, PathBuf)],
    limit: u64,
) -> Result<BTreeMap<String, Tensor>, String> {
    let mut inputs = BTreeMap::new();
    if let Some(path) = archive {
        for (name, array) in npy::read_all(path, limit)? {
            let port = port(ports, &name, PortKind::Input)?;
            let what = format!("array `{name}` of `{}`", path.display());
            inputs.insert(name, tensor(port, array, &what)?);
        }
    }
    once(files, "input")?;
    for (name, path) in files {
        let port = port(ports, name, PortKind::Input)?;
        inputs.insert(name.clone(), from_file(port, path, limit)?);
    }
    Ok(inputs)
}

/// An error where two files are named for one value.
pub fn once(files: &[(String, PathBuf)], what: &str) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for (name, path) in files {
        if let Some(before) = seen.insert(name, path) {
            return Err(format!(
                "{what} `%{name}` is given twice, by `{}` and by `{}`",
                before.display(),
                path.display()
            ));
        }
    }
    Ok(())
}
