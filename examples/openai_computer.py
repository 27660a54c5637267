"""OpenAI Agents SDK: its computer tool, with the browser of any container that has one.

    async with await AsyncSandbox.connect("docker:web") as sandbox, SandboxComputer(sandbox, "http://localhost:8080/") as computer:
        agent = Agent(name="tester", model="…", tools=[ComputerTool(computer)])
        print((await Runner.run(agent, "Order a pizza.")).final_output)

What the mouse does is told to the page by its own script, at the place that is shown; keys are the browser's. Needs `openai-agents` and
`toolbox-sandbox` here, and Chromium there.
"""
import asyncio
import base64
import json
from typing import Any

from agents import AsyncComputer
from toolbox_sandbox import AsyncSandbox

KEYS = {
    "CTRL": "Control", "CONTROL": "Control", "CMD": "Meta", "META": "Meta", "WIN": "Meta", "SUPER": "Meta", "ALT": "Alt", "OPTION": "Alt", "SHIFT": "Shift",
    "ENTER": "Enter", "RETURN": "Enter", "ESC": "Escape", "ESCAPE": "Escape", "TAB": "Tab", "SPACE": "Space", "BACKSPACE": "Backspace", "DELETE": "Delete", "INSERT": "Insert",
    "HOME": "Home", "END": "End", "PAGEUP": "PageUp", "PAGEDOWN": "PageDown", "UP": "ArrowUp", "DOWN": "ArrowDown", "LEFT": "ArrowLeft", "RIGHT": "ArrowRight",
    "ARROWUP": "ArrowUp", "ARROWDOWN": "ArrowDown", "ARROWLEFT": "ArrowLeft", "ARROWRIGHT": "ArrowRight",
}

MOUSE = """((path, kinds, button) => {
    const at = (x, y) => {  // what is there, also within frames and components
        let found = document.elementFromPoint(x, y);
        for (let inner = found; inner; found = inner ?? found) {
            const box = inner.getBoundingClientRect();
            const within = inner.shadowRoot ?? inner.contentDocument;
            if (!within) break;
            if (inner.contentDocument) { x -= box.left + inner.clientLeft; y -= box.top + inner.clientTop; }
            const next = within.elementFromPoint(x, y);
            inner = next === inner ? null : next;
        }
        return [found, x, y];
    };
    const fire = (kind, [x, y], detail) => {
        const [target, clientX, clientY] = at(x, y);
        if (!target) return;
        const type = kind.startsWith("pointer") ? PointerEvent : MouseEvent;
        const pressed = { bubbles: true, cancelable: true, composed: true, clientX, clientY, detail, button, view: target.ownerDocument.defaultView };
        const goesOn = target.dispatchEvent(new type(kind, pressed));
        if (kind === "mousedown" && goesOn) target.closest("input, textarea, select, button, a[href], [tabindex], [contenteditable]")?.focus();
    };
    kinds.forEach(([kind, step, detail]) => fire(kind, path.at(step), detail));
})"""

SCROLL = """((x, y, dx, dy) => {
    let found = document.elementFromPoint(x, y) ?? document.scrollingElement;
    const moves = (one) => [one.scrollLeft, one.scrollTop].join() !== (one.scrollBy(dx, dy), [one.scrollLeft, one.scrollTop].join());
    while (found && !moves(found)) found = found.parentElement;
})"""


def _click(detail: int, kind: str = "click") -> list[tuple[str, int, int]]:
    return [(name, 0, detail) for name in ("pointermove", "mousemove", "pointerdown", "mousedown", "pointerup", "mouseup", kind)]


class SandboxComputer(AsyncComputer):
    """A browser session. `async with` opens the page, and closes it."""

    environment = "browser"
    dimensions = (0, 0)

    def __init__(self, sandbox: AsyncSandbox, url: str) -> None:
        self._browser, self._url = sandbox.browser, url

    async def __aenter__(self) -> "SandboxComputer":
        await self._browser.go(self._url)
        width, height = await self._evaluate("[innerWidth, innerHeight]")
        self.dimensions = (width, height)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._browser.close()

    async def _evaluate(self, function: str, *arguments: Any) -> Any:
        call = f"{function}({', '.join(map(json.dumps, arguments))})" if arguments else function
        return (await self._browser.call("evaluate", expression=call)).get("value")

    async def screenshot(self) -> str:
        return base64.b64encode(await self._browser.screenshot()).decode()

    async def click(self, x: int, y: int, button: str = "left", *, keys: list[str] | None = None) -> None:
        if button in ("back", "forward"):
            await self._browser.call(button)
            return
        kinds = {"left": (0, "click"), "wheel": (1, "auxclick"), "right": (2, "contextmenu")}
        number, kind = kinds[button]
        await self._evaluate(MOUSE, [[x, y]], _click(1, kind), number)

    async def double_click(self, x: int, y: int, *, keys: list[str] | None = None) -> None:
        await self._evaluate(MOUSE, [[x, y]], [*_click(1), *_click(2), ("dblclick", 0, 2)], 0)

    async def move(self, x: int, y: int, *, keys: list[str] | None = None) -> None:
        await self._evaluate(MOUSE, [[x, y]], [("pointermove", 0, 0), ("mouseover", 0, 0), ("mousemove", 0, 0)], 0)

    async def drag(self, path: list[tuple[int, int]], *, keys: list[str] | None = None) -> None:
        moved = [(kind, step, 0) for step in range(len(path)) for kind in ("pointermove", "mousemove")]
        await self._evaluate(MOUSE, path, [("pointerdown", 0, 1), ("mousedown", 0, 1), *moved, ("pointerup", -1, 1), ("mouseup", -1, 1)], 0)

    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int, *, keys: list[str] | None = None) -> None:
        await self._evaluate(SCROLL, x, y, scroll_x, scroll_y)

    async def type(self, text: str) -> None:
        for number, line in enumerate(text.split("\n")):
            if number:
                await self._browser.call("press", key="Enter")
            await self._evaluate("((text) => document.execCommand('insertText', false, text))", line)

    async def keypress(self, keys: list[str]) -> None:
        await self._browser.call("press", key="+".join(KEYS.get(key.upper(), key) for key in keys))

    async def wait(self) -> None:
        await asyncio.sleep(1)
