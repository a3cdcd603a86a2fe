"""The application of the studio: pages and their twins, forms, files, jobs; everything behind the entrance."""

from __future__ import annotations

import os
import secrets
import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qsl, quote

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from incrowd.errors import AccessDenied, IncrowdError, InvalidParameter, OutputUnavailable
from incrowd.governance.grant import is_csrf_token
from incrowd.methods.local.survey.definition import script
from incrowd.web import replies
from incrowd.web.studio.folder import Folder
from incrowd.web.studio.jobs import Jobs
from incrowd.web.studio.page import Download, Page, PageContent, PageRequest, Redirect
from incrowd.web.studio.pages import pages
from incrowd.web.studio.rendering import Renderer
from incrowd.web.studio.sessions import DOCUMENT, FORM, MARK, UPLOAD, Keys, SessionMiddleware, TrustedProxy
from incrowd.workflows.policy.document import is_policy

_STATIC = {
    "studio.css": "text/css",
    "studio.js": "text/javascript",
    "tools.js": "text/javascript",
    "playground.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_FAULT = "an unexpected error stopped this ({}). This is a bug in incrowd. Set INCROWD_TRACEBACK=1 to see the trace."
_MOST_FIELDS = 5000  # of a form: a policy of many columns has hundreds


def studio_app(folder: Path, keys: Keys, proxy: TrustedProxy | None = None) -> Starlette:
    """Return the studio of one folder, for the browser that holds the keys, or for owners whom a proxy signs on."""
    studio, static = _Studio(Folder(folder.resolve()), keys), files(__package__) / "static"
    routes = [
        *(Route(f"/static/{name}", _constant((static / name).read_bytes(), kind)) for name, kind in _STATIC.items()),
        Route("/static/randomizer.js", _constant(script("randomizer.js"), "text/javascript")),  # as surveys run it
        Route("/jobs/{job}", studio.job),
        Route("/jobs/{job}/stop", studio.stop, methods=["POST"]),
        Route("/upload", studio.upload, methods=["PUT"]),
        Route("/file", studio.file),
        Route("/{page}/{action}", studio.act, methods=["POST"]),
        Route("/{page}", studio.show),
        Route("/", studio.show),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(SessionMiddleware, keys=keys, proxy=proxy)],
        exception_handlers={IncrowdError: studio.refused, HTTPException: studio.lost, Exception: studio.failed},
        lifespan=studio.lifespan,
    )


