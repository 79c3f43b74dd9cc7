//! Constants whose elements are in `.npy` files, named relative to the folder of the `.bir`.

use std::path::{Path, PathBuf};

use super::ops::OpCode;
use super::program::names;
use crate::ir::{AttrView, Ir, Op};
use crate::text::{PrintOptions, print};

/// The file that holds the elements of a constant: as it is named, from [`Ir::folder`] on.
pub fn value_file(ir: &Ir, op: Op) -> Option<PathBuf> {
    let attr = ir.attr(op, ir.ctx.text(names::VALUE))?;
    let AttrView::Str(name) = ir.ctx.attr(attr) else {
        return None;
    };
    (OpCode::of(ir, op) == Some(OpCode::Alloc)).then(|| ir.folder.join(ir.ctx.text(name)))
}

/// Names the files of constants from the root on, so that the text may lie in any folder.
pub fn name_files_from_root(ir: &mut Ir) {
    let ops: Vec<(Op, PathBuf)> = { ir.walk().ops() }
        .filter_map(|op| Some((op, value_file(ir, op)?)))
        .collect();
    for (op, file) in ops {
        // A working directory that is gone leaves the name as it is.
        let file = std::path::absolute(&file).unwrap_or(file);
        let name = ir.ctx.string(&file.display().to_string());
        ir.set_attr(op, "value", Some(name));
    }
}

/// The text of a file for another folder than its own: where it names files, they are named from
/// the root on.
pub fn print_elsewhere(ir: &Ir, options: PrintOptions) -> String {
    if !ir.walk().ops().any(|op| value_file(ir, op).is_some()) {
        return print(ir, options);
    }
    let mut ir = ir.clone();
    name_files_from_root(&mut ir);
    print(&ir, options)
}

/// The folder of a file, as [`Ir::folder`] has it; empty for what has no folder in its name.
pub fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}
