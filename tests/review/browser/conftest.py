"""Debian's Chromium on the real page: a browser, a server in a thread, and a person who uses the one on the other."""

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.review.asked import painted_app
from twinset.generators.decisions.answers import Answer, read_answers
from twinset.review.tasks import ReviewStage

CHROMIUM = shutil.which("chromium")
DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
END = "Nothing is left to do. Thank you!"


@pytest.fixture(scope="module")  # a running loop of Playwright's for longer would break tests that run one
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed; `make browser`, as root, installs Debian's")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an app on a free port, from a thread; the base of its addresses."""
    config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


class Visitor:
    """A person at the page of tasks. context: of the browser; its pages share cookies and storage."""

    def __init__(self, context: BrowserContext, link: str) -> None:
        self.context = context
        context.set_default_timeout(0)  # pytest's own limit is the guard
        self.page: Page = context.new_page()
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda line: self.problems.append(line.text) if line.type == "error" else None)
        self.page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        self.page.goto(link)
        self.page.wait_for_selector("#task[data-open], #task:has-text('Nothing is left')")

    @property
    def task(self) -> str:
        return self.page.get_attribute("#task", "data-id") or ""

    @property
    def question(self) -> str:
        return self.page.get_attribute("#guide", "data-question") or ""

    @property
    def done(self) -> int:
        return int(self.page.inner_text("#pace").split()[0])

    def ready(self) -> None:
        self.page.wait_for_selector("#task[data-open]")

    def leaves(self, act: Callable[[], object]) -> str:
        """Do something once the task can be answered, and wait for another one or the end; the id of the first."""
        self.ready()
        before = self.task
        act()
        self.page.wait_for_function(
            "before => document.getElementById('task').dataset.id !== before && (document.getElementById('title')"
            ".textContent.startsWith('Nothing is left') || document.getElementById('task').dataset.open)",
            arg=before,
        )
        return before

    def press(self, *keys: str) -> str:
        """Press keys that lead to another task; the id of the one before."""
        return self.leaves(lambda: [self.page.keyboard.press(key) for key in keys])

    def saved(self) -> None:
        self.page.wait_for_function(
            "() => Object.keys(localStorage).every(key => !key.startsWith(document.querySelector('meta[name=unsent]')"
            ".content)) && document.getElementById('trouble').hidden"
        )

    def findings(self) -> list[str]:
        """What axe-core has against the page, of any weight."""
        violations: list[dict[str, Any]] = Axe().run(self.page).response["violations"]
        return [f"{rule['id']} ({rule['impact']}): {rule['nodes'][0]['html']}" for rule in violations]


class Served:
    """A server with tasks, and the people who come to it."""

    def __init__(self, browser: Browser, out: Path, stack: ExitStack, *stages: ReviewStage) -> None:
        app, self.tokens = painted_app(out, stages)
        self.base = stack.enter_context(serving(app))
        self.stages, self._browser, self._out, self._stack = stages, browser, out, stack

    def link(self, name: str = "anna") -> str:
        return f"{self.base}/{'admin' if name == 'admin' else ''}?token={self.tokens[name]}"

    def visit(self, name: str = "anna", **settings: Any) -> Visitor:
        context = self._browser.new_context(**{**DESKTOP, **settings})
        self._stack.callback(context.close)
        return Visitor(context, self.link(name))

    def answers(self) -> list[Answer]:
        place = self._out / "_review" / "answers.sqlite"
        answers = [answer for stage in self.stages for answer in read_answers(place, stage.name)]
        return sorted(answers, key=lambda answer: answer.at)


@pytest.fixture
def serve(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:
        yield lambda *stages: Served(browser, tmp_path, stack, *stages)
