//! A dialect that has nothing to do with BIR, to show that `ir` knows no instruction set: a register machine with labels,
//! `toy.const`, `toy.add`, `toy.store`, `toy.scope { … }`, `toy.jump ^a`, `toy.branch %c, ^a, ^b`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

use bir_dialect::ir::{
    AttrView, Block, ColumnKind, Comment, Context, Cursor, Def, Dict, Ir, NewOp, NewOperand, Op,
    OpName, OpTraits, Sign, SourceLoc, Type, TypeView, Value, Visit,
};

/// The dialect's own numbers.
const CONST: u16 = 7;
const ADD: u16 = 8;
const STORE: u16 = 9;
const SCOPE: u16 = 100;
const JUMP: u16 = 101;
const BRANCH: u16 = 102;

/// `!toy.word<bits>`
const WORD_TYPE: u16 = 40;
/// `#toy.color<r, g, b>`
const COLOR_ATTR: u16 = 3;

/// Roles of operands.
const LEFT: u8 = 0;
const RIGHT: u8 = 1;

struct Toy {
    ir: Ir,
    names: Names,
    word: Type,
}

#[derive(Clone, Copy)]
struct Names {
    constant: OpName,
    add: OpName,
    store: OpName,
    scope: OpName,
    jump: OpName,
    branch: OpName,
}

impl Toy {
    fn new() -> Toy {
        let mut ctx = Context::new();
        let plain = OpTraits::default();
        let isolated = OpTraits {
            isolated: true,
            ..plain
        };
        let terminator = OpTraits {
            terminator: true,
            ..plain
        };
        let names = Names {
            constant: ctx.register_op("toy.const", CONST, plain),
            add: ctx.register_op("toy.add", ADD, plain),
            store: ctx.register_op("toy.store", STORE, plain),
            scope: ctx.register_op("toy.scope", SCOPE, isolated),
            jump: ctx.register_op("toy.jump", JUMP, terminator),
            branch: ctx.register_op("toy.branch", BRANCH, terminator),
        };
        let word = ctx.dialect_type(WORD_TYPE, &[24]);
        Toy {
            ir: Ir::new(ctx),
            names,
            word,
        }
    }

    fn constant(&mut self, at: Cursor, value: i64) -> Op {
        let attr = self.ir.ctx.int(value);
        let key = self.ir.ctx.str("value");
        let dict = self.ir.ctx.dict(&[(key, attr)]);
        let results = [self.word];
        self.ir.insert(
            at,
            NewOp {
                results: &results,
                dict,
                ..NewOp::new(self.names.constant)
            },
        )
    }

    fn add(&mut self, at: Cursor, left: Value, right: Value) -> Op {
        let wide = self.ir.ctx.annot(&[2, 1]);
        let operands = [
            NewOperand {
                value: left,
                role: LEFT,
                annot: wide,
            },
            NewOperand {
                value: right,
                role: RIGHT,
                annot: bir_dialect::ir::Annot::UNIT,
            },
        ];
        let results = [self.word];
        self.ir.insert(
            at,
            NewOp {
                operands: &operands,
                results: &results,
                ..NewOp::new(self.names.add)
            },
        )
    }

    fn store(&mut self, at: Cursor, value: Value) -> Op {
        let operands = [use_of(value)];
        self.ir.insert(
            at,
            NewOp {
                operands: &operands,
                ..NewOp::new(self.names.store)
            },
        )
    }

    fn scope(&mut self, at: Cursor) -> (Op, Block) {
        let op = self.ir.insert(
            at,
            NewOp {
                regions: 1,
                ..NewOp::new(self.names.scope)
            },
        );
        let region = self.ir.regions(op)[0];
        (op, self.ir.append_block(region))
    }

    fn value(&self, op: Op) -> Value {
        self.ir.result(op).expect("a result")
    }
}

fn use_of(value: Value) -> NewOperand {
    NewOperand {
        value,
        role: 0,
        annot: bir_dialect::ir::Annot::UNIT,
    }
}

