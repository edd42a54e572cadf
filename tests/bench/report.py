"""`server/PERFORMANCE.md`: its prose stays, the figures between its marks are put in anew."""

import datetime
import os
import platform
import re
from pathlib import Path

SERVER = Path(__file__).resolve().parents[2] / "server"
PAGE = SERVER / "PERFORMANCE.md"
PICTURE = SERVER / "performance.png"


def machine(load: float) -> str:
    """What was measured on, and its load before."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal: *(\d+)", Path("/proc/meminfo").read_text())
    gigabytes = int(memory[1]) / 1e6 if memory else 0
    python = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{platform.system()} {platform.release()}"
    name, today = cpu[1] if cpu else platform.machine(), datetime.datetime.now(datetime.UTC)
    return (
        f"Measured on {today:%Y-%m-%d}: {name},"
        f" {os.cpu_count()} cores, {gigabytes:.0f} GB, {system}, {python}; load before"
        f" {load:.1f}{', so others were at work' if load > 1 else ''}."
    )


def write(name: str, figures: str) -> None:
    """Put these figures between the marks of this name; ValueError where there are none."""
    text = PAGE.read_text("utf-8")
    marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(text):
        raise ValueError(f"{PAGE.name} has no marks for {name}")
    whole = marks.sub(lambda found: f"{found[1]}\n{figures}\n\n{found[2]}", text)
    PAGE.write_text(whole, "utf-8")
