//! The tensor map: locations outside tools know by name.
//!
//! A JSON list of names, or of objects with a `name`, or an object keyed by name. It stands in the
//! module's attribute `tensor_map`, and in a file for the whole program. Entries of locations that
//! are gone go; all others stay as they are, and where none goes not a byte changes.

use std::collections::HashSet;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op, Str};
use bir_dialect::text::diag::{Diagnostic, Part, Place};
use serde_json::Value as Json;

use super::locations::Locations;
use crate::pass::{PassContext, symbol_text};

const ATTR: &str = "tensor_map";

/// The maps of a program.
pub(super) struct TensorMaps {
    /// Modules that have one.
    modules: Vec<(Op, Json)>,
    /// Path, text and map.
    file: Option<(String, String, Json)>,
}

impl TensorMaps {
    /// Reads the attributes, and the file where a path is given.
    pub(super) fn read(ir: &Ir, modules: &[Op], path: &str) -> Result<TensorMaps, Box<Diagnostic>> {
        let mut maps = TensorMaps {
            modules: Vec::new(),
            file: None,
        };
        let help =
            "a tensor map is a list of names, or of objects with a `name`, or an object by name";
        for &module in modules {
            let Some(text) = ir.attr(module, ATTR).and_then(|attr| ir.ctx.attr_str(attr)) else {
                continue;
            };
            let map = parse(text).map_err(|why| {
                let message = format!("`tensor_map` of module {} {why}", symbol_text(ir, module));
                let place = Place::Op(module, Part::Whole);
                Box::new(Diagnostic::error(place, message).help(help))
            })?;
            maps.modules.push((module, map));
        }
        if !path.is_empty() {
            let text = std::fs::read_to_string(path).map_err(|error| {
                let message = format!("cannot read the tensor map `{path}`: {error}");
                let help = "`tensor-map` names the file to keep in step";
                Box::new(Diagnostic::error(Place::None, message).help(help))
            })?;
            let map = parse(&text).map_err(|why| {
                let message = format!("the tensor map `{path}` {why}");
                Box::new(Diagnostic::error(Place::None, message).help(help))
            })?;
            maps.file = Some((path.to_owned(), text, map));
        }
        Ok(maps)
    }

    /// Takes out the entries of locations that are gone; how many.
    pub(super) fn prune(
        self,
        ir: &mut Ir,
        modules: &[Op],
        gone: &Locations,
        cx: &mut PassContext<'_>,
    ) -> u64 {
        let mut removed = 0;
        for (module, mut map) in self.modules {
            let dead = names_gone(ir, &[module], gone);
            let count = prune(&mut map, &dead);
            if count > 0 {
                removed += count;
                let attr = ir.ctx.string(&map.to_string());
                ir.set_attr(module, ATTR, Some(attr));
            }
        }
        if let Some((path, text, mut map)) = self.file {
            let dead = names_gone(ir, modules, gone);
            let count = prune(&mut map, &dead);
            if count > 0 {
                removed += count;
                let printed = match text.trim_end().contains('\n') {
                    true => serde_json::to_string_pretty(&map),
                    false => serde_json::to_string(&map),
                };
                let end = if text.ends_with('\n') { "\n" } else { "" };
                cx.file(&path, printed.unwrap_or(text.clone()) + end);
            }
        }
        removed
    }
}

/// Names that are gone from modules and that no location of them has any more.
fn names_gone(ir: &Ir, modules: &[Op], gone: &Locations) -> HashSet<String> {
    let mut names: HashSet<Str> = modules
        .iter()
        .flat_map(|&module| gone.of(module))
        .copied()
        .collect();
    if names.is_empty() {
        return HashSet::new();
    }
    for &module in modules {
        for op in ir.walk_op(module) {
            if OpCode::of(ir, op) == Some(OpCode::Alloc)
                && let Some(name) = ir.result(op).and_then(|value| ir.value_name(value))
            {
                names.remove(&name);
            }
        }
    }
    names
        .into_iter()
        .map(|name| ir.ctx.text(name).to_owned())
        .collect()
}

fn parse(text: &str) -> Result<Json, String> {
    let map: Json = serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
    match &map {
        Json::Object(_) => Ok(map),
        Json::Array(entries) => match entries.iter().position(|entry| name_of(entry).is_none()) {
            None => Ok(map),
            Some(at) => Err(format!("has no name in entry {}", at + 1)),
        },
        _ => Err("is neither a list nor an object".to_owned()),
    }
}

fn name_of(entry: &Json) -> Option<&str> {
    match entry {
        Json::String(name) => Some(name),
        Json::Object(fields) => fields.get("name")?.as_str(),
        _ => None,
    }
}

fn prune(map: &mut Json, dead: &HashSet<String>) -> u64 {
    let is_dead = |name: &str| dead.contains(name);
    match map {
        Json::Array(entries) => {
            let before = entries.len();
            entries.retain(|entry| !name_of(entry).is_some_and(is_dead));
            (before - entries.len()) as u64
        }
        Json::Object(fields) => {
            let before = fields.len();
            // Others keep their order.
            fields.retain(|name, _| !is_dead(name));
            (before - fields.len()) as u64
        }
        _ => 0,
    }
}
