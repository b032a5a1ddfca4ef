"""The instructions of an agent, from a text and a file."""

import pathlib


def resolve_instructions(instructions="", instructions_file="", extension_dir=None, template_vars=None):
    """The text of a file in the extension's folder, rendered if it is a template, followed by the instructions."""
    parts = []
    if instructions_file.strip() and extension_dir:
        path = pathlib.Path(extension_dir) / instructions_file.strip()
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            parts.append(rendered(text, template_vars or {}) if path.name.endswith(".jinja2") else text)
    return "\n\n".join(it.strip() for it in [*parts, instructions] if it.strip())


def rendered(text, values):
    # A text without a template's marks needs no package.
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text
    import jinja2

    return jinja2.Environment(autoescape=False).from_string(text).render(**values)
