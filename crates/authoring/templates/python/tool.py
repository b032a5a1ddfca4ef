"""A tool. `holdfast ext build {{id}}` builds the component, `holdfast ext test {{id}}` runs tests.yaml.

Import what you need up here: in the component there is no file system to import from later.
"""

from holdfast import tool


# The docstring is what a model reads; the type hints become the schema of the arguments.
@tool(effects="pure")
def count_words(text: str) -> int:
    """Counts the words of a text.

    Args:
        text: The text to count.
    """
    return len(text.split())
