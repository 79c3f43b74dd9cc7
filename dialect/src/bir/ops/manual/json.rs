//! The manual for tools.
//!
//! `{"format": 1, "ops": [op …]}`, and for the whole table also `"attrs"` (those every instruction
//! may carry), `"enums"`, `"dtypes"`, `"spaces"`, `"targets"` and `"engines"`.

use serde_json::{Map, Value, json};

use super::super::def::{AttrDef, AttrType, ImmType, Kind, OpDef, OperandDef, Syntax};
use super::super::enums::ALL_ENUMS;
use super::super::table::{COMMON_ATTRS, OpCode};
use super::{Doc, synopsis};
use crate::bir::num::DType;
use crate::bir::space::{Engine, Space, Target};

pub(super) fn json(ops: &[OpCode], whole: bool) -> String {
    let mut root = Map::new();
    root.insert("format".to_owned(), json!(1));
    let ops: Vec<Value> = ops.iter().map(|op| op_value(op.def())).collect();
    root.insert("ops".to_owned(), Value::Array(ops));
    if whole {
        let attrs: Vec<Value> = COMMON_ATTRS.iter().map(attr_value).collect();
        root.insert("attrs".to_owned(), Value::Array(attrs));
        let enums: Map<String, Value> = ALL_ENUMS
            .iter()
            .map(|def| (def.name.to_owned(), json!(def.words)))
            .collect();
        root.insert("enums".to_owned(), Value::Object(enums));
        let dtypes: Vec<Value> = DType::ALL
            .iter()
            .map(|dtype| json!({"name": dtype.name(), "bytes": dtype.size_bytes()}))
            .collect();
        root.insert("dtypes".to_owned(), Value::Array(dtypes));
        let names = |names: Vec<&str>| json!(names);
        root.insert(
            "spaces".to_owned(),
            names(Space::ALL.iter().map(|s| s.name()).collect()),
        );
        root.insert(
            "engines".to_owned(),
            names(Engine::ALL.iter().map(|e| e.name()).collect()),
        );
        let targets: Vec<Value> = Target::ALL
            .iter()
            .map(|target| {
                json!({
                    "name": target.name(),
                    "sbuf_bytes": target.sbuf_bytes(),
                    "psum_bytes": target.psum_bytes(),
                    "dram_bytes": target.dram_bytes(),
                })
            })
            .collect();
        root.insert("targets".to_owned(), Value::Array(targets));
    }
    let mut out = format!("{:#}", Value::Object(root));
    out.push('\n');
    out
}

fn op_value(def: &OpDef) -> Value {
    let doc = Doc::of(def);
    let operands: Vec<Value> = def.operands.iter().map(operand_value).collect();
    let attrs: Vec<Value> = def.attrs.iter().map(attr_value).collect();
    let traits: Vec<&str> = def.traits().map(|what| what.name()).collect();
    json!({
        "name": def.name,
        "summary": def.summary,
        "doc": doc.paragraphs,
        "example": doc.example.join("\n"),
        "synopsis": synopsis(def),
        "syntax": syntax_name(def.syntax),
        "words": def.words,
        "operands": operands,
        "attrs": attrs,
        "result": def.result,
        "engines": engines_value(def),
        "traits": traits,
        "same_shape": def.same_shape,
        "same_dtype": def.same_dtype,
        "per_partition": def.per_partition,
    })
}

fn engines_value(def: &OpDef) -> Value {
    let Some(engines) = def.engines else {
        return Value::Null;
    };
    let by_target: Map<String, Value> = Target::ALL
        .iter()
        .map(|&target| {
            let legal = engines.on(target);
            let value = if legal.is_empty() {
                Value::Null
            } else {
                let names: Vec<&str> = legal.iter().map(|engine| engine.name()).collect();
                json!({"default": engines.default_on(target).name(), "legal": names})
            };
            (target.name().to_owned(), value)
        })
        .collect();
    Value::Object(by_target)
}

fn operand_value(operand: &OperandDef) -> Value {
    let (kind, literal) = match operand.kind {
        Kind::Out => ("out", None),
        Kind::InOut => ("inout", None),
        Kind::In => ("in", None),
        Kind::Imm(ty) if operand.spaces.is_empty() => ("literal", Some(imm_name(ty))),
        Kind::Imm(ty) => ("imm", Some(imm_name(ty))),
        Kind::RegIn => ("reg_in", None),
        Kind::RegOut => ("reg_out", None),
        Kind::RegImm => ("reg_imm", Some("int")),
    };
    let spaces: Vec<&str> = operand.spaces.iter().map(|space| space.name()).collect();
    let dtypes: Vec<&str> = operand.dtypes.iter().map(DType::name).collect();
    json!({
        "name": operand.name,
        "kind": kind,
        "literal": literal,
        "optional": operand.optional,
        "variadic": operand.variadic,
        "keyword": operand.keyword,
        "words": operand.words,
        "spaces": spaces,
        "dtypes": dtypes,
        "any_partitions": operand.any_partitions,
        "doc": operand.doc,
    })
}

fn imm_name(ty: ImmType) -> &'static str {
    match ty {
        ImmType::F32 => "f32",
        ImmType::Dst => "dst",
        ImmType::Alu => "alu",
    }
}

fn syntax_name(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::Instruction => "instruction",
        Syntax::Alloc => "alloc",
        Syntax::Module => "module",
        Syntax::Func => "func",
        Syntax::Loop => "loop",
        Syntax::While => "while",
        Syntax::Br => "br",
        Syntax::CondBr => "cond_br",
        Syntax::Depset => "depset",
        Syntax::Implicit => "implicit",
    }
}

fn attr_value(attr: &AttrDef) -> Value {
    json!({
        "name": attr.name,
        "type": attr_type(&attr.ty),
        "required": attr.required,
        "default": attr.default,
        "doc": attr.doc,
    })
}

fn attr_type(ty: &AttrType) -> Value {
    match ty {
        AttrType::Flag => json!({"kind": "flag"}),
        AttrType::Int { min, max } => json!({"kind": "int", "min": min, "max": max}),
        AttrType::Number(dtype) => json!({"kind": "number", "dtype": dtype.name()}),
        AttrType::Enum(def) => json!({"kind": "enum", "enum": def.name, "words": def.words}),
        AttrType::IntList { min, max } => json!({"kind": "int_list", "min": min, "max": max}),
        AttrType::Pattern => json!({"kind": "pattern"}),
        AttrType::Str => json!({"kind": "string"}),
        AttrType::Symbol => json!({"kind": "symbol"}),
        AttrType::DType => json!({"kind": "dtype"}),
        AttrType::Accumulate => json!({"kind": "accumulate"}),
        AttrType::Waits => json!({"kind": "waits"}),
        AttrType::Signals => json!({"kind": "signals"}),
        AttrType::Placement => json!({"kind": "placement"}),
        AttrType::Data => json!({"kind": "data"}),
        AttrType::RankGroups => json!({"kind": "rank_groups"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table_is_json_and_names_every_op_and_enum() {
        let text = json(OpCode::ALL, true);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["ops"].as_array().unwrap().len(), OpCode::ALL.len());
        for op in value["ops"].as_array().unwrap() {
            for attr in op["attrs"].as_array().unwrap() {
                if attr["type"]["kind"] == "enum" {
                    let name = attr["type"]["enum"].as_str().unwrap();
                    assert!(value["enums"].get(name).is_some(), "{name}");
                }
            }
        }
    }
}
