"""What instructions did: registers, memory, costs, copies; and the names of registers over a whole walk."""

from __future__ import annotations

import numpy as np
import pytest

from fasim.errors import DeadlockError, UsageError
from fasim.numerics.dtypes import short_name
from fasim.trace.breaks import MemoryBreak, RegisterBreak
from fasim.trace.event import is_nan
from fasim.trace.view import lanes_array, numbers
from tests.trace.launches import FLASH, OWN, Launch, of_cases

WALKED = [
    FLASH,
    of_cases("out_divergent_loops"),
    of_cases("out_f16x2"),
    of_cases("out_cvt_modes"),
    of_cases("out_local_array"),
    of_cases("out_vote_match"),
    OWN["prints"],
]


@pytest.mark.parametrize("launch", WALKED, ids=[launch.name for launch in WALKED])
def test_a_name_stands_for_what_was_written_last(launch: Launch) -> None:
    """Registers share rows: as long as one is said to be alive, no other one may have been written there."""
    stepper = launch.stepper(check=False)
    written: dict[tuple[int, str, str], np.ndarray] = {}
    known: dict[tuple[int, str, str], np.ndarray] = {}
    compared = 0
    while stepper.state.next is not None and stepper.position < 4000:
        following = stepper.state.next
        for register in stepper.names.live_at(following.pc) if stepper.position % 7 == 0 else []:
            key = following.warp, register.function, register.name
            if key in written:
                row = stepper.state.row(following.warp, register.bank, register.row)
                lanes = known[key] & lanes_array(following.lanes)
                assert (row[lanes] == written[key][lanes]).all(), (stepper.position, register)
                compared += int(lanes.sum())
        stepper.step()
        event = stepper.event()
        assert event is not None
        for change in event.registers:
            key = event.warp, stepper.names.function_at(event.pc), change.operand.name
            written[key] = np.where(lanes_array(event.active), change.new, written.get(key, change.new))
            known[key] = lanes_array(event.active) | known.get(key, np.zeros(32, bool))
            # other lanes keep what they had, unless it is a collective that others have waited at
            if event.kind == "lanes":
                assert not change.changed[~lanes_array(event.active)].any()
    assert compared > 100


def test_operands_stand_in_the_text() -> None:
    for launch in WALKED:
        program, names = launch.kernel().program, launch.kernel().register_names
        for pc, source in enumerate(program.source):
            if source is not None:
                for operand in names.operands[pc]:
                    if operand.name[0] == "%" and operand.name[1:2] in "rfp" and operand.name != "%cc":
                        assert operand.name in source.text, (source.text, operand)


def test_registers_by_name() -> None:
    stepper = FLASH.stepper()
    while stepper.event() is None or not stepper.event().text.endswith("%tid.x;"):
        stepper.step()
    event = stepper.event()
    assert event is not None
    name = event.registers[0].operand.name
    assert stepper.state.register(0, name).tolist() == list(range(32)) == event.registers[0].new.tolist()
    assert stepper.state.register(0, "%tid.x").tolist() == list(range(32))
    assert stepper.state.register(3, "%tid.x").tolist() == list(range(96, 128))
    with pytest.raises(UsageError, match="%nothing is no register of this kernel"):
        stepper.state.register(0, "%nothing")
    with pytest.raises(UsageError, match="not in use here"):
        stepper.state.register(0, stepper.names.operands[-30][0].name)
    with pytest.raises(UsageError, match="warps 0 to 3"):
        stepper.state.registers(4)


def test_matrix_operands_are_seen_as_pairs_of_halves() -> None:
    stepper = FLASH.stepper(check=False)
    seen = set()
    for pc, source in enumerate(FLASH.kernel().program.source):
        if source is not None and source.mnemonic.startswith("mma"):
            operands = stepper.names.operands[pc]
            seen.add(tuple((each.seen_as, each.writes) for each in operands))
    assert (("f32", True),) * 4 + (("f16x2", False),) * 6 + (("f32", False),) * 4 in seen


