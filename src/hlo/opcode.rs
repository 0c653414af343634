//! HLO opcodes, and what each of them does to values: the one table that analyses go by.
//!
//! In: an opcode's name as files have it. Out: [`Opcode`] and its properties.

/// Each element of the result depends on the same element of the operands alone.
const ELEMENTWISE: u8 = 1;
/// The result depends on the operands alone, the same way on every device.
const PURE: u8 = 2;
/// Devices exchange data in it.
const COLLECTIVE: u8 = 4;
const NONE: u8 = 0;

macro_rules! opcodes {
    ($($variant:ident $name:literal $properties:expr,)*) => {
        /// What an HLO instruction does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[allow(missing_docs)]
        #[non_exhaustive]
        pub enum Opcode {
            $($variant,)*
            /// One that this version does not know.
            #[default]
            Unknown,
        }

        impl Opcode {
            /// Every opcode known.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];

            /// The opcode called `name` in a file; [`Opcode::Unknown`] for others.
            pub fn from_name(name: &str) -> Opcode {
                match name {
                    $($name => Opcode::$variant,)*
                    // As the text of older compilers has it.
                    "optimization-barrier" => Opcode::OptBarrier,
                    _ => Opcode::Unknown,
                }
            }

            /// The name in files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Opcode::$variant => $name,)*
                    Opcode::Unknown => "unknown",
                }
            }

            const fn properties(self) -> u8 {
                match self {
                    $(Opcode::$variant => $properties,)*
                    Opcode::Unknown => NONE,
                }
            }
        }
    };
}

