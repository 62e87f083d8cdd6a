"""Recordings as files: everything comes back, the same recording is the same bytes, and what is damaged says so."""

from __future__ import annotations

import json
import string
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import fasim
from fasim.errors import UsageError
from fasim.gpu import recording_file
from fasim.gpu.recording import BY_KERNEL, STORED, RecordedArgument, Recording, plain_module, recorded_argument, recorded_output
from fasim.gpu.recording_file import find_recordings, load, save
from fasim.report.measured import Card, MachineInstruction, Output, Profile, Timing
from fasim.sm.values import Value, parse_argument
from fasim.toolchain import CompiledModule

PTX = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{ ret; }\n"
CARD = Card("NVIDIA H200", "9.0", "580.159.04", 132, 150_110_011_392, 62914560, 1980000, 3201000)
BARE = Recording("bare", "k", "k", "k.ptx", plain_module(PTX, "k.ptx", "sm_90"), (1, 1, 1), (32, 1, 1), 0, ())


def same(a, b):
    """Equality with arrays by type, shape and bits."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, np.generic):
        return type(a) is type(b) and a.tobytes() == b.tobytes()
    if hasattr(a, "__dataclass_fields__"):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


texts = st.text(string.printable + "äß€\U0001f600", max_size=20)
names = st.text(string.ascii_letters + "_<>:, ", min_size=1, max_size=12)
numbers = st.integers(0, 2**53)
floats = st.floats(0, 1e12, allow_nan=False)
some_arrays = arrays.arrays(
    st.sampled_from(["u1", "i2", "u2", "f2", "i4", "f4", "i8", "u8", "f8", "?"]), arrays.array_shapes(min_dims=1, max_dims=3, max_side=4)
)
scalars = st.one_of(st.none(), arrays.arrays(st.sampled_from(["f4", "i8", "u2"]), 1).map(lambda a: a[0]))
shas = st.text("0123456789abcdef", min_size=64, max_size=64)
sizes = st.tuples(*[st.integers(1, 1024)] * 3)
modules = st.builds(
    CompiledModule,
    st.one_of(st.just(PTX), texts), st.binary(max_size=30), st.just("sm_90"), names, texts, texts,
    st.dictionaries(names, names, max_size=2), names, st.dictionaries(names, st.integers(0, 255), max_size=2),
)  # fmt: skip
instructions = st.builds(
    MachineInstruction,
    numbers, texts, numbers, st.lists(st.tuples(names, st.integers(0, 999)), max_size=3).map(tuple), *[numbers] * 6,
    st.dictionaries(names, numbers, max_size=2),
)  # fmt: skip
counters = st.dictionaries(names, floats, max_size=3)
profiles = st.builds(Profile, names, counters, counters, st.lists(instructions, max_size=3).map(tuple))
timings = st.builds(Timing, *[floats] * 5, *[st.integers(0, 10**6)] * 4, floats)
stored = st.one_of(some_arrays, scalars).map(lambda value: recorded_argument(Value("x", value, "f32"), STORED))
arguments = st.one_of(
    stored, st.builds(RecordedArgument, names, st.sampled_from([BY_KERNEL, "f32[4]:normal"]), names, st.one_of(st.none(), sizes), shas)
)
outputs = st.one_of(
    st.builds(recorded_output, names, names, some_arrays), st.builds(recorded_output, names, names, some_arrays, st.just(0))
)
options = st.dictionaries(names, st.one_of(st.integers(-(2**31), 2**63), names, st.booleans()), max_size=3)
defines = st.dictionaries(names, st.one_of(st.none(), st.integers(-9, 9), names), max_size=2)
recordings = st.builds(
    Recording,
    names, names, names, texts, modules, sizes, sizes, st.integers(0, 232448), st.lists(arguments, max_size=3).map(tuple),
    seed=st.integers(0, 2**63), collection=names, options=options, defines=defines, flops=st.integers(0, 2**62),
    variables=st.dictionaries(names, st.binary(max_size=9), max_size=2), card=st.one_of(st.none(), st.just(CARD)), date=texts,
    tools=st.dictionaries(names, names, max_size=2), outputs=st.lists(outputs, max_size=3).map(tuple), printed=texts,
    profile=st.one_of(st.none(), profiles), timings=st.dictionaries(st.sampled_from(["cold", "warm"]), timings, max_size=2),
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("recordings")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(recording=recordings, share=st.booleans())
def test_everything_comes_back(folder, recording, share):
    path = folder / "x.zip"
    save(path, recording, share_cubin=share)
    again = load(path)
    for each in fields(recording):
        assert same(getattr(again, each.name), getattr(recording, each.name)), each.name
    first = path.read_bytes()
    save(path, again, share_cubin=share)
    assert path.read_bytes() == first
    assert not list(folder.glob(".*"))


def test_what_stands_in_the_file(tmp_path):
    timing = Timing(100.0, 90.0, 110.0, 80.0, 120.0, 6, 300, 3, 10**9, 1755.0)
    module = CompiledModule(PTX, b"\x7fELF", "sm_90", "k.cu", "source", "", {}, "NVRTC 13.5")
    save(tmp_path / "k.zip", replace(BARE, module=module, card=CARD, timings={"cold": timing}, printed="lane 0\n"))
    with zipfile.ZipFile(tmp_path / "k.zip") as archive:
        assert set(archive.namelist()) == {"run.json", "kernel.ptx", "kernel.cubin", "source.cu"}
        facts = json.loads(archive.read("run.json"))
    assert facts["schema"] == "fasim.recording/1"
    assert (facts["arch"], facts["compiler"], facts["card"]["name"]) == ("sm_90", "NVRTC 13.5", "NVIDIA H200")
    assert facts["timings"]["cold"]["tflops"] == 10.0
    assert len(facts["cubin_sha256"]) == len(facts["ptx_sha256"]) == 64


@pytest.mark.parametrize(("elements", "kept"), [(16384, True), (16385, False)])
def test_large_outputs_are_a_hash(elements, kept):
    values = np.arange(elements, dtype=np.float32)
    output = recorded_output("o", "f32", values)
    assert (output.values is not None) == kept
    values[0] = 5
    assert not kept or output.values[0] == 0
    assert recorded_output("o", "f32", values).sha256 != output.sha256


def test_machine_code_is_shared(tmp_path):
    code = {name: plain_module(PTX, "k.ptx", "sm_90", cubin=cubin) for name, cubin in (("a", b"1"), ("b", b"1"), ("c", b"2"))}
    for name, module in code.items():
        save(tmp_path / f"{name}.zip", replace(BARE, name=name, module=module), share_cubin=True)
    assert len(list((tmp_path / "cubins").iterdir())) == 2
    assert [load(tmp_path / f"{name}.zip").module.cubin for name in code] == [b"1", b"1", b"2"]
    assert [path.name for path in find_recordings([tmp_path])] == ["a.zip", "b.zip", "c.zip"]
    for path in (tmp_path / "cubins").iterdir():
        path.unlink()
    # all but the machine code is still there
    assert load(tmp_path / "a.zip").module == replace(code["a"], cubin=b"")


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "good.zip"
    save(path, replace(BARE, arguments=(recorded_argument(Value("p", np.arange(999.0), "f64"), STORED),)))
    return path


def rewritten(path, changes):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= {name: change(members.get(name)) for name, change in changes.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if data is not None:
                archive.writestr(name, data)


def facts(change):
    def apply(data):
        found = json.loads(data)
        change(found)
        return json.dumps(found).encode()

    return {"run.json": apply}


DAMAGED = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no recording"),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(b"LZMA", b"lzma").replace(b"\0\0", b"\0\1")),
    "another zip": lambda path: rewritten(path, {"run.json": lambda data: None}),
    "no PTX": lambda path: rewritten(path, {"kernel.ptx": lambda data: None}),
    "no JSON": lambda path: rewritten(path, {"run.json": lambda data: b"{"}),
    "a list": lambda path: rewritten(path, {"run.json": lambda data: b"[]"}),
    "no inputs": lambda path: rewritten(path, {"inputs.npz": lambda data: None}),
    "no npz": lambda path: rewritten(path, {"inputs.npz": lambda data: b"PK nothing"}),
    "cut npz": lambda path: rewritten(path, {"inputs.npz": lambda data: data[:-40]}),
    "a field missing": lambda path: rewritten(path, facts(lambda found: found.pop("grid"))),
    "a field more": lambda path: rewritten(path, facts(lambda found: found.update(colour="red"))),
    "a field of another type": lambda path: rewritten(path, facts(lambda found: found.update(arguments=7))),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damage(good, damage):
    DAMAGED[damage](good)
    with pytest.raises(UsageError, match=r"good.zip is not a recording, or is damaged") as caught:
        load(good)
    assert caught.value.exit_code == 2


@given(at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_flipped_bit_is_found_or_does_not_matter(good, at, bit):
    data = bytearray(good.read_bytes())
    original = load(good)
    data[int(at * len(data))] ^= 1 << bit
    path = good.with_name("flipped.zip")
    path.write_bytes(data)
    try:
        again = load(path)
    except UsageError:
        return
    assert same(again, original)


@pytest.mark.parametrize("schema", ["fasim.recording/2", "other", None])
def test_a_newer_form(good, schema):
    rewritten(good, facts(lambda found: found.update(schema=schema)))
    with pytest.raises(UsageError, match=rf"good.zip has the form {schema!r}; this fasim reads fasim.recording/1"):
        load(good)


def test_no_file(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*x.zip: No such file"):
        load(tmp_path / "x.zip")
    with pytest.raises(UsageError, match=r"there is no recording .*x.zip"):
        find_recordings([tmp_path / "x.zip"])
    with pytest.raises(UsageError, match=r"there are no recordings \(.zip\) below"):
        find_recordings([tmp_path])


def test_an_older_file_stays_whole(good, monkeypatch):
    before = good.read_bytes()

    def full(*args, **fields):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recording_file.zipfile.ZipFile, "writestr", full)
    with pytest.raises(UsageError, match=r"cannot save .*good.zip: No space left on device"):
        save(good, BARE)
    assert good.read_bytes() == before
    assert [path.name for path in good.parent.iterdir()] == ["good.zip"]


def test_a_folder_in_the_way(tmp_path):
    (tmp_path / "x").write_text("a file")
    with pytest.raises(UsageError, match="cannot save"):
        save(tmp_path / "x" / "y.zip", BARE)


@pytest.mark.parametrize(
    ("argument", "ok"),
    [
        (recorded_argument(parse_argument("p=f32[4]:normal", 0, 5), "f32[4]:normal"), True),
        (recorded_argument(Value("p", np.zeros(4, np.float32), "f32"), "f32[4]:normal"), False),
        (recorded_argument(Value("p", np.arange(4.0), "f64"), STORED), True),
        (replace(recorded_argument(Value("p", np.arange(4.0), "f64"), STORED), sha256="0" * 64), False),
    ],
)
def test_other_bytes_than_were_recorded(argument, ok):
    module = plain_module(PTX, "k.ptx", "sm_90")
    recording = replace(
        BARE, module=module, arguments=(argument, RecordedArgument("n", "u32:7", "u32", None)), seed=5, tools={"numpy": "1.0"}
    )
    kernel = recording.load_kernel()
    if not ok:
        with pytest.raises(
            UsageError, match=r"recording bare: argument p \(.*, seed 5\) has other bytes .*recorded with numpy 1.0; this is"
        ):
            recording.make_arguments(kernel)
        return
    values = recording.make_arguments(kernel)
    assert [value.name for value in values] == ["p", "n"]
    assert int(values[1].value) == 7
    # a launch must not change what the recording holds
    values[0].value[:] = 0
    assert recording.make_arguments(kernel)[0].value.any()


def test_variables_hold_what_they_held():
    module = fasim.compile("__device__ int a = 3; __device__ int b = 4; __global__ void k(int* o) { o[0] = a + b; }")
    name = next(v.name for v in module.kernel("k").program.variables if v.name.endswith("b"))
    kernel = replace(BARE, module=module.compiled, entry=module.kernel("k").program.name, variables={name: b"\x0a\0\0\0"}).load_kernel()
    out = np.zeros(1, np.int32)
    kernel.launch(1, 1, [out])
    assert out[0] == 13


def test_an_output_without_bits_is_only_a_hash(tmp_path):
    output = Output("o", "f32", (3, 4), "ab" * 32)
    save(tmp_path / "x.zip", replace(BARE, outputs=(output,)))
    assert load(tmp_path / "x.zip").outputs == (output,)
