//! The tensor map: locations outside tools know by name.
//!
//! A JSON list of names, or of objects with a `name`, or an object keyed by name. It stands in the
//! module's attribute `tensor_map`, and in a file for the whole program. Entries of locations that
//! are gone go; all others stay byte by byte as they are.

use std::collections::HashSet;
use std::ops::Range;

use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Ir, Op, Str};
use bir_dialect::text::diag::{Diagnostic, Part, Place};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::locations::Locations;
use crate::pass::{PassContext, symbol_text};

const ATTR: &str = "tensor_map";

/// The maps of a program.
pub(super) struct TensorMaps {
    /// Modules that have one.
    modules: Vec<(Op, Map)>,
    /// Path and map.
    file: Option<(String, Map)>,
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
            let map = Map::parse(text).map_err(|why| {
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
            let map = Map::parse(&text).map_err(|why| {
                let message = format!("the tensor map `{path}` {why}");
                Box::new(Diagnostic::error(Place::None, message).help(help))
            })?;
            maps.file = Some((path.to_owned(), map));
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
        for (module, map) in self.modules {
            let dead = names_gone(ir, &[module], gone);
            let (text, count) = map.without(&dead);
            if count > 0 {
                removed += count;
                let attr = ir.ctx.string(&text);
                ir.set_attr(module, ATTR, Some(attr));
            }
        }
        if let Some((path, map)) = self.file {
            let dead = names_gone(ir, modules, gone);
            let (text, count) = map.without(&dead);
            if count > 0 {
                removed += count;
                cx.file(&path, text);
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

/// A map as its text, and where its entries are in it: what stays keeps every byte.
struct Map {
    text: String,
    /// Names and places of entries, in order.
    entries: Vec<(String, Range<usize>)>,
}

impl Map {
    fn parse(text: &str) -> Result<Map, String> {
        let whole: &RawValue =
            serde_json::from_str(text).map_err(|error| format!("is no JSON: {error}"))?;
        let Parts(parts) = match whole.get().as_bytes().first() {
            Some(b'[' | b'{') => serde_json::from_str(text),
            _ => return Err("is neither a list nor an object".to_owned()),
        }
        .map_err(|error| format!("is no JSON: {error}"))?;
        let start = |value: &RawValue| value.get().as_ptr() as usize - text.as_ptr() as usize;
        let mut entries = Vec::with_capacity(parts.len());
        let mut end = 0;
        for (key, value) in parts {
            // Between a value and the next key there are blanks and a comma.
            let from = match key {
                Some(_) => end + text[end..].find('"').unwrap_or(0),
                None => start(value),
            };
            end = start(value) + value.get().len();
            let name = key.or_else(|| name_of(value));
            let name = name.ok_or_else(|| format!("has no name in entry {}", entries.len() + 1))?;
            entries.push((name, from..end));
        }
        Ok(Map {
            text: text.to_owned(),
            entries,
        })
    }

    /// The text without the entries of those names, and how many these are.
    fn without(&self, dead: &HashSet<String>) -> (String, u64) {
        let is_kept = |entry: &&(String, Range<usize>)| !dead.contains(&entry.0);
        let kept: Vec<_> = self.entries.iter().filter(is_kept).collect();
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return (self.text.clone(), 0);
        };
        // Entries are parted as the first two are.
        let comma = match self.entries.get(1) {
            Some(second) => &self.text[first.1.end..second.1.start],
            None => "",
        };
        let texts: Vec<&str> = kept.iter().map(|(_, at)| &self.text[at.clone()]).collect();
        let (head, tail) = (&self.text[..first.1.start], &self.text[last.1.end..]);
        let text = match texts.is_empty() {
            true => head.trim_end().to_owned() + tail.trim_start(),
            false => head.to_owned() + &texts.join(comma) + tail,
        };
        (text, (self.entries.len() - kept.len()) as u64)
    }
}

/// The name of a list's entry: the entry, or its field of that name.
fn name_of(entry: &RawValue) -> Option<String> {
    if entry.get().starts_with('{') {
        let Parts(fields) = serde_json::from_str(entry.get()).ok()?;
        let is_name = |field: &&(Option<String>, &RawValue)| field.0.as_deref() == Some("name");
        return serde_json::from_str(fields.iter().rfind(is_name)?.1.get()).ok();
    }
    serde_json::from_str(entry.get()).ok()
}

/// The entries of a list or an object, as they are written: numbers of any size, any depth.
struct Parts<'a>(Vec<(Option<String>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Parts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Parts<'de>, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Parts<'de>;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("a list or an object")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Parts<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(entry) = list.next_element()? {
                    parts.push((None, entry));
                }
                Ok(Parts(parts))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some((key, entry)) = map.next_entry()? {
                    parts.push((Some(key), entry));
                }
                Ok(Parts(parts))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}
