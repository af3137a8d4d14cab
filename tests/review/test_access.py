"""Attacks on links and limits: old links, links of others, withdrawn ones, and strangers who use up bounds."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.review.asked import SECRET, all_kinds, painted_app, painted_desk
from twinset.contracts.errors import WrongUse
from twinset.review.access import Access, Person, Refused
from twinset.review.app import make_app
from twinset.review.links import Links

ANNA, BEN, ADMIN = Person("anna", "annotator"), Person("ben", "annotator"), Person("admin", "admin")
DAY = 86_400


def test_a_link_ends(tmp_path: Path) -> None:
    """A link that leaked years ago opened the page."""
    now = 1e9
    access = Access(SECRET, ["anna"], days=30, now=lambda: now)
    token = access.token(ANNA)
    app = make_app(painted_desk(tmp_path, all_kinds(tmp_path)), access, "demo")
    client = TestClient(app)
    reply = client.get("/", params={"token": token})
    assert f"Max-Age={30 * DAY}" in reply.headers["set-cookie"]
    now += 30 * DAY - 1
    assert client.get("/api/next").status_code == 200
    now += 1
    assert client.get("/api/next").status_code == 403, "nor does the cookie outlive the link"
    assert "come to its end" in client.get("/", params={"token": token}).text
    assert client.get("/", params={"token": access.token(ANNA)}).status_code == 200


def test_a_withdrawn_link_opens_nothing_any_more_also_on_a_page_that_is_open(tmp_path: Path) -> None:
    """A link that was forwarded to somebody else could be ended only for everybody."""
    serving = Access(SECRET, ["anna", "ben"], links=Links(tmp_path))
    app = make_app(painted_desk(tmp_path, all_kinds(tmp_path)), serving, "demo")
    anna, ben, token = TestClient(app), TestClient(app), serving.token(ANNA)
    anna.get("/", params={"token": token})
    ben.get("/", params={"token": serving.token(BEN)})
    Links(tmp_path).withdraw("anna")  # as another process does
    assert anna.get("/api/next").status_code == 403
    assert anna.get("/", params={"token": token}).status_code == 403
    assert ben.get("/api/next").status_code == 200
    again = Access(SECRET, ["anna", "ben"], links=Links(tmp_path))
    with pytest.raises(Refused, match="no link to this page any more"):
        again.person(token, "annotator")
    assert again.person(again.token(ANNA), "annotator") == ANNA
    with pytest.raises(WrongUse, match="'anne': has no link to this page; those who have: anna, ben, admin"):
        Links(tmp_path).withdraw("anne")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"anna": "1"}', '["anna"]', "\x00", " " * 1_000_001])
def test_a_wrong_file_of_links_is_refused(tmp_path: Path, content: str) -> None:
    """It decides who is let in: where it cannot be read, nobody is."""
    serving = Access(SECRET, ["anna"], links=Links(tmp_path))
    client = TestClient(make_app(painted_desk(tmp_path, []), serving, "demo"))
    client.get("/", params={"token": serving.token(ANNA)})
    (tmp_path / "links.json").write_text(content)
    with pytest.raises(WrongUse, match="not the file of links"):
        Links(tmp_path).withdraw("anna")
    assert client.get("/api/next").status_code == 500


def test_a_link_of_another_person_asks_before_it_replaces_a_session(tmp_path: Path) -> None:
    """Mallory sends Anna Mallory's link: Anna's answers would be stored as Mallory's. A browser sends no strict cookie
    with a link of another site, so that the page cannot know at that moment.
    """
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path), ["anna", "mallory"])
    browser = TestClient(app)
    browser.get("/", params={"token": tokens["anna"]})
    anna = Access(SECRET, ["anna"]).csrf(ANNA)
    kept = dict(browser.cookies)
    browser.cookies.clear()
    browser.get("/", params={"token": tokens["mallory"]})
    browser.cookies.update(kept)
    page = browser.get("/").text
    assert "Go on as anna" in page and "Go on as mallory" in page
    own = {"X-CSRF-Token": anna}  # a page of Anna's that is still open
    [task] = browser.get("/api/next", params={"after": 0}, headers=own).json()
    body = {"id": task["id"], "option": "o0"}
    assert browser.post("/api/answer", json=body, headers=own).json()["progress"]["done"] == 1
    assert browser.get("/api/next").status_code == 403, "nobody says whose request it is"
    assert browser.post("/choose", data={"csrf": "0" * 64}).status_code == 403
    chosen = browser.post("/choose", data={"csrf": anna}, follow_redirects=False)
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/")
    assert 'content="anna"' in browser.get("/").text
    assert browser.get("/api/rest").json()["progress"]["done"] == 1


@pytest.mark.slow
def test_strangers_behind_the_same_proxy_use_up_nothing_of_annotators(tmp_path: Path) -> None:
    """1,200 requests without a link, all from the proxy's address, shut everybody out."""
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path))
    anna, admin, stranger = (TestClient(app) for _ in range(3))
    anna.get("/", params={"token": tokens["anna"]})
    codes = [stranger.get("/static/review.css" if n % 2 else "/").status_code for n in range(1200)]
    assert set(codes[:50]) == {200, 401}
    assert codes.count(429) > 900
    assert 429 in {stranger.get("/", params={"token": "made-up"}).status_code for _ in range(100)}
    for path in ("/", "/api/next", "/static/review.css"):
        assert anna.get(path).status_code == 200, path
    assert admin.get("/admin", params={"token": tokens["admin"]}).status_code == 200, "nor of who comes by a link now"
    for path in ("/admin", "/static/admin.css"):
        assert admin.get(path).status_code == 200, path


def test_nothing_of_the_host_header_comes_back(tmp_path: Path) -> None:
    """A redirect to the host that the request names sends people elsewhere, if a cache keeps it."""
    app, tokens = painted_app(tmp_path, all_kinds(tmp_path))
    for name, home in (("anna", "/"), ("admin", "/admin")):
        client = TestClient(app)
        client.get(home, params={"token": tokens[name]})
        for path in ("/", "/help/", "/api/next/", "/admin/", "/static", "/static/", "//", "/nothing", "/choose/"):
            headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
            reply = client.get(path, headers=headers, follow_redirects=False)
            assert "evil" not in reply.text + str(reply.headers), path