class _Studio:
    """The handlers of the routes, around one folder and its jobs."""

    def __init__(self, folder: Folder, keys: Keys) -> None:
        self.folder = folder
        self.keys = keys
        self.jobs = Jobs()
        self.placing = Lock()
        self.pages: Mapping[str, Page] = {page.name: page for page in pages()}
        self.renderer = Renderer(tuple(self.pages.values()), folder, keys.mark)

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        yield
        self.jobs.close()

    async def show(self, request: Request) -> Response:
        page = self._page(request)
        page_request = self._page_request(request)
        content = await run_in_threadpool(page.show, page_request)
        if isinstance(content, Redirect):
            return RedirectResponse(content.address, 303)
        return await run_in_threadpool(self._reply, request, page, page_request, content)

    async def act(self, request: Request) -> Response:
        page = self._page(request)
        action = page.actions.get(request.path_params["action"])
        if action is None:
            raise HTTPException(404)
        page_request = self._page_request(request, await self._form(request))
        done = await run_in_threadpool(action, page_request)
        if isinstance(done, Download):
            return _download(done)
        if isinstance(done, PageContent):
            return await run_in_threadpool(self._reply, request, page, page_request, done)
        if page_request.form.get("format") == "json":
            return replies.as_json({"next": done.address})
        return RedirectResponse(done.address, 303)

    def job(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["job"])
        if job is None:
            raise HTTPException(404)
        return replies.as_json(job.to_json())

    async def stop(self, request: Request) -> Response:
        form = await self._form(request)
        self.jobs.stop(request.path_params["job"])
        return RedirectResponse(_local(form.get("back", "/")), 303)

    async def upload(self, request: Request) -> Response:
        """Take a file as the body of a request, in pieces: whole and bounded, or not at all."""
        if not is_csrf_token(request.headers.get(MARK), self.keys.session):
            raise AccessDenied("this page belongs to another session: reload it.")
        name, into = request.query_params.get("name", ""), request.query_params.get("into", "")
        target = self.folder.free(name, into)
        part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        size = 0
        try:
            target.parent.mkdir(mode=0o700, exist_ok=True)
            with open(part, "xb", opener=_private) as file:
                async for piece in request.stream():
                    size += len(piece)
                    if size > UPLOAD:
                        raise HTTPException(413)
                    await run_in_threadpool(file.write, piece)
            with self.placing:  # another tab may have sent a file of this name meanwhile
                target = self.folder.free(name, into)
                part.rename(target)
        except OSError as error:
            raise OutputUnavailable(f"the file was not stored: {error.strerror or 'no reason given'}.") from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)
        return replies.as_json({"name": self.folder.name(target), "bytes": size})

    def file(self, request: Request) -> Response:
        """Send a file of the folder: a policy, or one of a release; a report is shown, everything else is saved."""
        path = self.folder.file(request.query_params.get("name", ""))
        sent = path.name.endswith(".pub.pem") or is_policy(path) or self.folder.is_published(path)
        if not sent:  # rows and private keys are not
            raise HTTPException(404)
        if path.suffix == ".html" and "save" not in request.query_params:
            headers = {"content-security-policy": DOCUMENT}
            return FileResponse(path, media_type="text/html", headers=headers)
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    async def refused(self, request: Request, problem: Exception) -> Response:
        status = 403 if isinstance(problem, AccessDenied) else 400
        if isinstance(problem, IncrowdError) and problem.exit_code == 1 and status == 400:
            status = 422
        return self._problem(request, status, type(problem).__name__, str(problem))

    async def lost(self, request: Request, problem: Exception) -> Response:
        status = problem.status_code if isinstance(problem, HTTPException) else 500
        words = {
            404: "this page does not exist.",
            413: f"a file can have at most {UPLOAD:,} bytes here: copy it into the folder instead.",
        }
        return self._problem(request, status, "InvalidParameter", words.get(status, "the request cannot be read."))

    async def failed(self, request: Request, problem: Exception) -> Response:
        if os.environ.get("INCROWD_TRACEBACK"):
            traceback.print_exception(problem)
        return self._problem(request, 500, "Unexpected", _FAULT.format(type(problem).__name__))

    def _problem(self, request: Request, status: int, kind: str, text: str) -> Response:
        if _wants_json(request):
            return replies.error(status, kind, text)
        parameters = {
            name: value for name, value in request.query_params.items() if name in ("policy", "data", "release")
        }
        page_request = PageRequest(self.folder, self.jobs, parameters)
        html = self.renderer.problem(page_request, text[:1].upper() + text[1:])
        return Response(html, status, media_type="text/html")

    def _reply(self, request: Request, page: Page, page_request: PageRequest, content: PageContent) -> Response:
        if _wants_json(request):
            return replies.as_json(self.renderer.twin(page, page_request, content))
        return Response(self.renderer.html(page, page_request, content), media_type="text/html")

    def _page(self, request: Request) -> Page:
        page = self.pages.get(request.path_params.get("page", "open"))
        if page is None:
            raise HTTPException(404)
        return page

    def _page_request(self, request: Request, form: Mapping[str, str] | None = None) -> PageRequest:
        return PageRequest(self.folder, self.jobs, dict(request.query_params), form or {})

    async def _form(self, request: Request) -> dict[str, str]:
        """Return the fields of a form, which must contain the CSRF token."""
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > FORM:
                raise HTTPException(413)
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except (ValueError, UnicodeDecodeError):
            raise InvalidParameter("the form cannot be read.") from None
        form = dict(pairs)
        if not is_csrf_token(request.headers.get(MARK) or form.get("mark"), self.keys.session):
            raise AccessDenied("this page is not of this session: reload it. Nothing was done.")
        return {name: value for name, value in form.items() if name != "mark"}


def _private(path: str, flags: int) -> int:
    """Open a new file that its owner alone can read: what is dropped may be rows of people."""
    return os.open(path, flags, 0o600)


def _download(made: Download) -> Response:
    """Return a file to be saved; one that lies on the disk is removed afterwards."""
    kind = "application/octet-stream"
    if isinstance(made.content, bytes):
        headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(made.name)}"}
        return Response(made.content, media_type=kind, headers=headers)
    task = BackgroundTask(made.content.unlink)
    return FileResponse(made.content, media_type=kind, filename=made.name, background=task)


def _constant(content: bytes, kind: str) -> Callable[[Request], Response]:
    def reply(_request: Request) -> Response:
        return PlainTextResponse(content, media_type=kind)

    return reply


def _wants_json(request: Request) -> bool:
    return request.query_params.get("format") == "json" or request.method == "PUT"


def _local(address: str) -> str:
    """Return an address of this studio, whatever a form says.

    >>> _local("//elsewhere.example"), _local("/plan?policy=a.yaml")
    ('/', '/plan?policy=a.yaml')
    """
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else "/"
