"""All that a calibration found, in memory and as files: JSON with the raw results, and the placement of CTAs as .npz."""

from __future__ import annotations

import dataclasses
import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.gpu.calibrate.placement import FIELDS, Rule, rule
from fasim.gpu.calibrate.values import Measured, rounded, skipped, values
from fasim.report.measured import Card

Array = np.ndarray[Any, Any]
SCHEMA, PLACEMENT_SCHEMA = "fasim.gpu.calibrate/1", "fasim.gpu.placement/1"
_ABOUT = "about"


@dataclass(frozen=True)
class Calibration:
    """Raw results of a card; made: compiler and date. raw, placed: as `measure` returns them."""

    card: Card
    made: str
    version: str
    raw: dict[str, Any]
    placed: dict[str, Array]

    @functools.cached_property
    def values(self) -> list[Measured]:
        """What follows from the raw results."""
        return values(self.raw, self.placed)

    @property
    def skipped(self) -> dict[str, str]:
        """Keys that could not be measured, and why."""
        return skipped(self.raw)

    @property
    def keys(self) -> dict[str, object]:
        """What a data file gets, by `section.key`; names of no section are not for it."""
        card = self.card
        facts: dict[str, object] = {
            "card.name": card.name,
            "card.arch": int(card.arch.removeprefix("sm_")),
            "card.sms": card.sms,
            "card.l2_bytes": card.l2_bytes,
            "card.source": f"fasim gpu calibrate {self.version} on an {card.name}, driver {card.driver}, {self.made}",
        }
        return facts | {each.key: rounded(each) for each in self.values if " " not in each.key}

    def rules(self) -> dict[str, Rule]:
        """How far simple rules describe where CTAs went, by placement."""
        return {name: rule(cta, self.card.sms, int(name[0])) for name, cta in self.placed.items()}

    def json(self) -> str:
        """Card, values and raw results."""
        found = {
            "schema": SCHEMA,
            "card": dataclasses.asdict(self.card),
            "made": self.made,
            "version": self.version,
            "values": {each.key: {"value": each.value, "spread": each.spread, "repetitions": each.repetitions, "unit": each.unit}
                       for each in self.values},
            "skipped": self.skipped,
            "raw": self.raw,
        }  # fmt: skip
        return json.dumps(found, separators=(",", ":")) + "\n"

    def save_placement(self, path: Path) -> None:
        """Write the arrays of the placement, and what they are."""
        about = {
            "schema": PLACEMENT_SCHEMA, "card": dataclasses.asdict(self.card), "made": self.made, "version": self.version,
            "fields": FIELDS, "names": "CTAS_AN_SMxWAVES/whether all stay equally long/which time; a row a CTA, in the order of ctaid.x",
        }  # fmt: skip
        arrays: dict[str, Any] = {name: cta.astype(np.int32) for name, cta in self.placed.items()}
        np.savez_compressed(path, **{_ABOUT: np.array(json.dumps(about)), **arrays})


def read_placement(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """What a file of `save_placement` says of itself, and its arrays.

    Raises: UsageError if it is none.
    """
    with np.load(path) as file:
        if _ABOUT not in file:
            raise UsageError(f"{path} is no placement that fasim gpu calibrate wrote")
        about = json.loads(str(file[_ABOUT]))
        return about, {name: file[name].astype(np.int64) for name in file.files if name != _ABOUT}


def read(text: str, placed: dict[str, Array]) -> Calibration:
    """A calibration from its JSON and its placement.

    Raises: UsageError if the JSON is something else.
    """
    found = json.loads(text)
    if found.get("schema") != SCHEMA:
        raise UsageError("this is no JSON that fasim gpu calibrate wrote")
    return Calibration(Card(**found["card"]), found["made"], found["version"], found["raw"], placed)