@pytest.mark.parametrize("name", ["bc_lds32_strides", "bc_ldmatrix_layouts", "bc_cp_async_writes", "out_atomics_shared"])
def test_costs_add_up_to_those_of_a_launch(name: str) -> None:
    launch = of_cases(name)
    wanted = launch.launch(launch.make())
    stepper = launch.stepper(check=False)
    found: dict[str, list[int]] = {}
    while stepper.state.next is not None:
        stepper.step()
        event = stepper.event()
        assert event is not None
        if event.access is not None and event.executed and (cost := event.access.wavefronts) is not None:
            sums = found.setdefault(event.text, [0, 0, 0])
            for i, value in enumerate((1, cost.source_actual, cost.source_ideal)):
                sums[i] += value
    accesses: dict[str, list[int]] = {}
    for access in wanted.shared_accesses:
        if access.op:
            sums = accesses.setdefault(access.text, [0, 0, 0])
            for i, value in enumerate((access.executions, access.source_wavefronts, access.source_ideal)):
                sums[i] += value
    ctas = int(np.prod(wanted.grid))
    assert {text: [value * ctas for value in sums] for text, sums in found.items()} == accesses != {}


def test_accesses_are_what_memory_shows() -> None:
    """Stores put registers where the event says."""
    stepper = of_cases("out_local_array").stepper(check=False)
    stored = {"global": 0, "local": 0}
    while stepper.state.next is not None:
        following = stepper.state.next
        sources = [each for each in stepper.names.operands[following.pc] if each.reads]
        before = {each.name: stepper.state.row(following.warp, each.bank, each.row) for each in sources}
        stepper.step()
        event = stepper.event()
        assert event is not None
        access = event.access
        if access is None or event.kind != "store" or access.bytes_per_lane != 4:
            continue
        value = event.text.rsplit(",", 1)[1].strip(" ;")
        for lane in np.flatnonzero(lanes_array(access.lanes)).tolist():
            address = access.addresses[lane]
            if access.space == "local":
                memory, at = stepper.state.local_memory(event.warp, lane), address
            else:
                name, at = stepper.state.buffer_at(address) or ("", 0)
                memory = stepper.state.buffers[name].reshape(-1).view(np.uint8)
            if value in before:
                assert int(memory[at : at + 4].view(np.uint32)[0]) == int(before[value][lane])
                stored[access.space] += 1
    assert min(stored.values()) > 0


def test_lanes_that_store_in_different_spaces() -> None:
    stepper = OWN["generic"].stepper()
    name = "out"
    for where, byte_offset, stored in (("shared", 4 * 11, 7), (name, 4 * 12, 7)):
        stepper.go_to(0)
        hit = stepper.run_to([MemoryBreak(where, byte_offset, 4, np.int32(stored).tobytes())])
        assert hit is not None and hit.event is not None and hit.event.access is not None
        assert hit.event.access.space == "generic" and hit.event.access.wavefronts is None
        assert hit.event.written_ranges("shared") == ((0, 48),)
        [(start, end)] = hit.event.written_ranges("global")
        assert stepper.state.buffer_at(start) == (name, 48) and end - start == 80


def test_copies_on_their_way() -> None:
    stepper = FLASH.stepper()
    committed = 0
    arrived: list[tuple[int, int]] = []
    issued: list[tuple[int, int]] = []
    while stepper.state.next is not None:
        groups = stepper.state.copy_groups(0)
        data = {group.number: group.ranges for group in groups}
        pending = stepper.state.copies(0)
        stepper.step()
        event = stepper.event()
        assert event is not None
        if event.warp != 0:
            continue
        if event.kind == "cp_async":
            [new] = stepper.state.copies(0)[len(pending) :]
            assert event.access is not None and new.byte_offsets == event.access.addresses and new.committed == 0
            assert new.bytes_per_lane == event.access.bytes_per_lane and len(new.data[5]) == new.bytes_per_lane
            assert stepper.places.source(new.pc).line == event.source.line
            issued += [(at, at + 16) for at in new.byte_offsets]
        elif event.kind == "cp_commit":
            assert event.copies is not None and event.copies.group == committed
            committed += 1
            assert set(stepper.state.committed_groups(0)) == {committed}
            assert stepper.state.copy_groups(0)[-1].committed and not (groups[-1].committed)
        elif event.kind == "cp_wait":
            assert event.copies is not None
            kept = event.copies.pending
            assert event.copies.arrived == data[committed - 1 - kept]
            assert [group.number for group in stepper.state.copy_groups(0)] == list(range(committed - kept, committed))
            arrived += event.copies.arrived
            for copy in pending:
                if copy.groups[0] < committed - kept:
                    at = copy.byte_offsets[7]
                    assert stepper.state.shared_memory[at : at + 16].tobytes() == copy.data[7]
    assert committed == 4 and sum(b - a for a, b in arrived) == sum(b - a for a, b in issued) > 0


