"""Samples of an evaluation, as tests want them."""
import os
import tempfile

os.environ.setdefault("INSPECT_DISPLAY", "none")

from inspect_ai import Task, eval  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.solver import generate, solver, use_tools  # noqa: E402


def model_of(outputs):
    """A model that says these things, one after the other."""
    for output in outputs:
        output.usage = ModelUsage()  # otherwise it is counted, which takes a network
    return get_model("mockllm/model", custom_outputs=outputs)


class Sandbox:
    def __init__(self, kind):
        self.kind = kind

    def _eval(self, solvers, model, samples=1):
        """The samples of an evaluation that has gone well."""
        task = Task(dataset=[Sample(input=f"sample {n}") for n in range(samples)], solver=solvers, sandbox=self.kind)
        with tempfile.TemporaryDirectory() as logs:
            log = eval(task, model=model, log_dir=logs, display="none", max_samples=samples, max_sandboxes=samples,
                       log_level="error", fail_on_error=True)[0]
            assert log.status == "success", log.error and log.error.traceback
            return list(log.samples)

    def run(self, body, samples=1, model="mockllm/model"):
        """Runs `await body(n)` inside each sample, sandbox and all; gives what it returned, in the order of n."""
        results = {}

        @solver
        def within():
            async def solve(state, generate):
                number = int(state.input_text.split()[1])
                results[number] = await body(number)
                return state

            return solve

        self._eval(within(), model, samples)
        return [results[number] for number in sorted(results)]

    def calls(self, tools, calls):
        """A model that calls the tools: [(name, arguments)]. Gives what it is told of each: a text, or an error."""
        outputs = [ModelOutput.for_tool_call("mockllm/model", name, arguments) for name, arguments in calls]
        outputs.append(ModelOutput.from_content("mockllm/model", "done"))
        sample = self._eval([use_tools(tools), generate()], model_of(outputs))[0]
        told = [message for message in sample.messages if message.role == "tool"]
        return [message.error if message.error else message.text for message in told]
