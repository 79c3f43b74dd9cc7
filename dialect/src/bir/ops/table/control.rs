//! Registers, semaphores, barriers, and what the dialect cannot look into.

macro_rules! control_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Reads one element into a register: a new one (`%r = register_load <- %t[0:1, 0:1]`) or one
            /// that exists (`register_load %r <- %t[0:1, 0:1]`).
            ///
            /// ```bir
            /// %n = register_load <- %t[0:1, 0:1]
            /// ```
            RegisterLoad = "register_load": "memory to register" {
                operands {
                    dst = reg_out().opt().doc("register written, where the instruction defines none");
                    src = input(DMA_SPACES, DTypeSet::of(&[DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32, DType::F32])).doc("one element");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).with_result().check(checks::register_load)
            }

            /// Writes a register to one element.
            ///
            /// ```bir
            /// register_store %t[0:1, 0:1] <- %n
            /// ```
            RegisterStore = "register_store": "register to memory" {
                operands {
                    dst = out(DMA_SPACES, DTypeSet::of(&[DType::I8, DType::I16, DType::I32, DType::U8, DType::U16, DType::U32, DType::F32])).doc("one element");
                    src = reg().doc("register read");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).check(checks::register_store)
            }

            /// Sets a register, new or existing, to an integer or to another register.
            ///
            /// ```bir
            /// %n = register_move <- 5
            /// ```
            RegisterMove = "register_move": "set a register" {
                operands {
                    dst = reg_out().opt().doc("register written, where the instruction defines none");
                    value = reg_imm().doc("an integer or a register");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).with_result().check(checks::register_move)
            }

            /// Combines two registers or a register and an integer, in wrapping 32-bit arithmetic.
            ///
            /// ```bir
            /// %n = register_alu subtract <- %n0, 1
            /// ```
            RegisterAlu = "register_alu": "compute on registers" {
                operands {
                    dst = reg_out().opt().doc("register written, where the instruction defines none");
                    lhs = reg_imm().doc("left value");
                    rhs = reg_imm().doc("right value");
                }
                attrs {
                    op = required(Enum(&ALU_OPS)).doc("the operation");
                }
                rules .words(&["op"]).engines(&[Sp, Act, Dve, Pe, Pool]).with_result().check(checks::register_move)
            }

            /// Waits for semaphores and changes others, and does nothing else.
            ///
            /// ```bir
            /// event_semaphore {wait = [4 >= 36], signal = [6 += 1 @complete]}
            /// ```
            EventSemaphore = "event_semaphore": "wait and signal" {
                attrs {
                    queue = optional(Str).doc("DMA queue it stands in, where its engine is `dma`");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool, Dma]).traits_of(&[Trait::Sync, Trait::MustKeep])
            }

            /// Sets a range of semaphores to 0.
            ///
            /// ```bir
            /// semaphore_range_clear {first = 4, count = 12}
            /// ```
            SemaphoreRangeClear = "semaphore_range_clear": "clear semaphores" {
                attrs {
                    first = required(Int { min: 0, max: 255 }).doc("first semaphore");
                    count = required(Int { min: 1, max: 256 }).doc("how many");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).traits_of(&[Trait::Sync, Trait::MustKeep]).check(checks::semaphore_range_clear)
            }

            /// Every engine waits until all have come here.
            ///
            /// ```bir
            /// all_engine_barrier
            /// ```
            AllEngineBarrier = "all_engine_barrier": "engines meet" {
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).traits_of(&[Trait::Sync, Trait::MustKeep])
            }

            /// The cores of the program meet: an engine of each waits for those of the others. `data` is
            /// shared memory whose accesses on both sides of the barrier stay on their side.
            ///
            /// ```bir
            /// core_barrier %shared {cores = [0, 1]}
            /// ```
            CoreBarrier = "core_barrier": "cores meet" {
                operands {
                    data = inout(DRAM, ANY).opt().doc("shared memory that is ordered");
                }
                attrs {
                    cores = optional(AttrType::IntList { min: 0, max: 63 }).default("[0, 1]").doc("cores that meet");
                    semaphore = optional(Int { min: 0, max: 255 }).doc("semaphore used");
                }
                rules .engines_by_target(&[], &[Pool, Sp, Act, Dve, Pe], &[Pool, Sp, Act, Dve, Pe])
                    .traits_of(&[Trait::Sync, Trait::MustKeep, Trait::Observable]).check(checks::core_barrier)
            }

            /// Waits until everything the engine has issued is complete.
            ///
            /// ```bir
            /// drain {engine = act}
            /// ```
            Drain = "drain": "wait for own instructions" {
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).traits_of(&[Trait::Sync, Trait::MustKeep])
            }

            /// Stops the engine, and with it the program of its core, wherever it stands.
            ///
            /// ```bir
            /// halt
            /// ```
            Halt = "halt": "stop an engine" {
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).traits_of(&[Trait::Observable, Trait::MustKeep])
            }

            /// Does nothing.
            ///
            /// ```bir
            /// nop {engine = pe}
            /// ```
            Nop = "nop": "nothing" {
                rules .engines(&[Sp, Act, Dve, Pe, Pool])
            }

            /// Tells the host that the engine has come here.
            ///
            /// ```bir
            /// notify {event = 3}
            /// ```
            Notify = "notify": "tell the host" {
                attrs {
                    event = required(Int { min: 0, max: U32_MAX }).doc("number the host sees");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).traits_of(&[Trait::Observable, Trait::MustKeep])
            }

            /// Starts a DMA queue whose descriptors were made before.
            ///
            /// ```bir
            /// dma_trigger {queue = "qSyncIO0"}
            /// ```
            DmaTrigger = "dma_trigger": "start a DMA queue" {
                attrs {
                    queue = required(Str).doc("the queue");
                }
                rules .engines(&[Sp, Act, Pool]).traits_of(&[Trait::Observable, Trait::Sync, Trait::MustKeep])
            }

            /// Chooses in which order the memory accesses of an engine take effect.
            ///
            /// ```bir
            /// set_ordering_mode {mode = strict}
            /// ```
            SetOrderingMode = "set_ordering_mode": "choose the order of accesses" {
                attrs {
                    mode = required(Enum(&ORDERING_MODES)).doc("`strict` or `relaxed`");
                }
                rules .engines(&[Act, Dve, Pe, Pool]).traits_of(&[Trait::Sync, Trait::MustKeep])
            }

            /// Loads a configuration into the pool engine's cores.
            ///
            /// ```bir
            /// modify_pool_config {config = "default"}
            /// ```
            ModifyPoolConfig = "modify_pool_config": "configure the pool engine" {
                attrs {
                    config = required(Str).doc("name of the configuration");
                }
                rules .engines(&[Pool]).traits_of(&[Trait::HiddenState, Trait::MustKeep])
            }

            /// Loads the tables of an activation function before it is used.
            ///
            /// ```bir
            /// load_activation_table {func = exp}
            /// ```
            LoadActivationTable = "load_activation_table": "load a function's tables" {
                attrs {
                    func = required(Enum(&ACTIVATION_FUNCS)).doc("the function");
                }
                rules .engines(&[Act]).traits_of(&[Trait::MustKeep])
            }

            /// Prints a tile on the host, with a text before it.
            ///
            /// ```bir
            /// device_print <- %t {text = "scores"}
            /// ```
            DevicePrint = "device_print": "print a tile" {
                operands {
                    src = input(DMA_SPACES, ANY).doc("memory printed");
                }
                attrs {
                    text = optional(Str).doc("printed before it");
                }
                rules .engines(&[Dma]).traits_of(&[Trait::Dma, Trait::Observable, Trait::MustKeep])
            }

            /// A kernel the dialect knows only by name; it reads and writes its operands and nothing else.
            /// Nothing folds, moves across or simulates it.
            ///
            /// ```bir
            /// custom_op %y <- %x {name_of_op = "lookup", config = "v2"}
            /// ```
            CustomOp = "custom_op": "an operation of the user's" {
                operands {
                    dsts = inout(SpaceSet::ALL, ANY).any_partitions().opt().variadic().doc("memory read and written");
                    srcs = input(SpaceSet::ALL, ANY).any_partitions().opt().variadic().doc("memory read");
                }
                attrs {
                    name_of_op = required(Str).doc("which operation");
                    config = optional(Str).doc("passed on to it");
                }
                rules .engines(&[Pool, Dve, Act, Pe, Sp, Dma]).traits_of(&[Trait::Observable, Trait::MustKeep, Trait::HiddenState])
            }

            /// Instructions of an engine, as text; it reads and writes its operands and nothing else.
            ///
            /// ```bir
            /// inline_asm %y <- %x {text = "nop", engine = act}
            /// ```
            InlineAsm = "inline_asm": "instructions as text" {
                operands {
                    dsts = inout(SpaceSet::ALL, ANY).any_partitions().opt().variadic().doc("memory read and written");
                    srcs = input(SpaceSet::ALL, ANY).any_partitions().opt().variadic().doc("memory read");
                }
                attrs {
                    text = required(Str).doc("the instructions");
                }
                rules .engines(&[Pool, Dve, Act, Pe, Sp]).traits_of(&[Trait::Observable, Trait::MustKeep, Trait::HiddenState])
            }
        } }
    };
}
