"""What the timing model knows of a card: numbers in `gpus/NAME.toml`, each file with its source."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fasim.arch.table import Architecture, architecture
from fasim.errors import UsageError

_FOLDER = Path(__file__).parent / "gpus"


@dataclass(frozen=True)
class Card:
    """A GPU of which the model has figures.

    name: as the driver says it. values: by `section.key`, for example `latency.lds`; cycles unless the key says otherwise. taken_over:
    keys whose values are those of another card, since there are no figures of this one.
    """

    key: str
    name: str
    arch: Architecture
    sms: int
    source: str
    values: dict[str, Any]
    taken_over: frozenset[str] = frozenset()

    def __getitem__(self, key: str) -> Any:
        try:
            return self.values[key]
        except KeyError:
            raise UsageError(
                f"the data of {self.name} ({self.key}.toml) has no {key}; `fasim gpu calibrate` makes a complete file"
            ) from None

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or what stands in for it."""
        return self.values.get(key, default)


def card_names() -> list[str]:
    """The cards that come with fasim."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


@functools.cache
def card(name: str) -> Card:
    """The card of that name, or of a data file that `fasim gpu calibrate` wrote.

    Raises: UsageError listing the known ones.
    """
    path = Path(name) if name.endswith(".toml") else _FOLDER / f"{name.lower()}.toml"
    known = ", ".join(card_names())
    if name.endswith(".toml") and not path.is_file():
        raise UsageError(f"there is no file {name}; `fasim gpu calibrate -o {name}` makes the data of a GPU, and fasim knows {known}")
    if not path.is_file():
        raise UsageError(f"fasim has no timing data of {name!r}; known: {known}, or the path of a .toml file")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        values = {f"{section}.{key}": value for section, keys in data.items() for key, value in keys.items()}
        about = data["card"]
        like = card(about["like"]).values if "like" in about else {}
        taken_over = frozenset(key for key in like if key not in values and not key.startswith("accuracy."))
        values = {key: like[key] for key in taken_over} | values
        arch = architecture(f"sm_{about['arch']}")
        return Card(path.stem, about["name"], arch, about["sms"], about["source"], values, taken_over)
    except (tomllib.TOMLDecodeError, KeyError, AttributeError) as error:
        raise UsageError(f"{path} is not the data of a card: {error}") from error
