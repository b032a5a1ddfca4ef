"""Times and sizes in words."""

import datetime

SPANS = (
    ("year", 31_536_000), ("month", 2_592_000), ("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1),
)  # fmt: skip
UNITS = ("KiB", "MiB", "GiB", "TiB")


def relative_time(epoch):
    """How long ago a time is, or how far ahead, such as `3 hours ago`. An empty text where there is no time."""
    if not epoch or epoch <= 0:
        return ""
    seconds = int(datetime.datetime.now(datetime.timezone.utc).timestamp() - epoch)
    for name, length in SPANS:
        count = abs(seconds) // length
        if count:
            span = f"{'an' if name == 'hour' else 'a'} {name}" if count == 1 else f"{count} {name}s"
            return f"{span} ago" if seconds > 0 else f"{span} from now"
    return "now"


def format_event_time(ts):
    """A time in the forms that tools show: `event_time_iso`, `event_time_local`, `event_time_tz` and `event_time_relative`."""
    names = ("event_time_iso", "event_time_local", "event_time_tz", "event_time_relative")
    if not ts or ts <= 0:
        return dict.fromkeys(names, "")
    moment = datetime.datetime.fromtimestamp(ts, tz=datetime.timezone.utc)
    local = moment.astimezone()
    zone = local.strftime("%Z")
    return dict(zip(names, (moment.isoformat(), f"{local:%Y-%m-%d %H:%M:%S} {zone}", zone, relative_time(ts))))


def format_bytes(n):
    """A number of bytes, such as `1.5 MiB`."""
    if n < 1024:
        return f"{max(int(n), 0)} Bytes"
    for unit in UNITS:
        n /= 1024
        if n < 1024 or unit == UNITS[-1]:
            return f"{n:.1f} {unit}"