def test_lanes_that_part() -> None:
    stepper = of_cases("out_divergent_loops").stepper()
    most = 0
    while stepper.state.next is not None:
        following = stepper.state.next
        splits = stepper.state.splits(following.warp)
        most = max(most, len(splits))
        here = [split for split in splits if split.pc == following.pc and split.state == "ready"]
        assert [split.lanes for split in here] == [following.lanes]
        lanes = 0
        for split in splits:
            assert not lanes & split.lanes
            lanes |= split.lanes
        assert lanes == stepper.state.live_lanes(following.warp)
        stepper.step()
        event = stepper.event()
        assert event is not None and event.lanes == following.lanes and event.active & ~event.lanes == 0
    assert most > 1


def test_views_cannot_be_written() -> None:
    stepper = FLASH.stepper()
    for view in (stepper.state.shared_memory, stepper.state.shared_undefined, *stepper.state.buffers.values()):
        assert view is not None
        with pytest.raises(ValueError, match="read-only"):
            view.reshape(-1)[0] = 1


def test_what_nobody_has_written() -> None:
    stepper = FLASH.stepper()
    undefined = stepper.state.shared_undefined
    assert undefined is not None and undefined[:1000].all()
    while not stepper.state.next or stepper.event() is None or stepper.event().kind != "store":
        stepper.step()
    event = stepper.event()
    assert event is not None and event.access is not None and event.access.space == "shared"
    for start, end in event.access.ranges():
        assert not stepper.state.shared_undefined[start:end].any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_is_nan(dtype) -> None:
    values = np.array([0, 1, np.inf, -np.inf, np.nan, -np.nan, 5e-5, -0.0], dtype)
    bits = values.view(f"u{values.itemsize}")
    name = short_name(values.dtype)
    wanted = np.isnan(values).tolist()
    assert is_nan(bits.astype(np.uint32) if dtype == np.float16 else bits, name).tolist() == wanted
    if dtype == np.float16:
        pairs = bits.astype(np.uint32)
        assert is_nan(pairs << 16, "f16x2").tolist() == is_nan(pairs, "f16x2").tolist() == wanted
        brain = np.array([0x7F80, 0x7F81, 0xFFC0, 0x7C01, 0x3F80], np.uint32)
        assert is_nan(brain, "bf16").tolist() == is_nan(brain << 16, "bf16x2").tolist() == [False, True, True, False, False]


def test_numbers() -> None:
    values = np.array([0.5, -2.0, np.inf], np.float32)
    assert numbers(values.view(np.uint32), "f32").tolist() == values.tolist()
    assert numbers(np.array([0xC0003C00, 0x00017BFF], np.uint32), "f16x2").tolist() == [[1.0, -2.0], [65504.0, 2.0**-24]]
    assert numbers(np.array([0xC0003F80], np.uint32), "bf16x2").tolist() == [[1.0, -2.0]]
    assert numbers(np.array([0xFFFF3C00], np.uint32), "f16").tolist() == [1.0]
    assert numbers(np.array([0x3FF0000000000000], np.uint64), "f64").tolist() == [1.0]
    assert numbers(np.array([0xFFFFFFFF], np.uint32), "s32").tolist() == [-1]
    assert numbers(np.array([0xFFFFFFFF], np.uint32), "b32").tolist() == [0xFFFFFFFF]


