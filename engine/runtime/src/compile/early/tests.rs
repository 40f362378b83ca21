use super::run;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder, MemFlagsData, Opcode, Signature, TrapCode, Value,
    ValueDef, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::loop_analysis::LoopAnalysis;
use cranelift_codegen::verify_function;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use proptest::prelude::*;
use std::collections::HashSet;

/// A function of two addresses, which `body` makes.
fn function(body: impl FnOnce(&mut FunctionBuilder<'_>, Value, Value)) -> Function {
    let mut func = Function::new();
    func.signature = Signature::new(CallConv::Tail);
    func.signature.params = vec![AbiParam::new(types::I64); 2];
    func.signature.returns = vec![AbiParam::new(types::I64)];
    let mut context = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut func, &mut context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let params = b.block_params(entry).to_vec();
    body(&mut b, params[0], params[1]);
    b.seal_all_blocks();
    b.finalize(
        crate::compile::isa::isa(crate::compile::isa::Level::Baseline)
            .unwrap()
            .frontend_config(),
    );
    func
}

fn moved(mut func: Function) -> Function {
    let cfg = ControlFlowGraph::with_function(&func);
    let domtree = DominatorTree::with_function(&func, &cfg);
    let mut loops = LoopAnalysis::new();
    loops.compute(&func, &cfg, &domtree);
    run(&mut func, &cfg, &domtree, &loops);
    let flags = cranelift_codegen::settings::Flags::new(cranelift_codegen::settings::builder());
    if let Err(e) = verify_function(&func, &flags) {
        panic!("{e}\n{}", func.display());
    }
    func
}

fn load(b: &mut FunctionBuilder<'_>, from: Value, offset: i32) -> Value {
    b.ins().load(types::I64, MemFlagsData::new(), from, offset)
}

/// Goes on in a new block if the value is not zero. The other way is cold, and traps.
fn check(b: &mut FunctionBuilder<'_>, value: Value) {
    let (next, cold) = (b.create_block(), b.create_block());
    b.set_cold_block(cold);
    b.ins().brif(value, next, &[], cold, &[]);
    b.switch_to_block(cold);
    b.ins().trap(TrapCode::unwrap_user(1));
    b.switch_to_block(next);
}

/// The opcodes of each block, in order.
fn opcodes(func: &Function) -> Vec<Vec<Opcode>> {
    let layout = &func.layout;
    let of = |block: Block| {
        layout
            .block_insts(block)
            .map(|i| func.dfg.insts[i].opcode())
    };
    layout.blocks().map(|block| of(block).collect()).collect()
}

#[test]
fn a_difference_is_computed_where_its_second_number_is_loaded_and_not_behind_checks() {
    let func = moved(function(|b, x, y| {
        let one = load(b, x, 0);
        let two = load(b, y, 0);
        check(b, x);
        check(b, y);
        let difference = b.ins().isub(one, two);
        let square = b.ins().imul(difference, difference);
        b.ins().return_(&[square]);
    }));
    let blocks = opcodes(&func);
    let first = [Opcode::Load, Opcode::Load, Opcode::Isub, Opcode::Brif];
    assert_eq!(blocks[0], first, "{}", func.display());
    // The square ends one value and makes one. It may be wherever it is.
    assert!(blocks.iter().flatten().any(|&o| o == Opcode::Imul));
}

#[test]
fn what_ends_one_value_goes_along_with_what_ends_two_and_so_do_constants() {
    let func = moved(function(|b, x, y| {
        let one = load(b, x, 0);
        check(b, x);
        let two = load(b, y, 0);
        check(b, y);
        let seven = b.ins().iconst(types::I64, 7);
        let more = b.ins().imul(one, seven);
        let less = b.ins().bnot(two);
        let sum = b.ins().iadd(more, less);
        b.ins().return_(&[sum]);
    }));
    let blocks = opcodes(&func);
    let first = [Opcode::Load, Opcode::Iconst, Opcode::Imul, Opcode::Brif];
    assert_eq!(blocks[0], first, "{}", func.display());
    let second = [Opcode::Load, Opcode::Bnot, Opcode::Iadd, Opcode::Brif];
    assert!(blocks.contains(&second.to_vec()), "{}", func.display());
}

#[test]
fn what_is_used_elsewhere_too_stays() {
    let build = || {
        function(|b, x, y| {
            let one = load(b, x, 0);
            let two = load(b, y, 0);
            check(b, x);
            let sum = b.ins().iadd(one, two);
            let more = b.ins().bxor(sum, one);
            b.ins().return_(&[more]);
        })
    };
    assert_eq!(opcodes(&moved(build())), opcodes(&build()));
}

#[test]
fn what_is_computed_on_one_of_two_ways_is_not_computed_on_the_other() {
    let build = || {
        function(|b, x, y| {
            let one = load(b, x, 0);
            let two = load(b, y, 0);
            let (way, other) = (b.create_block(), b.create_block());
            b.ins().brif(x, way, &[], other, &[]);
            b.switch_to_block(way);
            let sum = b.ins().iadd(one, two);
            b.ins().return_(&[sum]);
            b.switch_to_block(other);
            b.ins().return_(&[y]);
        })
    };
    assert_eq!(opcodes(&moved(build())), opcodes(&build()));
}

#[test]
fn what_is_computed_behind_both_ways_goes_up_before_them() {
    let func = moved(function(|b, x, y| {
        let one = load(b, x, 0);
        let two = load(b, y, 0);
        let (way, next) = (b.create_block(), b.create_block());
        b.ins().brif(x, way, &[], next, &[]);
        b.switch_to_block(way);
        b.ins().store(MemFlagsData::new(), x, y, 0);
        b.ins().jump(next, &[]);
        b.switch_to_block(next);
        let sum = b.ins().iadd(one, two);
        b.ins().return_(&[sum]);
    }));
    assert!(opcodes(&func)[0].contains(&Opcode::Iadd));
}

#[test]
fn what_is_computed_behind_a_loop_is_not_computed_in_it() {
    let build = || {
        function(|b, x, y| {
            let (body, more, next) = (b.create_block(), b.create_block(), b.create_block());
            b.ins().jump(body, &[]);
            b.switch_to_block(body);
            let one = load(b, x, 0);
            let two = load(b, y, 0);
            // The loop ends in two places, so that both ways meet after it.
            b.ins().brif(x, more, &[], next, &[]);
            b.switch_to_block(more);
            b.ins().brif(y, body, &[], next, &[]);
            b.switch_to_block(next);
            let sum = b.ins().iadd(one, two);
            b.ins().return_(&[sum]);
        })
    };
    assert_eq!(opcodes(&moved(build())), opcodes(&build()));
}

const BLOCKS: usize = 5;

/// The steps of a block, the block that it goes to, and its terminator if that is not the next: 0 nothing, 1 a check, 2 another block.
type Random = Vec<(Vec<(u8, usize, usize)>, usize, u8)>;

fn random() -> impl Strategy<Value = Random> {
    let step = (0u8..6, 0usize..64, 0usize..64);
    let block = (prop::collection::vec(step, 0..10), 0..BLOCKS, 0u8..3);
    prop::collection::vec(block, BLOCKS)
}

/// Blocks one after the other, some of which go back or ahead. Each uses values of the blocks that dominate it: here, of all straight ones.
fn build(blocks: &Random) -> Function {
    function(|b, x, y| {
        let mut values = vec![x, y];
        let all: Vec<Block> = blocks.iter().map(|_| b.create_block()).collect();
        let last = b.create_block();
        b.ins().jump(all[0], &[]);
        for (at, ((steps, to, how), &block)) in blocks.iter().zip(&all).enumerate() {
            b.switch_to_block(block);
            for &(kind, one, two) in steps {
                let (p, q) = (values[one % values.len()], values[two % values.len()]);
                let value = match kind {
                    0 => load(b, p, 8),
                    1 => b.ins().isub(p, q),
                    2 => b.ins().imul(p, q),
                    3 => b.ins().bnot(p),
                    4 => {
                        let seven = b.ins().iconst(types::I64, 7);
                        b.ins().iadd(p, seven)
                    }
                    _ => {
                        let less = b.ins().icmp(IntCC::SignedLessThan, p, q);
                        b.ins().uextend(types::I64, less)
                    }
                };
                values.push(value);
            }
            let next = all.get(at + 1).copied().unwrap_or(last);
            let on = values[*to % values.len()];
            match how {
                0 => {
                    b.ins().jump(next, &[]);
                }
                1 => {
                    check(b, on);
                    b.ins().jump(next, &[]);
                }
                // Back only, so that later instructions are dominated still.
                _ => {
                    b.ins().brif(on, all[*to % (at + 1)], &[], next, &[]);
                }
            }
        }
        b.switch_to_block(last);
        let value = values[values.len() - 1];
        b.ins().return_(&[value]);
    })
}

/// The values that live where blocks begin. Slow, and obvious.
fn living(func: &Function) -> Vec<(Block, usize)> {
    let cfg = ControlFlowGraph::with_function(func);
    let mut living: Vec<(Block, HashSet<Value>)> =
        func.layout.blocks().map(|b| (b, HashSet::new())).collect();
    loop {
        let before: usize = living.iter().map(|(_, l)| l.len()).sum();
        for at in 0..living.len() {
            let block = living[at].0;
            let mut live: HashSet<Value> = HashSet::new();
            for next in cfg.succ_iter(block) {
                let there = living.iter().find(|(b, _)| *b == next).unwrap();
                live.extend(there.1.iter().filter(
                    |&&v| !matches!(func.dfg.value_def(v), ValueDef::Param(of, _) if of == next),
                ));
            }
            for inst in func.layout.block_insts(block).rev() {
                for result in func.dfg.inst_results(inst) {
                    live.remove(result);
                }
                live.extend(func.dfg.inst_values(inst));
            }
            living[at].1 = live;
        }
        if living.iter().map(|(_, l)| l.len()).sum::<usize>() == before {
            break;
        }
    }
    let is_kept = |v: &&Value| {
        let made = func.dfg.value_def(**v).inst();
        made.is_none_or(|inst| func.dfg.insts[inst].opcode() != Opcode::Iconst)
    };
    living
        .iter()
        .map(|(b, l)| (*b, l.iter().filter(is_kept).count()))
        .collect()
}

/// The instructions with effects, block by block.
fn effects(func: &Function) -> Vec<Vec<Opcode>> {
    let mut all = opcodes(func);
    for block in &mut all {
        block.retain(|o| o.can_load() || o.is_terminator());
    }
    all
}

proptest! {
    /// Each value is computed before it is used, effects stay in order, and nowhere do more values live than before.
    #[test]
    fn no_block_begins_with_more_values_to_keep(blocks in random()) {
        let before = build(&blocks);
        let (living_before, effects_before) = (living(&before), effects(&before));
        let after = moved(before);
        prop_assert_eq!(effects(&after), effects_before);
        for (before, after) in living_before.iter().zip(living(&after)) {
            prop_assert!(after.1 <= before.1, "before {before:?}, after {after:?}");
        }
    }
}
