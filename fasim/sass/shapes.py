"""How nvdisasm writes the operands of instructions that only change registers, so that one lowering does for all of them.

A shape lists the operands in their order: `d` a destination register, `p` and `q` destination predicates, `a` `b` `c` and other letters
sources as the row names them, `c:h` a register pair that fills the two sources c and h, `d:e` the same as destination, `#lut` an
immediate, `*` an operand that means nothing here, `_` PT or !PT, which means nothing. What ends in ? is there or not: a predicate
that is not written is false as a source and thrown away as a destination.
"""

from __future__ import annotations

#: opcodes of uniform registers that do what others do
UNIFORM = {
    f"U{name}": name
    for name in (
        *("IADD", "IADD3", "VIADD", "IMAD", "IABS", "LEA", "VIMNMX", "VIMNMX3", "IMNMX", "ISETP", "SEL", "MOV"),
        *("LOP3", "PLOP3", "SHF", "PRMT", "SGXT", "BMSK", "POPC", "BREV", "FLO", "P2R", "R2P"),
        *("FADD", "FMUL", "FFMA", "FSEL", "FSETP", "FMNMX", "I2F", "I2FP", "F2I", "F2F", "F2FP", "FRND"),
    )
}

#: by opcode with as many modifiers as needed: the longest that fits is taken
SHAPES = {
    "IADD3": "d p? q? a b c x? y?",
    "IADD3.64": "d p? q? a b c",
    "MOV.64": "d a",
    "VIADD": "d a b",
    "IADD": "d p? a b x?",
    "IADD.64": "d p? a b x?",
    "LEA": "d p? a b #shift",
    "LEA.HI": "d p? a b c #shift x?",
    "LEA.HI.X": "d p? a b c #shift x?",
    "LEA.HI.SX32": "d p? a b #shift x?",
    "LEA.HI.X.SX32": "d p? a b #shift x?",
    "IMAD": "d a b c x?",
    "IMAD.WIDE": "d:e p? a b low:high x?",
    "IMAD.HI": "d p? a b low:high x?",
    "IABS": "d a",
    "ISETP": "p q a b c x?",
    "SEL": "d a b p",
    "IMNMX.S64": "_ _ d a b least _",
    "IMNMX.U64": "_ _ d a b least _",
    "MOV": "d a *?",
    "VIMNMX": "d p? q? a b least",
    "VIMNMX3": "d a b c least",
    "IMNMX": "d a b least",
    "VIADDMNMX": "d a b c least",
    "LOP3": "p? d a b c #lut x?",
    "PLOP3": "p q a b c #first #second",
    "SHF": "d a amount c",
    "PRMT": "d a selector b",
    "SGXT": "d a b",
    "BMSK": "d a b",
    "POPC": "d a",
    "BREV": "d a",
    "FLO": "d a",
    "VABSDIFF": "d a b c",
    "VABSDIFF4": "d a b c",
    "IDP": "d a b c",
    "I2I": "d a",
    "I2IP": "d a b c",
    "F2IP": "d a b c",
    "I2IP.S16": "d a b",
    "I2IP.U16": "d a b",
    "FADD": "d a b",
    "FMUL": "d a b",
    "FFMA": "d a b c",
    "FSEL": "d a b p",
    "FMNMX": "d a b least",
    "FSETP": "p q a b c",
    "FSET": "d a b c",
    "FCHK": "p a b",
    "MUFU": "d a",
    "DADD": "d a b",
    "DMUL": "d a b",
    "DFMA": "d a b c",
    "DMNMX": "d a b least",
    "DSETP": "p q a b c",
    "F2F": "d a",
    "F2I": "d a",
    "I2F": "d a",
    "I2FP": "d a",
    "F2FP": "d a b",
    **{f"F2FP{relu}.F16.{type_}.UNPACK_B": "d a" for relu in ("", ".RELU") for type_ in ("E4M3", "E5M2")},
    **{f"F2FP.SATFINITE{relu}.{type_}.F32.PACK_AB_MERGE_C": "d a b c" for relu in ("", ".RELU") for type_ in ("E4M3", "E5M2")},
    "FRND": "d a",
    "HADD2": "d a b",
    "HMUL2": "d a b",
    "HFMA2": "d a b c",
    "HMNMX2": "d a b least",
    "HSETP2": "p q a b c",
    "HSET2": "d a b c",
    "SHFL": "p d a b c",
    "MATCH.ANY": "d a",
    "MATCH.ALL": "p d a",
    "REDUX": "d a",
    "CREDUX": "d a",
    "R2UR": "p? d a",
    "ELECT": "p d _",
    "MOVM": "d a",
    "HMMA": "d a b c",
    "IMMA": "d a b c",
    "DMMA": "d a b c",
    "BMMA": "d a b c",
}

#: rows that do what other mnemonics mean, by the whole mnemonic: a modifier that is not known must not be left out
ROW_OF = {
    "IADD3.X": "IADD3",
    **{f"CREDUX.{operation}{sign}": f"REDUX.{operation}{sign}" for operation in ("MIN", "MAX") for sign in ("", ".S32")},
    "IADD.X": "IADD",
    "IADD.64.X": "IADD.64:carry",
    "LEA.HI.X": "LEA.HI",
    "LEA.HI.X.SX32": "LEA.HI.SX32",
    **{f"IMAD.{parts}": "IMAD" for parts in ("MOV", "MOV.U32", "SHL", "SHL.U32", "IADD", "IADD.U32", "U32", "X", "U32.X")},
    "IMAD.WIDE.X": "IMAD.WIDE",
    "IMAD.HI.X": "IMAD.HI",
    "IMAD.HI.U32.X": "IMAD.HI.U32",
    "IMAD.WIDE.U32.X": "IMAD.WIDE.U32",
    "IMNMX": "VIMNMX",
    "IMNMX.U32": "VIMNMX.U32",
    **{f"F2FP{relu}.PACK_AB{way}": f"F2FP{relu}.F16.F32.PACK_AB{way}" for relu in ("", ".RELU") for way in ("", ".RZ")},
    **{f"F2FP{relu}.BF16.PACK_AB{way}": f"F2FP{relu}.BF16.F32.PACK_AB{way}" for relu in ("", ".RELU") for way in ("", ".RZ")},
}


def longest(table: dict[str, str], mnemonic: str) -> str | None:
    """What a table says of the longest beginning of a mnemonic, cut at a dot, that it knows."""
    while mnemonic:
        if mnemonic in table:
            return table[mnemonic]
        mnemonic = mnemonic.rpartition(".")[0]
    return None
