//! Modules, functions, locations, loops and branches.

macro_rules! structure_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// One logical core's program: a target and its functions. A file with several modules is one
            /// program; locations of equal name that are `space = shared` are one buffer.
            ///
            /// ```bir
            /// bir.module @softmax {target = "trn2"} {
            /// }
            /// ```
            Module = "module": "the program of one core" {
                attrs {
                    target = optional(Enum(&TARGETS)).default("trn2").doc("hardware generation");
                    core = optional(Int { min: 0, max: 63 }).doc("logical core the module runs on");
                    tensor_map = optional(Str).doc("JSON list of the locations outside tools know by name");
                }
                rules .syntax(Syntax::Module)
            }

            /// A function: locations first, then instructions in blocks. A block without a branch at its
            /// end leaves the function.
            ///
            /// ```bir
            /// bir.func @main {
            /// }
            /// ```
            Func = "func": "a function" {
                attrs {
                    sb_allocated = optional(Flag).doc("SBUF locations have been placed");
                    no_dce = optional(Flag).doc("loops and copies that change nothing are left in it");
                }
                rules .syntax(Syntax::Func)
            }

            /// A memory location. Dimension 0 of `sbuf` and `psum` is the partition dimension. Locations
            /// stand before the instructions of their function and name storage, not a value: instructions
            /// write them through their out-operands.
            ///
            /// ```bir
            /// %x = alloc dram<128x512xf32> {kind = input}
            /// %t = alloc sbuf<64x512xbf16> at [64, 0x1200]
            /// %p = alloc psum<128x512xf32> at [0, bank 3]
            /// %w = alloc dram<1x2xbf16> {kind = const, value = dense<"0x803F0040">}
            /// ```
            Alloc = "alloc": "a memory location" {
                attrs {
                    kind = optional(Enum(&LOCATION_KINDS)).default("internal").doc("what it is to the outside");
                    space = optional(Enum(&ADDRESSINGS)).default("local").doc("whether other cores address it too");
                    at = optional(AttrType::Placement).doc("partition and byte address, PSUM bank, or DRAM address");
                    user_allocated = optional(Flag).doc("the kernel's author chose the placement");
                    pinned = optional(Flag).doc("never spilled");
                    const_sub_tensor = optional(Int { min: 0, max: U32_MAX }).doc("part of constant number N, of which the whole is not here");
                    must_alias = optional(Symbol).doc("location that shares its bytes");
                    remote_target = optional(Str).doc("location of another core whose bytes these are: `name@core`, or `name` where there are two cores");
                    written_by_core = optional(Int { min: 0, max: 63 }).doc("another core that writes it");
                    boundary = optional(Flag).doc("crosses a module boundary of a modular program");
                    value = optional(AttrType::Data).doc("elements of a constant");
                }
                rules .syntax(Syntax::Alloc).check(checks::alloc)
            }

            /// Counts `%i` from `from` to `to`, excluded, by `step`. Bounds are integers or registers
            /// (`!bir.reg<i32>`); the index is only visible in the body.
            ///
            /// ```bir
            /// loop %i = 0 to 16 step 4 {no_reorder} {
            ///   load %t <- %x[128*%i +: 128, 0:512]
            /// }
            /// ```
            Loop = "loop": "a counted loop" {
                operands {
                    lower = reg_imm().doc("first value of the index");
                    upper = reg_imm().doc("end of the index, excluded");
                }
                attrs {
                    step = optional(Int { min: 1, max: i64::MAX }).default("1").doc("increment");
                    no_reorder = optional(Flag).doc("instructions in it keep their order");
                }
                rules .syntax(Syntax::Loop).traits_of(&[Trait::Control]).check(checks::loop_)
            }

            /// Repeats its body as long as a register is not zero, tested before each trip.
            ///
            /// ```bir
            /// while %r {
            ///   register_load %r <- %flag[0:1, 0:1]
            /// }
            /// ```
            While = "while": "a loop on a register" {
                operands {
                    cond = reg().doc("register tested before each trip");
                }
                attrs {
                    no_reorder = optional(Flag).doc("instructions in it keep their order");
                }
                rules .syntax(Syntax::While).traits_of(&[Trait::Control])
            }

            /// Continues at a block of the same region. The entry block is no target.
            ///
            /// ```bir
            /// br ^done
            /// ```
            Br = "br": "a branch" {
                rules .syntax(Syntax::Br).traits_of(&[Trait::Control, Trait::Terminator])
            }

            /// Continues at the first block if the register is not zero, else at the second.
            ///
            /// ```bir
            /// cond_br %r, ^then, ^done
            /// ```
            CondBr = "cond_br": "a conditional branch" {
                operands {
                    cond = reg().doc("register tested");
                }
                rules .syntax(Syntax::CondBr).traits_of(&[Trait::Control, Trait::Terminator])
            }

            /// A set of instructions, by their `id`, and of other sets, for `deps` to name: many
            /// instructions that depend on all of many need not list them each. It stands at the end of
            /// a block, executes nothing, and its number is of its own kind, apart from those of
            /// instructions.
            ///
            /// ```bir
            /// depset #12 = [7, 9, #4]
            /// ```
            Depset = "depset": "instructions to depend on" {
                rules .syntax(Syntax::Depset)
            }

            /// Leaves the function. The custom form does not write it.
            Return = "return": "the end of a function" {
                rules .syntax(Syntax::Implicit).traits_of(&[Trait::Control, Trait::Terminator])
            }

            /// Ends a block of a loop body. The custom form does not write it.
            Yield = "yield": "the end of a loop body" {
                rules .syntax(Syntax::Implicit).traits_of(&[Trait::Control, Trait::Terminator])
            }
        } }
    };
}
