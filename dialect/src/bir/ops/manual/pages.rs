//! The manual for people.

use std::fmt::Write as _;

use super::super::def::{OpDef, OperandDef};
use super::super::table::OpCode;
use super::{Doc, common_attrs, kind_text, synopsis, type_text};
use crate::bir::num::DType;
use crate::bir::ops::NUMERIC;
use crate::bir::space::{DTypeSet, SpaceSet, Target};

const WIDTH: usize = 96;

pub(super) fn text(ops: &[OpCode]) -> String {
    let mut out = String::new();
    for (i, op) in ops.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        text_page(&mut out, op.def());
    }
    out
}

fn text_page(out: &mut String, def: &OpDef) {
    let doc = Doc::of(def);
    section(out, "NAME");
    let _ = writeln!(out, "    {} - {}", def.name, def.summary);
    section(out, "\nSYNOPSIS");
    wrap(out, &synopsis(def), 4, 8);
    section(out, "\nDESCRIPTION");
    for (i, paragraph) in doc.paragraphs.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        wrap(out, paragraph, 4, 4);
    }
    if !def.operands.is_empty() {
        section(out, "\nOPERANDS");
        for operand in def.operands {
            let _ = writeln!(
                out,
                "    {} ({}{})",
                operand.name,
                kind_text(operand),
                amount(operand)
            );
            if let Some(where_) = where_text(operand) {
                wrap(out, &where_, 8, 8);
            }
            wrap(out, operand.doc, 8, 8);
        }
        for rule in rules(def) {
            wrap(out, &rule, 4, 4);
        }
    }
    let attrs: Vec<_> = def.attrs.iter().chain(common_attrs(def)).collect();
    if !attrs.is_empty() {
        section(out, "\nATTRIBUTES");
        for attr in attrs {
            let need = match (attr.required, attr.default) {
                (true, _) => " (required)".to_owned(),
                (false, Some(default)) => format!(" (default: {default})"),
                (false, None) => String::new(),
            };
            let _ = writeln!(out, "    {}{need}", attr.name);
            wrap(out, &type_text(&attr.ty), 8, 8);
            wrap(out, attr.doc, 8, 8);
        }
    }
    if def.engines.is_some() {
        section(out, "\nENGINES");
        for &target in Target::ALL {
            let _ = writeln!(out, "    {target}  {}", engines_text(def, target));
        }
    }
    let traits: Vec<&str> = def.traits().map(|what| what.name()).collect();
    if !traits.is_empty() {
        section(out, "\nTRAITS");
        let _ = writeln!(out, "    {}", traits.join(", "));
    }
    if !doc.example.is_empty() {
        section(out, "\nEXAMPLE");
        for line in &doc.example {
            let _ = writeln!(out, "    {line}");
        }
    }
}

fn section(out: &mut String, name: &str) {
    out.push_str(name);
    out.push('\n');
}

fn amount(operand: &OperandDef) -> &'static str {
    match (operand.optional, operand.variadic) {
        (true, true) => ", any number",
        (true, false) => ", optional",
        (false, true) => ", one or more",
        (false, false) => "",
    }
}

/// "sbuf or psum; f32, bf16"
fn where_text(operand: &OperandDef) -> Option<String> {
    if operand.is_register() || operand.spaces.is_empty() {
        return None;
    }
    Some(format!(
        "{}; {}",
        spaces_text(operand.spaces),
        dtypes_text(operand.dtypes)
    ))
}

fn spaces_text(spaces: SpaceSet) -> String {
    let names: Vec<&str> = spaces.iter().map(|space| space.name()).collect();
    names.join(" or ")
}

fn dtypes_text(dtypes: DTypeSet) -> String {
    let names = |set: DTypeSet| {
        let names: Vec<&str> = set.iter().map(DType::name).collect();
        names.join(", ")
    };
    if dtypes == DTypeSet::ANY {
        "any dtype".to_owned()
    } else if dtypes == NUMERIC {
        "any float or integer dtype of up to 32 bits".to_owned()
    } else {
        names(dtypes)
    }
}

