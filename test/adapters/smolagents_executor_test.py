"""usage: smolagents_executor_test.py FOLDER: a code agent whose model has its lines written for it."""
import sys

from smolagents import ChatMessage, CodeAgent, Model, tool
from toolbox_sandbox import Sandbox

from smolagents_executor import ToolboxExecutor

folder = sys.argv[1]
TURNS = [
    "import os\nos.chdir(where)\n\ndef double(n):\n\n    return 2 * n\n\nprint('said', double(21))",
    "1 / 0",
    "print(double(1), shout('hi'))",
    "input('who? ')",
    "print('still', double(2))\nimport os; os._exit(3)",
    "print(double(3))",
    "import os\nprint('before')\nfinal_answer({'where': os.getcwd(), 'numbers': [1, 2], 'long': 'x' * 100_000})",
]


class Scripted(Model):
    def generate(self, messages, **_):
        self.heard = messages
        return ChatMessage(role="assistant", content=f"Thought: so.\n<code>\n{TURNS.pop(0)}\n</code>")


@tool
def shout(text: str) -> str:
    """Says it loud.

    Args:
        text: What to say.
    """
    return text.upper() + "!"


with Sandbox.connect("local:", options=["--dir", f"{folder}/there"]) as sandbox, ToolboxExecutor(sandbox) as executor:
    model = Scripted()
    agent = CodeAgent(tools=[shout], model=model, executor=executor, verbosity_level=0, max_steps=8)
    answer = agent.run("Do it.", additional_args={"where": folder})
    told = str([message.content for message in model.heard])
    assert (answer["numbers"], len(answer["long"])) == ([1, 2], 100_000), str(answer)[:300]
    for words in ("said 42", "ZeroDivisionError", "2 HI!", "it waited for input", "still 4", "The interpreter has ended", "NameError: name "):
        assert words in told, (words, told[-6000:])
    agent.cleanup()
    assert sandbox.methods.bash_session_list() == []