opcodes! {
    Abs "abs" ELEMENTWISE | PURE,
    Acos "acos" ELEMENTWISE | PURE,
    Acosh "acosh" ELEMENTWISE | PURE,
    Add "add" ELEMENTWISE | PURE,
    AddDependency "add-dependency" PURE,
    AfterAll "after-all" PURE,
    AllGather "all-gather" COLLECTIVE,
    AllGatherDone "all-gather-done" NONE,
    AllGatherStart "all-gather-start" COLLECTIVE,
    AllReduce "all-reduce" COLLECTIVE,
    AllReduceDone "all-reduce-done" NONE,
    AllReduceStart "all-reduce-start" COLLECTIVE,
    AllToAll "all-to-all" COLLECTIVE,
    And "and" ELEMENTWISE | PURE,
    Asin "asin" ELEMENTWISE | PURE,
    Asinh "asinh" ELEMENTWISE | PURE,
    AsyncDone "async-done" NONE,
    AsyncStart "async-start" NONE,
    AsyncUpdate "async-update" NONE,
    Atan2 "atan2" ELEMENTWISE | PURE,
    Atanh "atanh" ELEMENTWISE | PURE,
    BatchNormGrad "batch-norm-grad" PURE,
    BatchNormInference "batch-norm-inference" PURE,
    BatchNormTraining "batch-norm-training" PURE,
    Bitcast "bitcast" PURE,
    BitcastConvert "bitcast-convert" PURE,
    Broadcast "broadcast" PURE,
    Call "call" NONE,
    Cbrt "cbrt" ELEMENTWISE | PURE,
    Ceil "ceil" ELEMENTWISE | PURE,
    Cholesky "cholesky" PURE,
    Clamp "clamp" ELEMENTWISE | PURE,
    CollectiveBroadcast "collective-broadcast" COLLECTIVE,
    CollectivePermute "collective-permute" COLLECTIVE,
    CollectivePermuteDone "collective-permute-done" NONE,
    CollectivePermuteStart "collective-permute-start" COLLECTIVE,
    Compare "compare" ELEMENTWISE | PURE,
    Complex "complex" ELEMENTWISE | PURE,
    Concatenate "concatenate" PURE,
    Conditional "conditional" NONE,
    Constant "constant" NONE,
    Convert "convert" ELEMENTWISE | PURE,
    Convolution "convolution" PURE,
    Copy "copy" PURE,
    CopyDone "copy-done" PURE,
    CopyStart "copy-start" PURE,
    Cosine "cosine" ELEMENTWISE | PURE,
    Cosh "cosh" ELEMENTWISE | PURE,
    CountLeadingZeros "count-leading-zeros" ELEMENTWISE | PURE,
    CustomCall "custom-call" NONE,
    Divide "divide" ELEMENTWISE | PURE,
    Domain "domain" PURE,
    Dot "dot" PURE,
    DynamicReshape "dynamic-reshape" PURE,
    DynamicSlice "dynamic-slice" PURE,
    DynamicUpdateSlice "dynamic-update-slice" PURE,
    Erf "erf" ELEMENTWISE | PURE,
    Exponential "exponential" ELEMENTWISE | PURE,
    ExponentialMinusOne "exponential-minus-one" ELEMENTWISE | PURE,
    Fft "fft" PURE,
    Floor "floor" ELEMENTWISE | PURE,
    Fusion "fusion" NONE,
    Gather "gather" PURE,
    GetDimensionSize "get-dimension-size" PURE,
    GetTupleElement "get-tuple-element" NONE,
    Imag "imag" ELEMENTWISE | PURE,
    Infeed "infeed" NONE,
    Iota "iota" NONE,
    IsFinite "is-finite" ELEMENTWISE | PURE,
    Log "log" ELEMENTWISE | PURE,
    LogPlusOne "log-plus-one" ELEMENTWISE | PURE,
    Logistic "logistic" ELEMENTWISE | PURE,
    Map "map" PURE,
    Maximum "maximum" ELEMENTWISE | PURE,
    Minimum "minimum" ELEMENTWISE | PURE,
    Mulhi "mulhi" ELEMENTWISE | PURE,
    Multiply "multiply" ELEMENTWISE | PURE,
    Negate "negate" ELEMENTWISE | PURE,
    Not "not" ELEMENTWISE | PURE,
    OptBarrier "opt-barrier" NONE,
    Or "or" ELEMENTWISE | PURE,
    Outfeed "outfeed" NONE,
    Pad "pad" PURE,
    Parameter "parameter" NONE,
    PartitionId "partition-id" NONE,
    Popcnt "popcnt" ELEMENTWISE | PURE,
    Power "power" ELEMENTWISE | PURE,
    RaggedAllToAll "ragged-all-to-all" COLLECTIVE,
    RaggedDot "ragged-dot" PURE,
    Real "real" ELEMENTWISE | PURE,
    Recv "recv" NONE,
    RecvDone "recv-done" NONE,
    Reduce "reduce" PURE,
    ReducePrecision "reduce-precision" ELEMENTWISE | PURE,
    ReduceScatter "reduce-scatter" COLLECTIVE,
    ReduceWindow "reduce-window" PURE,
    Remainder "remainder" ELEMENTWISE | PURE,
    ReplicaId "replica-id" NONE,
    Reshape "reshape" PURE,
    Reverse "reverse" PURE,
    Rng "rng" NONE,
    RngBitGenerator "rng-bit-generator" PURE,
    RngGetAndUpdateState "rng-get-and-update-state" NONE,
    RoundNearestAfz "round-nearest-afz" ELEMENTWISE | PURE,
    RoundNearestEven "round-nearest-even" ELEMENTWISE | PURE,
    Rsqrt "rsqrt" ELEMENTWISE | PURE,
    ScaledDot "scaled-dot" PURE,
    Scan "scan" NONE,
    Scatter "scatter" PURE,
    Select "select" ELEMENTWISE | PURE,
    SelectAndScatter "select-and-scatter" PURE,
    Send "send" PURE,
    SendDone "send-done" PURE,
    SetDimensionSize "set-dimension-size" PURE,
    ShiftLeft "shift-left" ELEMENTWISE | PURE,
    ShiftRightArithmetic "shift-right-arithmetic" ELEMENTWISE | PURE,
    ShiftRightLogical "shift-right-logical" ELEMENTWISE | PURE,
    Sign "sign" ELEMENTWISE | PURE,
    Sine "sine" ELEMENTWISE | PURE,
    Sinh "sinh" ELEMENTWISE | PURE,
    Slice "slice" PURE,
    SliceDone "slice-done" NONE,
    SliceStart "slice-start" NONE,
    Sort "sort" PURE,
    Sqrt "sqrt" ELEMENTWISE | PURE,
    StochasticConvert "stochastic-convert" ELEMENTWISE | PURE,
    Subtract "subtract" ELEMENTWISE | PURE,
    Tan "tan" ELEMENTWISE | PURE,
    Tanh "tanh" ELEMENTWISE | PURE,
    Topk "topk" PURE,
    Transpose "transpose" PURE,
    TriangularSolve "triangular-solve" PURE,
    Tuple "tuple" NONE,
    While "while" NONE,
    Xor "xor" ELEMENTWISE | PURE,
}

impl Opcode {
    /// Whether each element of the result depends on the same element of the operands alone.
    pub const fn is_elementwise(self) -> bool {
        self.properties() & ELEMENTWISE != 0
    }

    /// Whether the result depends on the operands alone, the same way on every device. Not said of
    /// what calls computations: these are looked into.
    pub const fn is_pure(self) -> bool {
        self.properties() & PURE != 0
    }

    /// Whether devices exchange data in it: a collective, or the start of an asynchronous one.
    pub const fn is_collective(self) -> bool {
        self.properties() & COLLECTIVE != 0
    }