/// Rules over several operands.
fn rules(def: &OpDef) -> Vec<String> {
    let mut rules = Vec::new();
    if !def.same_shape.is_empty() {
        rules.push(format!(
            "Equal partitions and elements per partition: {}.",
            def.same_shape.join(", ")
        ));
    }
    if !def.same_dtype.is_empty() {
        rules.push(format!("Equal dtypes: {}.", def.same_dtype.join(", ")));
    }
    if !def.per_partition.is_empty() {
        rules.push(format!(
            "As a tile, one element for each partition written: {}.",
            def.per_partition.join(", ")
        ));
    }
    rules
}

fn engines_text(def: &OpDef, target: Target) -> String {
    let Some(engines) = def.engines else {
        return String::new();
    };
    let legal = engines.on(target);
    if legal.is_empty() {
        return "does not have it".to_owned();
    }
    let default = engines.default_on(target);
    let mut names = vec![format!("{default} (default)")];
    if legal.iter().count() == 1 {
        names[0] = default.name().to_owned();
    }
    names.extend(
        legal
            .iter()
            .filter(|&engine| engine != default)
            .map(|engine| engine.name().to_owned()),
    );
    names.join(", ")
}

/// Writes words in lines of at most [`WIDTH`] characters.
fn wrap(out: &mut String, text: &str, first: usize, rest: usize) {
    if text.is_empty() {
        return;
    }
    let mut line = " ".repeat(first);
    let mut is_fresh = true;
    for word in text.split_whitespace() {
        if !is_fresh && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(rest);
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    out.push_str(&line);
    out.push('\n');
}

pub(super) fn markdown(ops: &[OpCode], whole: bool) -> String {
    let mut out = String::new();
    if whole {
        out.push_str("# BIR operations\n\n| op | |\n|---|---|\n");
        for op in ops {
            let def = op.def();
            let _ = writeln!(out, "| [`{0}`](#{0}) | {1} |", def.name, def.summary);
        }
        out.push('\n');
    }
    for (i, op) in ops.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        markdown_page(&mut out, op.def());
    }
    out
}

fn markdown_page(out: &mut String, def: &OpDef) {
    let doc = Doc::of(def);
    let _ = writeln!(out, "## {}\n\n{}.\n", def.name, capital(def.summary));
    let _ = writeln!(out, "```\n{}\n```", synopsis(def));
    for paragraph in &doc.paragraphs {
        let _ = writeln!(out, "\n{paragraph}");
    }
    if !def.operands.is_empty() {
        out.push_str("\n| operand | | in | dtypes | |\n|---|---|---|---|---|\n");
        for operand in def.operands {
            let (spaces, dtypes) = if where_text(operand).is_some() {
                (spaces_text(operand.spaces), dtypes_text(operand.dtypes))
            } else {
                (String::new(), String::new())
            };
            let _ = writeln!(
                out,
                "| `{}` | {}{} | {spaces} | {dtypes} | {} |",
                operand.name,
                kind_text(operand),
                amount(operand),
                cell(operand.doc)
            );
        }
        for rule in rules(def) {
            let _ = writeln!(out, "\n{rule}");
        }
    }
    if !def.attrs.is_empty() {
        out.push_str("\n| attribute | type | default | |\n|---|---|---|---|\n");
        for attr in def.attrs {
            let default = if attr.required {
                "required"
            } else {
                attr.default.unwrap_or("absent")
            };
            let _ = writeln!(
                out,
                "| `{}` | {} | {default} | {} |",
                attr.name,
                cell(&type_text(&attr.ty)),
                cell(attr.doc)
            );
        }
    }
    if def.engines.is_some() {
        out.push('\n');
        for &target in Target::ALL {
            let _ = writeln!(out, "- {target}: {}", engines_text(def, target));
        }
    }
    let traits: Vec<&str> = def.traits().map(|what| what.name()).collect();
    if !traits.is_empty() {
        let _ = writeln!(out, "\nTraits: {}.", traits.join(", "));
    }
    if !doc.example.is_empty() {
        let _ = writeln!(out, "\n```mlir\n{}\n```", doc.example.join("\n"));
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
