"""Parses docstrings: the description of the function and of each parameter, in the Google, NumPy and reStructuredText styles."""

import re

REST = re.compile(r"^\s*:param(?:\s+[^:]+?)?\s+\*{0,2}(\w+)\s*:\s*(.*)$")
GOOGLE = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s+(.+)$")
NUMPY = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
FIELD = re.compile(r"^\s*:\w+")
PARAMETERS = ("args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters")


def cleaned(text):
    """A docstring without its indentation."""
    lines = (text or "").expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    margin = min(margins, default=0)
    lines = [lines[0].lstrip(), *(line[margin:] for line in lines[1:])]
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return lines


def documented(text):
    """The description of the function, and of each parameter."""
    lines = cleaned(text)
    said, about, section, names = [], {}, None, []
    for number, line in enumerate(lines):
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        bare, underlined = line.strip().rstrip(":").lower(), bool(following) and set(following) <= {"-", "="}
        heading = not line[:1].isspace() and bare and (line.rstrip().endswith(":") or underlined)
        rest = REST.match(line)
        if rest:
            section, names = "rest", [rest.group(1)]
            about[names[0]] = rest.group(2).strip()
        elif FIELD.match(line):
            section = "over"
        elif heading and bare in PARAMETERS:
            section, names = "numpy" if underlined else "google", []
        elif heading and section in ("google", "numpy"):
            section = "over"
        elif section == "google" and GOOGLE.match(line) and begins(line, names, about, lines[number - 1]):
            name, words = GOOGLE.match(line).groups()
            names = [name]
            about[name] = words.strip()
        elif section == "numpy" and line.strip() and set(line.strip()) <= {"-", "="}:
            continue
        elif section == "numpy" and line[:1].strip() and NUMPY.match(line):
            names = [name.strip(" *") for name in NUMPY.match(line).group(1).split(",")]
            about.update({name: "" for name in names})
        elif section in ("google", "numpy", "rest") and line.strip():
            for name in names:
                about[name] = f"{about[name]} {line.strip()}".strip()
        elif section is None:
            said.append(line)
    return "\n".join(said).strip(), about


def begins(line, names, about, before):
    """Whether a line of a Google-style section begins a parameter: a deeper indented one continues the one before."""
    indent = len(line) - len(line.lstrip())
    if not names:
        begins.indent = indent
    return indent <= begins.indent
