"""The browser tool against widgets that take more than a click or a line of text: menus that open under the mouse, things that are dragged, editors."""
import contextlib
import re
from pathlib import Path

import pytest

from harness import web
from harness.containers import REPO
from harness.web import Site, Web

PAGES = Path(REPO) / "test/pages"


@pytest.fixture
def widgets():
    web.browser()
    with contextlib.closing(Site({f"/{path.name}": path.read_text() for path in PAGES.iterdir()})) as site:
        yield site


def said(w):
    """What the page has noted since it was asked last."""
    return w.value("(t=>{log.textContent='';return t.trim()})(log.textContent)")


def test_what_shows_under_the_mouse_is_there_and_stays(client, widgets):
    w = Web(client)
    assert "Widgets" not in w.go(widgets.url("/mouse.html")) and "Delete" not in w.at
    assert "Widgets" in w.click("Products", how="hover")
    w.click("Widgets")
    assert said(w) == "widgets"
    assert "Delete" in w.click("Mail one", how="hover")
    w.click("Delete")
    assert said(w) == "deleted"


def test_every_button_of_a_mouse_and_every_place(client, widgets):
    w = Web(client)
    w.go(widgets.url("/mouse.html"))
    w.click("File one", how="double")
    assert said(w) == "opened"
    assert "Rename" in w.click("File one", how="right")
    w.click("Rename")
    assert said(w) == "renamed"
    w.click("Other button", how="middle")
    assert said(w) == "middle 1"
    w.click("Board", x=40, y=30)
    assert said(w) == "board 40,30"
    w.click("Board", how="left")
    assert said(w) == "board 150,50"


def test_dragging(client, widgets):
    w = Web(client)
    for _ in range(2):  # what the browser drags, and what the page moves by itself
        w.go(widgets.url("/mouse.html"))
        w.click("Card", how="drag", to=w.id("Column"))
        assert said(w) == "dropped card"
        w.click("knob", how="drag", to=w.id("Goal"))
        there = int(said(w).removeprefix("at "))
        assert 280 < there < 330
        w.click("knob", how="drag", x=-100, y=0)
        assert abs(int(said(w).removeprefix("at ")) - (there - 100)) <= 1
        w.click("Board")
        assert said(w) == "board 150,50"  # the button is up again
        w.click("knob", how="drag", x=-777, y=0)
        assert abs(int(said(w).removeprefix("at ")) - (there - 877)) <= 1  # beyond the edge, by parts of a pixel
    for wrong, words in ({"how": "x"}, "how is left"), ({"how": "drag"}, "drag goes with"), ({"x": 4}, "x goes with y"), ({"to": 4}, "drag goes with"):
        w.click("Board", words, **wrong)
    w.click("Board", "no element 9999999", how="drag", to=9999999)
    w.click("Board")
    assert said(w).endswith("board 150,50")


def test_what_can_be_clicked_has_a_line_also_without_words(client, widgets):
    w = Web(client)
    w.go(widgets.url("/mouse.html"))
    w.click("Settings")
    assert said(w) == "icon"
    bare = re.findall(r"\[(\d+)\] generic \[clickable: True\]", w.at)
    for number, word in zip(bare, ("bare", "held"), strict=True):
        w.act("click", element_id=int(number))
        assert said(w) == word
    assert "valuenow: 3, valuemin: 0, valuemax: 10" in w.line("progressbar")


TEXT = "one\ntwo\n\tthree"


@pytest.mark.parametrize("times", [1, 300])
def test_lines_go_into_rich_editors_in_their_order(client, widgets, times):
    """What is inserted as text with line feeds leaves the caret in the paragraph before, in Chromium."""
    w = Web(client)
    for name in ("paragraphs", "lines", "kept", "list", "sends"):
        w.go(widgets.url("/editors.html"))
        w.type(name, TEXT * times)
        text = w.value(f"document.querySelector('[aria-label={name}]').innerText").replace("\xa0", " ")
        assert re.sub(r"\n+", "\n", text).strip("\n").removeprefix("x") == TEXT * times
        assert said(w) == ""


def test_an_editor_whose_field_nobody_sees(client, widgets):
    w = Web(client)
    w.go(widgets.url("/editors.html"))
    w.type("code", " is typed\n\there")
    assert w.value("view.textContent") == "code is typed\n\there"


def test_the_command_line_has_a_mouse(client, widgets):
    w = Web(client)
    w.go(widgets.url("/mouse.html"))

    def cli(*words, status=0):
        done = client.cli("web_browser", *map(str, words))
        assert done.returncode == status, done

    cli("click", w.id("Card"), "--how", "drag", "--to", w.id("Column"))
    assert said(w) == "dropped card"
    cli("click", w.id("Board"), "--at", "10,20")
    assert said(w) == "board 10,20"
    cli("click", w.id("Board"), "--at", "10", status=2)
    cli("click", w.id("Board"), "--how", "twice", status=1)
