"""Tables in Markdown."""

from dataclasses import dataclass, field


@dataclass
class Table:
    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        self.rows.append(tuple(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells))

    def __str__(self) -> str:
        lines = [f"## {self.title}", ""]
        if self.rows:
            lines += [_line(self.header), _line(("---",) * len(self.header)), *map(_line, self.rows), ""]
        return "\n".join(lines + [f"{note}\n" for note in self.notes])


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