def test_events_of_any_position_leave_one_where_one_is() -> None:
    stepper = FLASH.stepper()
    stepper.go_to(3000)
    digest = stepper.digest()
    event = stepper.event(500)
    assert event is not None and (event.position, stepper.position, stepper.digest()) == (500, 3000, digest)
    later = stepper.event(5000)
    assert later is not None and (later.position, stepper.position, stepper.digest()) == (5000, 3000, digest)
    assert stepper.event(10**6) is None and stepper.position == 3000
    stepper.go_to(0)
    assert stepper.event() is None


def test_events_that_are_asked_for_again() -> None:
    """Those of places far back are kept, for a while; whichever way one comes to them, they are the same."""
    stepper = FLASH.stepper()
    stepper.go_to_end()
    end = stepper.position
    first = stepper.event(500)
    assert first is not None and stepper.event(500) is first and stepper.position == end
    for position in range(1000, 1100):
        stepper.event(position)
    again = stepper.event(500)
    assert again is not None and again is not first and (again.pc, again.warp, again.active) == (first.pc, first.warp, first.active)
    assert all((a.new == b.new).all() and a.fresh == b.fresh for a, b in zip(first.registers, again.registers))


def test_barriers_that_reduce() -> None:
    """The result stands where the number of the barrier stood, and the last warp writes it for all."""
    launch = OWN["reduced"]
    stepper, results = launch.stepper(), {}
    stepper.go_to_end()
    events = [stepper.event(position) for position in range(stepper.end or 0)]
    bars = [event for event in events if event is not None and event.kind == "bar"]
    assert [(event.arrival.number, event.arrival.opened) for event in bars] == [(3, False), (3, False), (3, True)]
    assert bars[0].arrival.results == bars[1].arrival.results == ()
    for warp, change in [*bars[2].arrival.results, *((bars[2].warp, change) for change in bars[2].registers)]:
        assert change.changed.all() and (change.new == 40).all()
        results[warp] = change.operand.name
    assert sorted(results) == [0, 1, 2]
    for warp, name in results.items():
        stepper.go_to(0)
        hit = stepper.run_to([RegisterBreak(name, 40, warp=warp)])
        assert hit is not None and hit.position == bars[2].position + 1


def test_a_result_of_an_atomic_is_new() -> None:
    """Rows of results that may not stand where operands stand are kept free before they hold a value."""
    stepper = OWN["reduced"].stepper()
    stepper.go_to_end()
    atomics = [event for event in map(stepper.event, range(stepper.end or 0)) if event is not None and event.text.startswith("atom.")]
    assert len(atomics) > 2
    for event in atomics:
        if event.kind == "atom":
            (change,) = [change for change in event.registers if not change.operand.name.startswith("~")]
            assert change.fresh == event.active and not stepper.names.holds(change.operand.name, event.pc)


def test_who_waits_has_done_nothing() -> None:
    stepper = OWN["strangers"].stepper()
    with pytest.raises(DeadlockError):
        stepper.go_to_end()
    waiting = [event for event in map(stepper.event, range(stepper.end or 0)) if event is not None and not event.executed]
    assert [event.text.split()[0] for event in waiting] == ["shfl.sync.bfly.b32"] * 2
    for event in waiting:
        assert event.registers == () and event.access is None and not event.nan_lanes
    (name,) = {waiting[0].text.split()[1].rstrip(",")}
    stepper.go_to(0)
    with pytest.raises(DeadlockError):
        stepper.run_to([RegisterBreak(name)])


def test_registers_of_a_block_and_narrow_ones_are_met_by_name() -> None:
    stepper = OWN["scoped"].stepper()
    hit = stepper.run_to([RegisterBreak("narrow", -3)])
    assert hit is not None and hit.event is not None and hit.event.text.startswith("neg.s16")
    (change,) = hit.event.registers
    assert change.operand.name.startswith("narrow~") and change.new[3] == 0xFFFD
    assert stepper.run_to([RegisterBreak(change.operand.name)], -1) is not None


def test_who_only_arrives_can_open_a_barrier() -> None:
    stepper = OWN["handed"].stepper()
    stepper.go_to_end()
    events = [event for event in map(stepper.event, range(stepper.end or 0)) if event is not None and event.arrival is not None]
    assert [(event.arrival.operation, event.arrival.opened) for event in events] == [("sync", False), ("arrive", True)]