    /// The operation that an asynchronous pair starts: `all-gather` of `all-gather-start`; others
    /// are themselves.
    pub const fn synchronous(self) -> Opcode {
        match self {
            Opcode::AllGatherStart => Opcode::AllGather,
            Opcode::AllReduceStart => Opcode::AllReduce,
            Opcode::CollectivePermuteStart => Opcode::CollectivePermute,
            Opcode::CopyStart => Opcode::Copy,
            Opcode::SliceStart => Opcode::Slice,
            other => other,
        }
    }

    /// Whether it begins something that another instruction ends.
    pub const fn is_start(self) -> bool {
        matches!(
            self,
            Opcode::AllGatherStart
                | Opcode::AllReduceStart
                | Opcode::AsyncStart
                | Opcode::CollectivePermuteStart
                | Opcode::CopyStart
                | Opcode::SliceStart
        )
    }

    /// Whether it ends what another instruction began.
    pub const fn is_done(self) -> bool {
        matches!(
            self,
            Opcode::AllGatherDone
                | Opcode::AllReduceDone
                | Opcode::AsyncDone
                | Opcode::CollectivePermuteDone
                | Opcode::CopyDone
                | Opcode::RecvDone
                | Opcode::SendDone
                | Opcode::SliceDone
        )
    }

    /// Whether it runs computations as part of the program. (Fusions and reductions have bodies that
    /// are no part of the program order.)
    pub const fn runs_computations(self) -> bool {
        matches!(
            self,
            Opcode::While | Opcode::Call | Opcode::Conditional | Opcode::AsyncStart
        )
    }

    /// Whether it multiplies: a matrix product or a convolution.
    pub const fn is_product(self) -> bool {
        matches!(self, Opcode::Dot | Opcode::Convolution)
    }

    /// Whether the result is another name of an operand, in the same bytes: nothing is computed or
    /// moved.
    pub const fn renames(self) -> bool {
        matches!(
            self,
            Opcode::Tuple
                | Opcode::GetTupleElement
                | Opcode::Bitcast
                | Opcode::OptBarrier
                | Opcode::Domain
                | Opcode::AddDependency
        )
    }

    /// Whether the result has the elements of the first operand, in memory of its own: copied, and
    /// perhaps in another order.
    pub const fn moves(self) -> bool {
        matches!(
            self,
            Opcode::Copy
                | Opcode::CopyStart
                | Opcode::CopyDone
                | Opcode::Reshape
                | Opcode::Transpose
        )
    }

    /// Whether it is one array with the elements of the first operand, in the same memory or in
    /// memory of its own.
    pub const fn keeps_elements(self) -> bool {
        self.moves() || matches!(self, Opcode::Bitcast | Opcode::OptBarrier | Opcode::Domain)
    }

    /// Whether the result has the data of the first operand and holds as much or less of it, more
    /// of it than one device has, or holds it in another type.
    pub const fn takes_apart(self) -> bool {
        matches!(
            self,
            Opcode::AllGather
                | Opcode::AllGatherStart
                | Opcode::AllGatherDone
                | Opcode::AsyncUpdate
                | Opcode::AsyncDone
                | Opcode::Convert
                | Opcode::Slice
                | Opcode::SliceStart
                | Opcode::SliceDone
                | Opcode::DynamicSlice
                | Opcode::Concatenate
                | Opcode::Pad
        )
    }

    /// Of the two ends of an asynchronous pair whose start gives a tuple: the element of it that
    /// holds the operation's result.
    pub const fn result_element(self) -> Option<i64> {
        match self {
            Opcode::CopyStart | Opcode::CopyDone => Some(0),
            Opcode::AllGatherStart
            | Opcode::AllGatherDone
            | Opcode::CollectivePermuteStart
            | Opcode::CollectivePermuteDone
            | Opcode::AsyncStart
            | Opcode::AsyncDone
            | Opcode::SliceStart
            | Opcode::SliceDone => Some(1),
            _ => None,
        }
    }

    /// Whether it computes nothing: it hands on what it is given, or was there before.
    pub const fn hands_on(self) -> bool {
        self.renames()
            || matches!(
                self,
                Opcode::Parameter | Opcode::While | Opcode::Call | Opcode::Conditional
            )
    }
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for &o in Opcode::ALL {
            assert_eq!(Opcode::from_name(o.name()), o);
        }
        assert_eq!(Opcode::from_name("frobnicate"), Opcode::Unknown);
        assert_eq!(
            Opcode::from_name("optimization-barrier"),
            Opcode::OptBarrier
        );
    }

    #[test]
    fn properties_do_not_contradict() {
        for &o in Opcode::ALL {
            assert!(!(o.is_collective() && o.is_pure()), "{o}");
            assert!(!(o.is_start() && o.is_done()), "{o}");
            assert!(!(o.renames() && o.moves()), "{o}");
            assert!(!o.is_elementwise() || o.is_pure(), "{o}");
            assert!(
                !o.is_start() || o.synchronous() != o || o == Opcode::AsyncStart,
                "{o}"
            );
        }
    }
}
