"""The server of rating mode: for this computer's user alone, as `medtasks view`'s.

Nothing that it sends names a model, a run or a judge's verdict: answers are known by their
position in the rater's order. The only thing that a page can write is a rating.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler
from jinja2 import Environment

from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line

from ..board.build import build_board
from ..intake.shown_layouts import layout_of
from ..site.pages import page_environment
from ..verify.media import picture, shown_media
from ..view.environment import POLICY
from ..view.local_server import add_headers, require_own_origin, serve_application
from ..view.static_files import DOWNLOAD, TYPES, asset_files, response
from .session import LONGEST_COMMENT, RatingSession

_RATE = Path(__file__).parent
_VIEW = _RATE.parent / "view"
_ASSETS = asset_files(_RATE.parent / "site", _VIEW, _RATE)
_FORM = "rating"
_LARGEST_FORM = 2**17
"""Bytes: a comment may have characters of four bytes, which are sent as three each."""

Report = Callable[[str], None]
"""Called with an error that pages do not show, since it may name a run."""


def application(session: RatingSession, token: str, report: Report) -> web.Application:
    """The server's application, for requests below ``/<token>/`` to this host and its port."""
    handlers = _RatingHandlers(session, token, report, _environment())
    server = web.Application(client_max_size=_LARGEST_FORM, middlewares=[handlers.guard])
    server.router.add_get(f"/{token}/{{name:.*}}", handlers.show)
    server.router.add_post(f"/{token}/{_FORM}", handlers.rate)
    server.on_response_prepare.append(add_headers)
    return server


async def serve(
    session: RatingSession, port: int, ready: Callable[[str], None], report: Report
) -> None:
    """Serve a rater's session until it is cancelled, on a ``port`` (0 for any that is free).

    ``ready`` is called with the address, which contains the token, once requests are answered.

    Raises:
        UsageError: the port is taken.
    """
    token = secrets.token_urlsafe(24)
    await serve_application(application(session, token, report), token, port, ready)


def _environment() -> Environment:
    """The templates of rating mode, with the site's filters and the view's media."""
    board = build_board((), title="Rating")
    folders = [_RATE / "pages", _VIEW / "pages"]
    environment = page_environment(board, served=True, further=folders)
    environment.globals["policy"] = POLICY
    return environment


@dataclass(frozen=True)
class _RatingHandlers:
    """The handlers of requests for the pages of a session, whose addresses begin with the token."""

    session: RatingSession
    token: str
    report: Report
    environment: Environment

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests of other sites, and answer errors with a page that states them."""
        require_own_origin(request, f"/{self.token}/{_FORM}")
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except UsageError as error:  # of the session: it names an answer by its position
            return self._page("refused.html.j2", status=400, text=str(error))
        except Exception as error:
            self.report(str(error) if isinstance(error, MedtasksError) else first_line(error))
            what = "Not saved" if request.method == "POST" else "This failed"
            text = f"{what}; the terminal in which `medtasks rate` runs says why."
            return self._page("refused.html.j2", status=500, text=text)

    async def show(self, request: web.Request) -> web.Response:
        """The page or file that an address names."""
        name = request.match_info["name"]
        if not name:
            raise web.HTTPFound(f"/{self.token}/{self._address_of(self.session.next_open())}")
        return await asyncio.to_thread(self._answer, name, request.query)

    async def rate(self, request: web.Request) -> web.Response:
        """Write the rating of a form, and redirect to the next answer."""
        fields = await request.post()
        form = {name: str(value) for name, value in fields.items()}
        position = _position(request.query)
        await asyncio.to_thread(self.session.rate, position, form)
        return web.Response(status=303, headers={"Location": self._address_behind(position)})

    def _answer(self, name: str, parameters: Mapping[str, str]) -> web.Response:
        """The page or file called ``name``."""
        if name in _ASSETS:
            kind = TYPES.get(Path(name).suffix, DOWNLOAD)
            return response(_ASSETS[name].read_bytes(), kind)
        if name == "answer.html":
            return self._answer_page(_position(parameters))
        if name == "done.html":
            progress = self.session.progress()
            return self._page("done.html.j2", progress=progress)
        if name == "media":
            return self._media(parameters)
        raise web.HTTPNotFound(text="There is no such page.")

    def _answer_page(self, position: int) -> web.Response:
        """The page that asks about the answer at a position."""
        asked = self.session.asked(position)
        return self._page(
            "answer.html.j2",
            position=position,
            asked=asked,
            rating=self.session.rating(position),
            progress=self.session.progress(),
            layout=layout_of(load_spec(asked.sample.task).metadata.benchmark),
            media=shown_media(asked.sample, asked.manifest),
            pictures=f"media?answer={position}",
            form=f"{_FORM}?answer={position}",
            behind=self._address_behind(position),
            longest_comment=LONGEST_COMMENT,
        )

    def _address_behind(self, position: int) -> str:
        """The address of the page behind an answer's: the next answer's, or the last page."""
        if position < self.session.total:
            return self._address_of(position + 1)
        return self._address_of(None)

    def _address_of(self, position: int | None) -> str:
        return "done.html" if position is None else f"answer.html?answer={position}"

    def _media(self, parameters: Mapping[str, str]) -> web.Response:
        """A picture or frame of an answer's sample, as PNG, or small as JPEG."""
        asked = self.session.asked(_position(parameters))
        number = parameters.get("n", "0")
        if not number.isdecimal() or len(number) > 6:
            raise UsageError(f"{number}: not the number of a picture.")
        is_small = parameters.get("small") == "1"
        sample = asked.sample
        content = picture(sample.task, sample.sample_id, asked.manifest, int(number), is_small)
        return response(content, "image/jpeg" if is_small else "image/png")

    def _page(self, template: str, status: int = 200, **values: object) -> web.Response:
        """A page from a template."""
        text = self.environment.get_template(template).render(session=self.session, **values)
        return response(text, status=status)


def _position(parameters: Mapping[str, str]) -> int:
    """The position of an answer that an address states; 0, which no answer has, without one."""
    number = parameters.get("answer", "")
    return int(number) if number.isdecimal() and len(number) <= 9 else 0
