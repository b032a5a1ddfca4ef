# extensions/tools/get_weather.py
import _httpx as httpx

async def run(city: str) -> str:
    """Get current weather for a city."""
    return await _fetch(f"https://wttr.in/{city}?format=3")

async def _fetch(url: str) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get(url)).text