fn users(ir: &Ir, value: Value) -> Vec<Op> {
    let mut users: Vec<Op> = ir
        .uses(value)
        .map(|operand| ir.operand(operand).owner)
        .collect();
    users.sort();
    users
}

#[test]
fn registered_names_have_codes_and_traits_and_others_have_none() {
    let mut toy = Toy::new();
    let stranger = toy.ir.ctx.op_name("other.thing");
    let info = toy.ir.ctx.op_info(stranger);
    assert_eq!(info.code, None);
    assert_eq!(info.traits, OpTraits::default());
    let info = *toy.ir.ctx.op_info(toy.names.branch);
    assert_eq!(toy.ir.ctx.text(info.name), "toy.branch");
    assert_eq!(info.code, Some(BRANCH));
    assert!(info.traits.terminator && !info.traits.isolated);
    // Registering late keeps the handle that early uses of the name got.
    let late = toy
        .ir
        .ctx
        .register_op("other.thing", 1, OpTraits::default());
    assert_eq!(late, stranger);
    assert_eq!(toy.ir.ctx.op_info(stranger).code, Some(1));
}

#[test]
fn types_attributes_and_annotations_are_the_dialects_own_words() {
    let mut toy = Toy::new();
    let ctx = &mut toy.ir.ctx;
    assert_eq!(ctx.dialect_type(WORD_TYPE, &[24]), toy.word);
    assert_ne!(ctx.dialect_type(WORD_TYPE, &[25]), toy.word);
    assert_ne!(ctx.dialect_type(WORD_TYPE + 1, &[24]), toy.word);
    match ctx.ty(toy.word) {
        TypeView::Dialect { kind, words } => assert_eq!((kind, words), (WORD_TYPE, &[24][..])),
        other => panic!("{other:?}"),
    }
    let red = ctx.dialect_attr(COLOR_ATTR, &[255, 0, 0]);
    match ctx.attr(red) {
        AttrView::Dialect { kind, words } => {
            assert_eq!((kind, words), (COLOR_ATTR, &[255, 0, 0][..]));
        }
        other => panic!("{other:?}"),
    }
    // No payload is told from an empty annotation, a long one survives.
    let long: Vec<u64> = (0..1000).collect();
    let annot = ctx.annot(&long);
    assert_eq!(ctx.annot(&long), annot);
    assert_eq!(ctx.annot_words(annot), &long[..]);
    assert_eq!(ctx.annot(&[]), bir_dialect::ir::Annot::UNIT);
}

