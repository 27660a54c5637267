"""usage: openai_computer_test.py FOLDER: an agent whose model has its lines written for it sits before a browser."""
import asyncio
import base64
import sys

from agents import Agent, ComputerTool, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseComputerToolCall, ResponseOutputMessage
from toolbox_sandbox import AsyncSandbox

from openai_computer import SandboxComputer

folder = sys.argv[1]
PAGE = """<title>t</title><style>* { position: absolute; margin: 0; padding: 0; width: 80px; height: 20px }</style>
<body style="width: 100%; height: 3000px"><button style="left: 10px; top: 10px" onclick="said('click ' + event.clientX)" ondblclick="said('double')">b</button>
<input id=i style="left: 10px; top: 50px" onkeydown="said(event.key)"><input type=checkbox style="left: 10px; top: 90px" onchange="said('checked')">
<div style="left: 10px; top: 130px" onmousedown="said('down')" onmousemove="said('move')" onmouseup="said('up')" oncontextmenu="said('menu')">d</div>
<iframe style="left: 200px; top: 10px; width: 200px; height: 100px; border: 5px solid" srcdoc="<button style='position: absolute; left: 20px; top: 30px' onclick=&quot;parent.said('framed')&quot;>f</button>"></iframe>
<script>const all = []; function said(what) { all.push(what); document.title = all.join() }</script></body>"""

ACTIONS = [
    {"type": "click", "x": 20, "y": 20, "button": "left"}, {"type": "double_click", "x": 20, "y": 20}, {"type": "click", "x": 20, "y": 60, "button": "left"},
    {"type": "type", "text": "héllo"}, {"type": "keypress", "keys": ["CTRL", "A"]}, {"type": "type", "text": "other\n"}, {"type": "click", "x": 50, "y": 100, "button": "left"},
    {"type": "click", "x": 20, "y": 140, "button": "right"}, {"type": "drag", "path": [{"x": 20, "y": 135}, {"x": 30, "y": 140}]}, {"type": "click", "x": 240, "y": 52, "button": "left"},
    {"type": "scroll", "x": 20, "y": 300, "scroll_x": 0, "scroll_y": 500}, {"type": "move", "x": 5, "y": 5}, {"type": "screenshot"},
]


class Scripted(Model):
    def __init__(self):
        self.turn, self.heard = 0, []

    async def get_response(self, *, input, **_):
        self.heard = input
        said = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "done", "annotations": []}]}
        output = ResponseOutputMessage.model_validate(said)
        if self.turn < len(ACTIONS):
            call = {"id": f"c{self.turn}", "call_id": f"c{self.turn}", "type": "computer_call", "status": "completed", "pending_safety_checks": [], "action": ACTIONS[self.turn]}
            output = ResponseComputerToolCall.model_validate(call)
        self.turn += 1
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


async def main():
    set_tracing_disabled(True)
    model, url = Scripted(), "data:text/html;base64," + base64.b64encode(PAGE.encode()).decode()
    async with await AsyncSandbox.connect("local:", options=["--dir", f"{folder}/there"]) as sandbox:
        async with SandboxComputer(sandbox, url) as computer:
            assert min(computer.dimensions) > 300, computer.dimensions
            agent = Agent(name="tester", model=model, tools=[ComputerTool(computer)])
            assert (await Runner.run(agent, "Do it.", max_turns=30)).final_output == "done"
            said = (await sandbox.browser.call("evaluate", expression="[all.join(), i.value, scrollY]"))["value"]
    outputs = [item for item in model.heard if item.get("type") == "computer_call_output"]
    assert len(outputs) == len(ACTIONS) and all(item["output"]["image_url"].startswith("data:image/png;base64,iVBOR") for item in outputs)
    events = [event for event in said[0].split(",") if event not in ("Control", "a", "A", "move")]
    assert events == ["click 20", "click 20", "click 20", "double", "Enter", "checked", "down", "up", "menu", "down", "up", "framed"], said
    assert said[1] == "other" and said[2] > 0, said


asyncio.run(main())
