"""Markdown of strangers on cards: it is shown as it stands, links nowhere and turns nothing round."""

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from twinset.generators.markdown import Markdown, cell, code, fence, plain, short, statements, table

HOSTILE = [
    *("[click](https://evil.example)", "![x](https://evil.example/x.png)", "[click][1]", "[1]: https://evil.example"),
    *("<https://evil.example>", "<a href='https://evil.example'>click</a>", "<img src=x onerror=alert(1)>"),
    *("<!-- x -->", "&lt;script&gt; &#60;b&#62; &amp;", "https://evil.example/a?b=c&d", "HTTP://EVIL.EXAMPLE"),
    *("www.evil.example and WWW.evil.example", "ask me@evil.example or @someone", "see #12 and other/project#3"),
    *("https\\://evil.example", "`https://evil.example` ``x`` `", "http://a|b\\|c|`", "one\r\n\r\n# two"),
    *("one\r[click](x)\u2028three\x85four\x00", "a | b \\| c \\", "**bold** _it_ __b__ ~~gone~~ `code` $x^2$"),
    *("# heading", "> quoted", "- item", "+ item", "1. item", "12) item", "===", "---", "***", "```", "~~~"),
    *("    code", "|---|", "\\", "\\[click](x)"),
]
MARKS = {"link_open", "image", "html_inline", "html_block", "em_open", "strong_open", "s_open", "heading_open", "hr"}
BLOCKS = {"fence", "code_block", "blockquote_open", "bullet_list_open", "ordered_list_open"}
LINKED = re.compile(r"https?://|www\.|\w@\w|@\w|#\d", re.IGNORECASE)


def shown(source: str) -> tuple[str, int]:
    """The text that a browser shows, and the cells of tables; parsed as GitHub does.

    Addresses that GitHub would link are looked for in the text outside of code: the parser links none.
    """
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(source)
    types = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or []}
    assert not types & (MARKS | BLOCKS), source
    page = parser.render(source)
    assert not LINKED.search(text_of(re.sub(r"<code>.*?</code>", "", page))), source
    return text_of(page), len(re.findall(r"<t[dh]\b", page))


def text_of(html: str) -> str:
    """On one line."""
    return one_line(unescape(re.sub(r"<[^>]*>", "", html)))


def one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_others_is_shown_as_it_stands(text: str) -> None:
    assert shown(plain(text))[0] == one_line(text)
    assert shown(f"before {plain(text)} after [1]")[0] == f"before {one_line(text)} after [1]"
    row = shown(table([text, "b"], [[text, "1"], ["a", "2"]]))
    assert row == (one_line(f"{text} b {text} 1 a 2"), 6)


def test_ordinary_captions_stay_readable_and_code_is_not_ended_by_what_it_holds() -> None:
    for caption in ("A man's dog (left) isn't running - it sits, at 5:30!", "Ein Hund; 50 % größer", "a/b #x @ home"):
        assert plain(caption) == cell(caption) == caption
    assert plain("a\u202egnp.exe\u202c, \u2066b\u2069") == "agnp.exe, b"
    assert cell(Markdown("**a**")) == "**a**" and cell(short("x" * 200)) == "x" * 120 + "…"
    assert fence("a") == "```" and fence("a ```` b ``") == "`````"
    assert code("wrong-count") == "`wrong-count`" and code("a|b`c\n| d <i>") == "`a b c d <i>`"
    text = "* **One:\n  two**, and more **three**.\n* four\n\nFive **six**\n* **Seven.** Eight\n"
    assert statements(text) == "One: two. Seven." and statements("") == ""
