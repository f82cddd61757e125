"""The function of this example, which was registered with `@register_function` before: the price of a part."""

from typing import Annotated

from pydantic import Field

from aeon.tools.function import tool

PRICES = {"P-101": 19.9, "P-102": 4.25, "P-103": 130.0}


@tool
def price_of(
    part: Annotated[str, Field(description="The number of a part, such as P-101.")],
) -> float:
    """The list price of a part, in euros, without tax."""
    if part not in PRICES:
        raise ValueError(f"there is no part {part}; there are {', '.join(PRICES)}")
    return PRICES[part]
