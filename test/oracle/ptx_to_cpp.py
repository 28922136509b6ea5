#!/usr/bin/python3
"""ptx_to_cpp.py - the PTX of a program as host code, for the fake device.

    ptx_to_cpp.py gpt.dsx -o kernels.so        every instruction becomes one C++ statement (PtxThread.h)

The text is taken from the program as the driver would get it. An instruction that is not known here ends the
translation, so nothing is skipped. Contraction is off: fma only where the PTX says so.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

import ptx

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(ROOT, "unittests", "Runtime", "Cuda", "Fake")
TYPES = {"f32": "float", "f64": "double", "pred": "bool", "bf16": "ptx::BFloat", "f16": "_Float16"}
for width in (8, 16, 32, 64):
    TYPES.update({f"{kind}{width}": f"{'' if kind == 's' else 'u'}int{width}_t" for kind in "sub"})
# One half of a register of 32 bits, with a scope of its own for the other half.
HALF = re.compile(r"\{ \.reg \.b(16|32) tmp; mov\.b(?:32|64) \{(?:(%\w+), tmp|tmp, (%\w+))\}, (%\w+); \}")
REGISTERS = {"%tid.x": "thread.thread", "%ctaid.x": "thread.block", "%nctaid.x": "thread.blocks",
             "%ntid.x": "thread.threads"}
BINARY = {"add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "mul.lo": "{0} * {1}", "div": "{0} / {1}",
          "rem": "{0} % {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}",
          "max": "ptx::largest({0}, {1})", "min": "ptx::smallest({0}, {1})",
          "max.NaN": "ptx::largestOrNan({0}, {1})", "min.NaN": "ptx::smallestOrNan({0}, {1})",
          "mul.hi": "ptx::highProduct({0}, {1})", "mad.lo": "{0} * {1} + {2}", "fma": "std::fma({0}, {1}, {2})",
          "neg": "-{0}", "abs": "std::abs({0})", "sqrt": "std::sqrt({0})", "rcp": "1 / {0}", "mov": "{0}"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">",
           "hs": ">="}
WIDER = {"u32": "uint64_t", "s32": "int64_t", "u16": "uint32_t", "s16": "int32_t"}


class Kernel:
    """One entry: its statements, and what the fake device must know of it."""

    def __init__(self, name, header, body, tables):
        self.name, self.tables = name, tables
        # Where each parameter starts, in words: .u64, or an array of bytes that is a table of them.
        self.parameters, self.words = {}, 0
        found = re.findall(r"\.param (?:\.u64 (?:\.ptr [^,\n]*)?|\.align 8 \.b8 )(\w+)(?:\[(\d+)\])?", header)
        if header.count(".param") != len(found):
            sys.exit(f"ptx_to_cpp.py: {name} has a parameter that is neither .u64 nor a table")
        for parameter, size in found:
            self.parameters[parameter] = self.words
            self.words += int(size or 8) // 8
        self.threads = int(re.search(r"\.maxntid (\d+)", header).group(1))
        self.body, self.shared, self.shared_bytes, self.meets = body, {}, 0, False

    def value(self, text, kind):
        """An operand as a value of PTX type `kind`."""
        kind = TYPES.get(kind, kind)
        if text in REGISTERS:
            return f"({kind})({REGISTERS[text]})"
        if text.startswith("%"):
            return f"ptx::get<{kind}>({text[1:]})"
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
            return f"ptx::get<float>(uint32_t(0x{text[2:]}))"
        if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", text):
            return f"ptx::get<double>(uint64_t(0x{text[2:]}))"
        if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)U?", text):
            return f"({kind})({int(text.rstrip('U'), 0) % (1 << 64)}ull)"
        if text in self.shared:
            return f"({kind})(reinterpret_cast<uint64_t>(thread.shared) + {self.shared[text]})"
        if text in self.parameters:
            return f"({kind})(reinterpret_cast<uint64_t>(parameters + {self.parameters[text]}))"
        if text in self.tables:
            return f"({kind})(reinterpret_cast<uint64_t>({text}))"
        sys.exit(f"ptx_to_cpp.py: {self.name}: no operand '{text}'")

    def address(self, text):
        base, plus, offset = text.strip("[]").partition("+")
        return f"{self.value(base, 'u64')} + {int(offset) if plus else 0}ll"

    def access(self, parts, operands):
        """ld and st, of one register or of several."""
        space = {"global": "Global", "shared": "Shared"}.get(parts[1], "Generic")
        kind, count = TYPES[parts[-1]], int(next((p[1:] for p in parts if re.fullmatch(r"v[24]", p)), 1))
        memory, registers = (operands[1], operands[0]) if parts[0] == "ld" else operands
        registers = [r.strip() for r in registers.strip("{}").split(",")]
        assert len(registers) == count, operands
        lines = [f"const uint64_t at = {self.address(memory)};",
                 f"if (!thread.reaches(at, {count} * sizeof({kind}), ptx::Space::{space})) return;"]
        for k, register in enumerate(registers):
            where = f"at + {k} * sizeof({kind})"
            lines.append(f"ptx::put({register[1:]}, ptx::load<{kind}>({where}));" if parts[0] == "ld" else
                         f"ptx::store<{kind}>({where}, {self.value(register, kind)});")
        return "{ " + " ".join(lines) + " }"

    def compare(self, parts, operands):
        """setp: ordered comparisons are false for NaN, those that end in u true."""
        to, a, b = operands
        how, kind = parts[1], parts[-1]
        a, b = self.value(a, kind), self.value(b, kind)
        either = f"ptx::unordered({a}, {b})"
        floating = kind in ("f32", "f64")
        if how in ("nan", "num"):
            text = either if how == "nan" else "!" + either
        elif floating and how[:-1] in COMPARE:
            text = f"{either} || {a} {COMPARE[how[:-1]]} {b}"
        else:
            text = f"{a} {COMPARE[how]} {b}" + (f" && !{either}" if floating and how == "ne" else "")
        return f"{to[1:]} = {text};"

    def pack(self, operands, kind):
        """mov between a register and the parts of it."""
        to, source = operands
        parts = [p.strip() for p in (to if to.startswith("{") else source).strip("{}").split(",")]
        width = int(kind[1:]) // len(parts)
        if to.startswith("{"):
            whole = self.value(source, kind)
            return " ".join(f"ptx::put({p[1:]}, (uint{width}_t)({whole} >> {k * width}));" for k, p in enumerate(parts))
        whole = " | ".join(f"({TYPES[kind]}){self.value(p, f'b{width}')} << {k * width}" for k, p in enumerate(parts))
        return f"ptx::put({to[1:]}, ({TYPES[kind]})({whole}));"

    def convert(self, parts, operands):
        to, source = parts[-2], parts[-1]
        known = {"rn", "rni", "rmi", "rpi", "rzi", "rz", "sat"}
        assert set(parts[1:-2]) <= known - {"sat"}, parts
        value = self.value(operands[1], source)
        rounding = {"rni": "std::nearbyint", "rmi": "std::floor", "rpi": "std::ceil", "rzi": "std::trunc"}
        for mode in parts[1:-2]:
            if mode in rounding:
                value = f"{rounding[mode]}({value})"
        return f"ptx::put({operands[0][1:]}, ptx::convert<{TYPES[to]}>({value}));"

    def statement(self, opcode, operands):
        parts = opcode.split(".")
        first, kind = parts[0], parts[-1]
        if first == "ld" and parts[1] == "param":
            assert kind in ("u64", "b64"), opcode
            registers = [r.strip() for r in operands[0].strip("{}").split(",")]
            return "{ " + " ".join([f"const uint64_t at = {self.address(operands[1])};"] + [
                f"ptx::put({register[1:]}, ptx::load<uint64_t>(ptx::parameter(parameters, {self.words}, at + {8 * k})));"
                for k, register in enumerate(registers)]) + " }"
        if first in ("ld", "st"):
            return self.access(parts, operands)
        if opcode == "atom.acq_rel.gpu.global.inc.u32":
            return (f"{{ const uint64_t at = {self.address(operands[1])}; if (!thread.reaches(at, 4, ptx::Space::Global)) return; "
                    f"ptx::put({operands[0][1:]}, ptx::countUp(at, {self.value(operands[2], 'u32')})); }}")
        if first == "bra":
            return f"goto {operands[0].lstrip('$')};"
        if first == "ret":
            return "return;"
        if opcode == "bar.sync" or first == "bar" and parts[1] == "warp" or opcode.startswith("shfl.sync.bfly"):
            return self.meet(parts, operands)
        if first == "cvta":
            return f"ptx::put({operands[0][1:]}, {self.value(operands[1], 'u64')});"
        if first == "cvt":
            return self.convert(parts, operands)
        if first == "setp":
            return self.compare(parts, operands)
        if first == "mov" and "{" in operands[0] + operands[1]:
            return self.pack(operands, kind)
        return self.arithmetic(parts, operands)

    def meet(self, parts, operands):
        self.meets = True
        if parts[0] == "bar":
            return f"thread.{'warp' if parts[1] == 'warp' else 'block'}Barrier();"
        assert operands[3:] == ["31", "-1"], operands
        return (f"ptx::put({operands[0][1:]}, thread.shuffle({self.value(operands[1], 'b32')}, "
                f"{self.value(operands[2], 'b32')}));")

    def arithmetic(self, parts, operands):
        first, kind = parts[0], parts[-1]
        to, ctype = operands[0][1:], TYPES[kind]
        wrapping = kind.replace("s", "u") if first in ("add", "sub", "mul", "mad", "neg") and \
            "hi" not in parts and "wide" not in parts else kind
        values = [self.value(operand, wrapping) for operand in operands[1:]]
        known = {"rn", "lo", "hi", "wide", "NaN"}
        assert set(parts[1:-1]) <= known, parts
        if first == "selp":
            values = [self.value(operand, kind) for operand in operands[1:3]] + [operands[3][1:]]
            return f"ptx::put({to}, {values[2]} ? {values[0]} : {values[1]});"
        if first in ("shl", "shr"):
            helper = "shiftLeft" if first == "shl" else "shiftRight"
            return f"ptx::put({to}, ptx::{helper}<{ctype}>({values[0]}, {self.value(operands[2], 'u32')}));"
        if first == "bfe":
            at, length = (self.value(operand, "u32") for operand in operands[2:4])
            return f"ptx::put({to}, ptx::bitField<{ctype}>({values[0]}, {at}, {length}));"
        if first == "bfi":
            at, length = (self.value(operand, "u32") for operand in operands[3:5])
            mask = f"(((({ctype})1 << {length}) - 1) << {at})"
            return f"ptx::put({to}, ({ctype})(({values[0]} << {at} & {mask}) | ({values[1]} & ~{mask})));"
        if first == "not":
            return f"ptx::put({to}, ({ctype}){'!' if kind == 'pred' else '~'}{values[0]});"
        if "wide" in parts:
            wide = WIDER[kind]
            text = f"({wide}){values[0]} * ({wide}){values[1]}" + \
                (f" + {self.value(operands[3], wide)}" if first == "mad" else "")
            return f"ptx::put({to}, ({wide})({text}));"
        key = ".".join(p for p in parts[:-1] if p not in ("rn",))
        if key not in BINARY:
            sys.exit(f"ptx_to_cpp.py: {self.name}: no instruction '{'.'.join(parts)}'")
        return f"ptx::put({to}, ({ctype})({BINARY[key].format(*values)}));"

    def declare(self, line):
        """Registers and shared memory."""
        register = re.fullmatch(r"\.reg \.(\w+)\s+%(\w+)<(\d+)>;", line)
        if register:
            kind, prefix, count = register.groups()
            return f"[[maybe_unused]] {TYPES[kind]} " + ", ".join(f"{prefix}{k}" for k in range(1, int(count))) + ";" \
                if int(count) > 1 else ""
        shared = re.fullmatch(r"\.shared \.align \d+ \.b8 (\w+)\[(\d+)\];", line)
        if not shared:
            sys.exit(f"ptx_to_cpp.py: {self.name}: no declaration '{line}'")
        self.shared[shared.group(1)] = self.shared_bytes
        self.shared_bytes += (int(shared.group(2)) + 15) // 16 * 16
        return ""

    def translate(self):
        """The function of one thread. gotos must not cross the making of variables, so these come first."""
        lines = []
        for line in (text.strip() for text in self.body.split("\n")):
            if not line or line.startswith("//"):
                continue
            if line.startswith("."):
                lines.append(self.declare(line))
            elif line.endswith(":"):
                lines.append(line[1:-1].lstrip("$") + ":;" if line.startswith("$") else line[:-1] + ":;")
            elif half := HALF.fullmatch(line):
                bits, low, high, word = half.groups()
                lines.append(f"ptx::put({(low or high)[1:]}, (uint{bits}_t)({word[1:]} >> {bits if high else 0}));")
            else:
                guard, opcode, rest = re.fullmatch(r"(?:@(!?%\w+)\s+)?([\w.]+)\s*(.*);", line).groups()
                operands = [o.strip() for o in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest) if o.strip()]
                text = self.statement(opcode, operands)
                lines.append(f"if ({guard.replace('%', '')}) {{ {text} }}" if guard else text)
        return (f"static void {self.name}([[maybe_unused]] const uint64_t *parameters, "
                f"[[maybe_unused]] const ptx::Thread &thread) {{\n  " + "\n  ".join(filter(None, lines)) + "\n}\n")


def translate(text):
    """All entries and variables of a module, tables and counters, and the lists of them."""
    found = re.findall(r"^\.global \.align (\d+) \.b8 (\w+)\[(\d+)\](?: = (\{[^}]*\}))?;", text, re.M)
    assert len(found) == len(re.findall(r"^\.(?:global|const|extern)", text, re.M)), "a variable was not understood"
    tables = {name: int(size) for _, name, size, _ in found}
    kernels = [Kernel(name, header, body, tables) for name, header, body in
               re.findall(r"\.visible \.entry (\w+)(\(.*?)\n\{\n(.*?)\n\}", text, re.S)]
    assert len(kernels) == text.count(".entry"), "an entry was not understood"
    code = '#include "PtxThread.h"\n'
    code += "".join(f"alignas({align}) static unsigned char {name}[{size}] = {values or '{}'};\n" for align, name, size, values in found)
    code += "".join(kernel.translate() for kernel in kernels)
    entries = "".join(f'  {{"{k.name}", {k.name}, {k.words}, {k.threads}, {k.shared_bytes}, '
                      f'{"true" if k.meets else "false"}}},\n' for k in kernels)
    known = "".join(f"  {{{name}, {size}}},\n" for name, size in tables.items())
    return (code + f'extern "C" const ptx::Entry dsPtxEntries[] = {{\n{entries}  {{}}}};\n'
            f'extern "C" const ptx::Table dsPtxTables[] = {{\n{known}  {{}}}};\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("-o", dest="output", required=True)
    args = parser.parse_args()
    source = args.output + ".cpp"
    with open(source, "w") as file:
        file.write(translate(ptx.read_ptx(args.program)))
    compiler = next(filter(shutil.which, ("clang++-19", "clang++")), "c++")  # in half of g++'s time; clang++ 14 has no _Float16
    command = [compiler, "-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-w", "-I", INCLUDE,
               source, "-o", args.output]
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
