"""From the data of a card to the constants of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.arch.cards import Card
from fasim.sm.timing.record import PARTS
from fasim.sm.timing.state import CODE_SHIFT, CONSTANTS
from fasim.warp.path import LINE_BYTES, SECTOR_BYTES

Array = np.ndarray[Any, Any]

#: instructions
CODE_LINE = 1 << CODE_SHIFT


def dram_gbps(card: Card, stored_share: float) -> float:
    """GB a second that DRAM gives and takes, which is less where it has to do both."""
    return float(card["memory.dram_mixed_gbps" if stored_share else "memory.dram_read_gbps"])


def constants(
    card: Card,
    *,
    smem_config_bytes: int = 0,
    busy_sms: int = 0,
    storing_sms: float = 0.0,
    dram_share: float = 0.0,
    stored_share: float = 0.0,
    clock_mhz: float = 0.0,
    shared: bool = False,
    code_bytes: int = 0,
) -> Array:
    """int64, in the order of `CONSTANTS`.

    smem_config_bytes: what of the L1 is shared memory. busy_sms: among how many SMs the ways to L2 and DRAM are divided, 0: one has them
    alone; storing_sms: those of them that store at the same time. dram_share: the part of the lines that come from DRAM, 0 to 1;
    stored_share: of those that are stored, the part that goes there. clock_mhz: of the SM, 0 for the card's usual one. shared: whether
    several SMs ask for the same lines. code_bytes: of the kernel.
    """
    cache_bytes = int(card["memory.l1_usable"] * max(card["card.l1_bytes"] - smem_config_bytes, 0))
    sms = max(busy_sms, 1)
    # L2 and DRAM have clocks of their own: to a slower SM they are faster
    slower = clock_mhz / card["clock.mhz"] if clock_mhz else 1.0
    share = card["memory.l2_bytes_a_cycle"] / slower / sms
    write_share = card["memory.l2_write_bytes_a_cycle"] / slower / max(storing_sms, 1.0)
    dram = dram_gbps(card, stored_share) * 1000 / (card["clock.mhz"] * slower) / sms
    cached = {which: card[f"instruction_cache.{which}_bytes"] for which in ("near", "far")}
    ahead = card["instruction_cache.ahead"]
    values = {
        "decoupling": card["ports.decoupling"],
        "ahead": card["mio.ahead"],
        "warp_entries": card["mio.warp_entries"],
        "queue_words": card["mio.queue_words"],
        "wavefront": card["latency.wavefront"],
        "store_extra": card["mio.store_register_cycles"],
        "barrier_each": card["barrier.a_warp"],
        "cta_spacing": card["launch.cta_spacing"],
        "cta_turnover": card["launch.cta_turnover"],
        "l1_sets": cache_bytes // (LINE_BYTES * card["memory.l1_ways"]),
        "l1_ways": card["memory.l1_ways"],
        "l2_sector": round(SECTOR_BYTES / card["memory.sm_l2_bytes_a_cycle"] * PARTS),
        "share_sector": round(SECTOR_BYTES / share * PARTS) if busy_sms else 0,
        "l2_latency": round((card["memory.l2_latency"] - card["memory.l1_latency"]) * slower),
        "far_latency": round((card["memory.l2_far_latency"] - card["memory.l1_latency"]) * slower) if shared else 0,
        "dram_latency": round((card["memory.dram_latency"] - card["memory.l1_latency"]) * slower),
        "dram_sector": round(SECTOR_BYTES / dram * PARTS) if busy_sms else 0,
        "dram_share": round(1024 * dram_share),
        "write_sector": round(SECTOR_BYTES / card["memory.store_bytes_a_cycle"] * PARTS),
        "share_write": round(SECTOR_BYTES / write_share * PARTS) if busy_sms else 0,
        **{name: round(16 * card[f"memory.l2_{name}"]) for name in ("read_piece", "write_piece", "write_part")},
        "part": card["memory.part_cycles"],
        "adu_interval": card["interval.adu"] // 4,
        "commit": card["memory.commit_latency"],
        "tag_queue": card["mio.tag_queue"],
        "stored_share": round(1024 * stored_share),
        "write_behind": card["memory.stores_behind"],
        "cta_rate": round(card["launch.cta_ns"] * sms * card["clock.mhz"] * slower / 1000) if busy_sms else 0,
        "stagger": 0,
        **{f"{which}_code": size // LINE_BYTES if code_bytes > size else 0 for which, size in cached.items()},
        "code_ahead": ahead,
        # measured with one warp, which takes a cycle for an instruction once it is there
        **{f"{which}_miss": round((card[f"instruction_cache.{which}_miss_interval"] - 1) * CODE_LINE) + ahead for which in cached},
    }
    return np.array([values[name] for name in CONSTANTS], np.int64)