#[test]
fn attributes_of_every_kind_read_back() {
    let mut toy = Toy::new();
    let ctx = &mut toy.ir.ctx;
    let byte = ctx.int_type(8, Sign::Unsigned);
    let half = ctx.float_type("f16");
    let tensor = ctx.tensor_type(&[2, 3], byte);
    let name = ctx.str("name");
    let hex = ctx.str("00FF");
    let (one, two) = (ctx.int(1), ctx.typed_int(-2, byte));
    let array = ctx.array(&[one, two, one]);
    let inner = ctx.dict(&[(name, array)]);
    let cases = [
        ctx.unit(),
        ctx.bool_attr(true),
        ctx.bool_attr(false),
        one,
        two,
        ctx.float(0x3c00, half),
        ctx.string("a \"quoted\" text"),
        ctx.symbol(name),
        array,
        ctx.dict_attr(inner),
        ctx.type_attr(tensor),
        ctx.dense(tensor, hex),
        ctx.dialect_attr(COLOR_ATTR, &[]),
        ctx.opaque_attr("#other.thing<1>"),
    ];
    for (i, a) in cases.iter().enumerate() {
        for (j, b) in cases.iter().enumerate() {
            assert_eq!(a == b, i == j, "{:?} and {:?}", ctx.attr(*a), ctx.attr(*b));
        }
    }
    assert_eq!(ctx.attr_int(two), Some(-2));
    assert_eq!(ctx.attr_str(cases[6]), Some("a \"quoted\" text"));
    match ctx.attr(array) {
        AttrView::Array(list) => {
            assert_eq!(list.iter().collect::<Vec<_>>(), [one, two, one]);
            assert_eq!((list.len(), list.get(1), list.get(3)), (3, Some(two), None));
        }
        other => panic!("{other:?}"),
    }
    match ctx.ty(tensor) {
        TypeView::Tensor { dims, elem } => assert_eq!((dims, elem), (&[2, 3][..], byte)),
        other => panic!("{other:?}"),
    }
    match ctx.ty(byte) {
        TypeView::Int { width, sign } => assert_eq!((width, sign), (8, Sign::Unsigned)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn dictionaries_are_sets_of_names_and_the_last_of_a_name_counts() {
    let mut toy = Toy::new();
    let ctx = &mut toy.ir.ctx;
    let (a, b) = (ctx.str("a"), ctx.str("b"));
    let (one, two) = (ctx.int(1), ctx.int(2));
    let dict = ctx.dict(&[(a, one), (b, two)]);
    assert_eq!(ctx.dict(&[(b, two), (a, one)]), dict);
    assert_eq!(ctx.dict(&[(a, two), (b, two), (a, one)]), dict);
    assert_eq!(ctx.dict_find(dict, "b"), Some(two));
    assert_eq!(ctx.dict_find(dict, "c"), None);
    let without = ctx.dict_with(dict, a, None);
    assert_eq!(ctx.dict_entries(without).collect::<Vec<_>>(), [(b, two)]);
    assert_eq!(ctx.dict_with(without, a, Some(one)), dict);
    assert_eq!(ctx.dict_with(without, b, None), Dict::EMPTY);
}

#[test]
fn building_moving_replacing_and_erasing_keep_use_lists_right() {
    let mut toy = Toy::new();
    let block = toy.ir.root_block();
    let one = toy.constant(Cursor::End(block), 1);
    let two = toy.constant(Cursor::End(block), 2);
    let (v1, v2) = (toy.value(one), toy.value(two));
    let sum = toy.add(Cursor::End(block), v1, v1);
    let store = {
        let value = toy.value(sum);
        toy.store(Cursor::End(block), value)
    };
    assert_eq!(users(&toy.ir, v1), [sum, sum]);
    assert!(toy.ir.first_use(v2).is_none());
    assert_eq!(toy.ir.def(v2), Def::Result { op: two, index: 0 });

    // One operand of two.
    let right = toy.ir.operand_ids(sum).nth(1).expect("two operands");
    toy.ir.set_operand(right, v2);
    assert_eq!(users(&toy.ir, v1), [sum]);
    assert_eq!(users(&toy.ir, v2), [sum]);
    assert_eq!(toy.ir.operand(right).role, RIGHT);
    let left = toy.ir.operands(sum)[0];
    assert_eq!(toy.ir.ctx.annot_words(left.annot), [2, 1]);

    // What is used stays.
    assert!(!toy.ir.erase(sum));
    assert!(!toy.ir.is_erased(sum));

    // `replace_op` hands over uses, name, location and comments.
    toy.ir.name_value(v1, "unused");
    let old = toy.value(sum);
    let name = toy.ir.name_value(old, "sum");
    let file = toy.ir.ctx.str("toy.py");
    let loc = toy.ir.ctx.loc(SourceLoc {
        file,
        line: 3,
        col: 9,
    });
    toy.ir.set_loc(sum, Some(loc));
    toy.ir
        .trivia_mut(sum)
        .before
        .push(Comment::Line("// why".into()));
    let new = toy.add(Cursor::Before(sum), v2, v2);
    assert!(toy.ir.replace_op(sum, new));
    assert!(toy.ir.is_erased(sum));
    let value = toy.value(new);
    assert_eq!(users(&toy.ir, value), [store]);
    assert!(toy.ir.first_use(v1).is_none());
    assert_eq!(toy.ir.value_name(value), Some(name));
    assert_eq!(toy.ir.loc(new), Some(loc));
    assert_eq!(toy.ir.ctx.source_loc(loc).line, 3);
    let trivia = toy.ir.trivia(new).expect("comments");
    assert_eq!(trivia.before, [Comment::Line("// why".into())]);

    // A replacement without the results does nothing.
    let poor = toy.store(Cursor::End(block), v2);
    assert!(!toy.ir.replace_op(new, poor));
    assert_eq!(users(&toy.ir, value), [store]);

    // Moving keeps uses and changes the order only.
    assert!(toy.ir.comes_before(one, two));
    toy.ir.move_op(one, Cursor::After(store));
    toy.ir.move_op(one, Cursor::After(one));
    assert!(toy.ir.comes_before(store, one));
    assert_eq!(
        toy.ir.block_ops(block).collect::<Vec<_>>(),
        [two, new, store, one, poor]
    );

    // Erasing gives the uses back.
    assert!(toy.ir.erase(store) && toy.ir.erase(new) && toy.ir.erase(poor));
    assert!(toy.ir.first_use(v2).is_none());
    assert!(toy.ir.erase(two));
    assert_eq!(toy.ir.block_ops(block).collect::<Vec<_>>(), [one]);
}

#[test]
fn erasing_a_scope_erases_what_is_in_it_uses_inside_included() {
    let mut toy = Toy::new();
    let root = toy.ir.root_block();
    let outer = toy.constant(Cursor::End(root), 0);
    let outer_value = toy.value(outer);
    let (scope, body) = toy.scope(Cursor::End(root));
    let inner = toy.constant(Cursor::End(body), 1);
    let value = toy.value(inner);
    let sum = toy.add(Cursor::End(body), value, outer_value);
    assert_eq!(toy.ir.parent(sum), Some(scope));
    assert_eq!(toy.ir.block_parent(body), Some(scope));
    assert!(!toy.ir.erase(inner), "used by its neighbour");
    assert!(toy.ir.erase(scope));
    assert!(toy.ir.is_erased(inner) && toy.ir.is_erased(sum));
    assert!(toy.ir.first_use(outer_value).is_none());
    assert!(toy.ir.erase(outer));
}

#[test]
fn successors_labels_and_block_arguments() {
    let mut toy = Toy::new();
    let root = toy.ir.root_block();
    let (scope, entry) = toy.scope(Cursor::End(root));
    let region = toy.ir.regions(scope)[0];
    let (yes, no) = (toy.ir.append_block(region), toy.ir.append_block(region));
    let word = toy.word;
    toy.ir.set_args(yes, &[word, word]);
    let args: Vec<Value> = toy.ir.args(yes).collect();
    assert_eq!(args.len(), 2);
    assert_eq!(
        toy.ir.def(args[1]),
        Def::Arg {
            block: yes,
            index: 1
        }
    );
    assert_eq!(toy.ir.def_op(args[1]), None);
    let condition = toy.constant(Cursor::End(entry), 1);
    let value = toy.value(condition);
    let branch = toy.ir.insert(
        Cursor::End(entry),
        NewOp {
            operands: &[use_of(value)],
            successors: &[yes, no],
            ..NewOp::new(toy.names.branch)
        },
    );
    assert_eq!(toy.ir.terminator(entry), Some(branch));
    assert_eq!(toy.ir.terminator(yes), None);
    assert_eq!(toy.ir.successors(branch), [yes, no]);
    toy.ir.set_successors(branch, &[no]);
    assert_eq!(toy.ir.successors(branch), [no]);
    let jump = toy.ir.insert(Cursor::End(no), NewOp::new(toy.names.jump));
    assert!(toy.ir.successors(jump).is_empty());
    toy.ir.set_successors(jump, &[yes]);
    assert_eq!(toy.ir.successors(jump), [yes]);

    let label = toy.ir.ctx.str("exit");
    toy.ir.set_label(no, Some(label));
    assert_eq!(toy.ir.label(no), Some(label));
    assert_eq!(toy.ir.label(yes), None);

    // Blocks in order, moved and removed.
    let order = |ir: &Ir| ir.blocks(region).collect::<Vec<_>>();
    assert_eq!(order(&toy.ir), [entry, yes, no]);
    toy.ir.move_block_to_end(entry, region);
    assert_eq!(order(&toy.ir), [yes, no, entry]);
    assert_eq!(toy.ir.prev_block(entry), Some(no));
    assert!(!toy.ir.remove_empty_block(entry), "holds operations");
    let user = toy.store(Cursor::End(no), args[0]);
    assert!(!toy.ir.remove_empty_block(yes), "an argument is used");
    assert!(toy.ir.erase(user) && toy.ir.remove_empty_block(yes));
    assert_eq!(order(&toy.ir), [no, entry]);
}

#[test]
fn columns_belong_to_the_dialect_and_follow_clones() {
    let mut toy = Toy::new();
    let block = toy.ir.root_block();
    let cost = toy.ir.column("cost", ColumnKind::Int);
    let path = toy.ir.column("path", ColumnKind::Words);
    assert_eq!(toy.ir.column("cost", ColumnKind::Int), cost);
    let one = toy.constant(Cursor::End(block), 1);
    let two = toy.constant(Cursor::End(block), 2);
    toy.ir.set_int_cell(cost, one, Some(17));
    toy.ir.set_words_cell(path, one, Some(&[u64::MAX, 0]));
    let copy = toy.ir.clone_op(one, |value| value);
    assert_eq!(toy.ir.block(copy), None);
    toy.ir.place(copy, Cursor::Start(block));
    assert_eq!(toy.ir.int_cell(cost, copy), Some(17));
    assert_eq!(toy.ir.words_cell(path, copy), Some(&[u64::MAX, 0][..]));
    assert_eq!(toy.ir.int_cell(cost, two), None);
    assert_eq!(toy.ir.words_cell(path, two), None);
    toy.ir.set_words_cell(path, copy, Some(&[]));
    assert_eq!(toy.ir.words_cell(path, copy), Some(&[][..]));
    assert_eq!(toy.ir.words_cell(path, one), Some(&[u64::MAX, 0][..]));
    toy.ir.set_int_cell(cost, copy, None);
    assert_eq!(toy.ir.int_cell(cost, copy), None);
    assert!(toy.ir.erase(one));
    assert_eq!(toy.ir.int_cell(cost, one), None);
    assert_eq!(toy.ir.words_cell(path, one), None);
}

#[test]
fn walks_enter_and_leave_in_text_order_and_can_skip() {
    let mut toy = Toy::new();
    let root = toy.ir.root_block();
    let first = toy.constant(Cursor::End(root), 1);
    let (scope, body) = toy.scope(Cursor::End(root));
    let inner = toy.constant(Cursor::End(body), 2);
    // An empty block and an empty region are passed over.
    let region = toy.ir.regions(scope)[0];
    toy.ir.append_block(region);
    let late = toy.ir.append_block(region);
    let last_inner = toy.constant(Cursor::End(late), 3);
    toy.ir.add_region(scope);
    let (empty, _) = toy.scope(Cursor::End(root));
    let visits: Vec<Visit> = toy.ir.walk().collect();
    use Visit::{Enter, Leave};
    assert_eq!(
        visits,
        [
            Enter(first),
            Enter(scope),
            Enter(inner),
            Enter(last_inner),
            Leave(scope),
            Enter(empty),
            Leave(empty)
        ]
    );
    let inside: Vec<Op> = toy.ir.walk_op(scope).collect();
    assert_eq!(inside, [scope, inner, last_inner]);
    let mut walk = toy.ir.walk();
    let mut seen = Vec::new();
    while let Some(visit) = walk.next() {
        seen.push(visit);
        if visit == Enter(scope) {
            walk.skip_regions(scope);
        }
    }
    assert_eq!(
        seen,
        [
            Enter(first),
            Enter(scope),
            Leave(scope),
            Enter(empty),
            Leave(empty)
        ]
    );
    assert_eq!(
        toy.ir.walk_visits(first).collect::<Vec<_>>(),
        [Enter(first)]
    );
}

#[test]
fn ten_thousand_nested_regions_are_walked_and_erased_without_recursion() {
    const DEPTH: usize = 10_000;
    let mut toy = Toy::new();
    let mut block = toy.ir.root_block();
    let mut scopes = Vec::new();
    for _ in 0..DEPTH {
        let (scope, body) = toy.scope(Cursor::End(block));
        scopes.push(scope);
        block = body;
    }
    let leaf = toy.constant(Cursor::End(block), 1);
    let mut wanted: Vec<Visit> = scopes.iter().map(|&op| Visit::Enter(op)).collect();
    wanted.push(Visit::Enter(leaf));
    wanted.extend(scopes.iter().rev().map(|&op| Visit::Leave(op)));
    assert_eq!(toy.ir.walk().collect::<Vec<_>>(), wanted);
    assert!(toy.ir.erase(scopes[0]));
    assert!(toy.ir.is_erased(leaf));
    assert_eq!(toy.ir.walk().count(), 0);
}

/// "Comes before" agrees with the links of the block.
fn assert_ordered(ir: &Ir, block: Block) {
    let ops: Vec<Op> = ir.block_ops(block).collect();
    for pair in ops.windows(2) {
        assert!(ir.comes_before(pair[0], pair[1]));
        assert!(!ir.comes_before(pair[1], pair[0]));
    }
}

/// A scheme that relabels whole blocks would need minutes here.
#[test]
fn order_tags_rise_wherever_a_hundred_thousand_insertions_fall() {
    const COUNT: i64 = 100_000;
    type Place = fn(Block, &[Op], i64) -> Cursor;
    let places: [(&str, Place); 6] = [
        ("at the end", |block, _, _| Cursor::End(block)),
        ("at the start", |block, _, _| Cursor::Start(block)),
        ("before the last", |_, ops, _| Cursor::Before(ops[0])),
        ("behind the first", |_, ops, _| Cursor::After(ops[0])),
        ("behind the newest", |_, ops, _| {
            Cursor::After(ops[ops.len() - 1])
        }),
        ("on both sides of the newest", |_, ops, i| {
            let newest = ops[ops.len() - 1];
            if i % 2 == 0 {
                Cursor::Before(newest)
            } else {
                Cursor::After(newest)
            }
        }),
    ];
    for (name, place) in places {
        let mut toy = Toy::new();
        let block = toy.ir.root_block();
        let mut ops = vec![toy.constant(Cursor::End(block), 0)];
        toy.constant(Cursor::Start(block), 0);
        toy.constant(Cursor::End(block), 0);
        for i in 0..COUNT {
            let cursor = place(block, &ops, i);
            ops.push(toy.ir.insert(cursor, NewOp::new(toy.names.store)));
        }
        assert_eq!(
            toy.ir.block_ops(block).count(),
            COUNT as usize + 3,
            "{name}"
        );
        assert_ordered(&toy.ir, block);
    }
}

#[test]
fn order_tags_survive_a_full_block_that_is_emptied_and_refilled() {
    let mut toy = Toy::new();
    let block = toy.ir.root_block();
    for _ in 0..5 {
        let ops: Vec<Op> = (0..20_000)
            .map(|i| toy.constant(Cursor::Start(block), i))
            .collect();
        for &op in &ops[..10_000] {
            toy.ir.move_op(op, Cursor::End(block));
        }
        assert_ordered(&toy.ir, block);
        for op in ops {
            assert!(toy.ir.erase(op));
        }
    }
    assert!(toy.ir.first_op(block).is_none());
}
