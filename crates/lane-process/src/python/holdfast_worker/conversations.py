"""Conversations and projects, as the host keeps them. A thread is a session, and its id is the session's."""

import dataclasses
import enum
import typing


class UnsetType(enum.Enum):
    """The type of `UNSET`."""

    TOKEN = "UNSET"


# A field that is to stay as it is; `None` removes it.
UNSET = UnsetType.TOKEN


class Shown:
    def to_dict(self):
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class ThreadInfo(Shown):
    """A conversation."""

    id: str
    project_id: typing.Optional[str]
    title: typing.Optional[str]
    channel_id: str
    created_at: int
    last_active_at: int
    is_archived: bool


@dataclasses.dataclass(frozen=True)
class ProjectInfo(Shown):
    """A group of conversations, with what an agent is to know in them."""

    id: str
    name: str
    description: typing.Optional[str]
    icon: typing.Optional[str]
    instructions: typing.Optional[str]
    agent_config: dict
    created_at: int
    updated_at: int
    files: list
    links: list


def thread_of(found):
    return None if found is None else ThreadInfo(**{it.name: found.get(it.name) for it in dataclasses.fields(ThreadInfo)})


def project_of(found):
    if found is None:
        return None
    empty = {"name": "", "agent_config": {}, "files": [], "links": []}
    return ProjectInfo(**{it.name: found.get(it.name) or empty.get(it.name) for it in dataclasses.fields(ProjectInfo)})


def set_ones(**fields):
    return {name: it for name, it in fields.items() if it is not UNSET}


class Conversations:
    """The members of a context that concern conversations."""

    async def list_threads(self, include_archived=False, project_id=None, channel_id=None):
        asked = {"archived": include_archived, "project": project_id, "channel": channel_id}
        return [thread_of(it) for it in await self._wire.ask_later("thread.list", asked)]

    async def get_thread(self, thread_id, include_archived=False):
        asked = {"thread": thread_id, "archived": include_archived}
        return thread_of(next(iter(await self._wire.ask_later("thread.list", asked)), None))

    async def create_thread(self, *, thread_id, channel_id=None, project_id=None, title=None):
        """A conversation in which nothing has been said yet. It begins when a message names it as its `thread_id`."""
        made = {"thread": thread_id, "channel": channel_id or self.extension_id}
        made.update({name: it for name, it in {"project": project_id, "title": title}.items() if it is not None})
        return thread_of(await self._wire.ask_later("thread.update", made))

    async def update_thread(self, thread_id, *, title=UNSET, project_id=UNSET, is_archived=UNSET):
        changed = set_ones(title=title, project=project_id, archived=is_archived)
        return thread_of(await self._wire.ask_later("thread.update", {"thread": thread_id, **changed}))

    async def archive_thread(self, thread_id):
        return await self.update_thread(thread_id, is_archived=True) is not None

    async def get_thread_history(self, thread_id):
        """What was said: mappings with `role`, `content` and `created_at`. `None` if there is no such conversation."""
        said = await self._wire.ask_later("thread.history", thread_id)
        if said is None and await self.get_thread(thread_id, include_archived=True) is not None:
            return []
        return said

    async def list_projects(self):
        return [project_of(it) for it in await self._wire.ask_later("project.list")]

    async def get_project(self, project_id):
        return next((it for it in await self.list_projects() if it.id == project_id), None)

    async def create_project(
        self, *, name, description=None, icon=None, instructions=None, agent_config=None, files=None, links=None
    ):
        fields = {
            "name": name, "description": description, "icon": icon, "instructions": instructions,
            "agent_config": agent_config or {}, "files": files or [], "links": links or [],
        }  # fmt: skip
        return project_of(await self._wire.ask_later("project.update", {"fields": fields}))

    async def update_project(self, project_id, **fields):
        asked = {"project": project_id, "fields": set_ones(**fields)}
        return project_of(await self._wire.ask_later("project.update", asked))

    async def delete_project(self, project_id):
        return await self._wire.ask_later("project.remove", project_id)
