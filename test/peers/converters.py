"""Runs the tools of an MCP server (JSON, as tools/list has them, on stdin) through those converters to the schemas of model providers
that are installed here, and prints for each what it refused or lost: {converter: [what]}. One that isn't installed is left out."""
import json
import logging
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
CONVERTERS = {}


def converter(make):
    CONVERTERS[make.__name__] = make
    return make


# ---- what may not be lost ----


def plain(schema, root=None):
    """A schema without what converters wrap it in: references, an anyOf with null, types in capitals."""
    root = root or schema
    if "$ref" in schema:
        schema = {**root["$defs"][schema["$ref"].rsplit("/", 1)[1]], **{key: value for key, value in schema.items() if key != "$ref"}}
    for either in "anyOf", "any_of", "allOf":
        kinds = [one for one in schema.get(either) or [] if str(one.get("type")).lower() != "null"]
        if len(kinds) == 1:
            schema = {**schema, **plain(kinds[0], root)}
    kind = schema.get("type")
    if isinstance(kind, list):
        [kind] = [one for one in kind if str(one).lower() != "null"]
    kind = getattr(kind, "value", kind)
    return {**schema, "type": str(kind).lower()}


def lost(ours, theirs, where, described=True, root=None):
    """What theirs lacks of ours."""
    root, theirs = root or theirs, plain(theirs, root or theirs)
    found = []
    if ours["type"] != theirs["type"] and not (theirs["type"] == "none" and theirs.get("enum")):  # which says it as well
        found.append(f"{where}: {ours['type']} became {theirs['type']}")
    if described and "description" in ours and ours["description"] not in str(theirs.get("description")):
        found.append(f"{where}: description")
    if "enum" in ours and [one for one in theirs.get("enum") or [] if one is not None] != ours["enum"] and theirs.get("const") not in ours["enum"]:
        found.append(f"{where}: enum")
    if "items" in ours:
        found += lost(ours["items"], theirs.get("items") or {}, f"{where}[]", described, root)
    properties = theirs.get("properties") or {}
    for key, of in ours.get("properties", {}).items():
        found += lost(of, properties[key], f"{where}.{key}", described, root) if key in properties else [f"{where}.{key}: gone"]
    missing = set(ours.get("required", [])) - set(theirs.get("required") or [])
    return found + [f"{where}.{key}: required no more" for key in sorted(missing)]


# ---- converters: each takes a tool (a dict, and as the SDK has it), and gives a schema ----


def sdk_tool(tool):
    from mcp.types import Tool

    return Tool.model_validate(tool)


@converter
def openai_strict():
    from agents.strict_schema import ensure_strict_json_schema

    return lambda tool: ensure_strict_json_schema(json.loads(json.dumps(tool["inputSchema"])))


@converter
def openai_agents():
    from agents.mcp import MCPServerStdio
    from agents.mcp.util import MCPUtil

    server = MCPServerStdio({"command": "true"})
    return lambda tool: MCPUtil.to_function_tool(sdk_tool(tool), server, True).params_json_schema


@converter
def anthropic():
    from anthropic.lib.tools.mcp import async_mcp_tool

    return lambda tool: async_mcp_tool(sdk_tool(tool), None).to_dict()["input_schema"]


@converter
def anthropic_strict():
    from anthropic.lib._parse._transform import transform_schema

    return lambda tool: transform_schema(tool["inputSchema"])


@converter
def google_genai():
    from google.genai._mcp_utils import mcp_to_gemini_tool

    return lambda tool: mcp_to_gemini_tool(sdk_tool(tool)).function_declarations[0].parameters.model_dump(exclude_none=True)


@converter
def langchain_openai_strict():
    from langchain_core.utils.function_calling import convert_to_openai_function

    def convert(tool):
        made = convert_to_openai_function({"title": tool["name"], "description": tool["description"], **tool["inputSchema"]}, strict=True)
        return made["parameters"]

    return convert


@converter
def langchain_google():
    from langchain_google_genai._function_utils import convert_to_genai_function_declarations

    def convert(tool):
        made = convert_to_genai_function_declarations([{"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}])
        made = (made[0] if isinstance(made, list) else made).function_declarations[0]
        return made.parameters.model_dump(exclude_none=True) if made.parameters else made.parameters_json_schema or {"type": "object"}

    return convert


@converter
def langchain_mcp_adapters():
    from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
    from langchain_core.utils.function_calling import convert_to_openai_tool

    def convert(tool):
        made = convert_mcp_tool_to_langchain_tool(None, sdk_tool(tool), connection={"transport": "stdio", "command": "true", "args": []})
        return convert_to_openai_tool(made)["function"]["parameters"]

    return convert


def pydantic_ai(module, transformer, **how):
    walker = getattr(__import__(module, fromlist=[transformer]), transformer)
    return lambda tool: walker(json.loads(json.dumps(tool["inputSchema"])), **how).walk()


@converter
def pydantic_ai_openai():
    return pydantic_ai("pydantic_ai.profiles.openai", "OpenAIJsonSchemaTransformer", strict=True)


@converter
def pydantic_ai_google():
    return pydantic_ai("pydantic_ai.profiles.google", "GoogleJsonSchemaTransformer")


@converter
def adk():
    from google.adk.tools._gemini_schema_util import _to_gemini_schema

    return lambda tool: _to_gemini_schema(tool["inputSchema"]).model_dump(exclude_none=True)


@converter
def llama_index():
    from llama_index.tools.mcp import McpToolSpec

    spec = McpToolSpec(None)
    return lambda tool: spec.create_model_from_json_schema(tool["inputSchema"], model_name=tool["name"]).model_json_schema()


@converter
def autogen():
    from autogen_core.utils import schema_to_pydantic_model

    return lambda tool: schema_to_pydantic_model(tool["inputSchema"]).model_json_schema()


@converter
def crewai():
    from crewai.utilities.pydantic_schema_utils import create_model_from_schema

    return lambda tool: create_model_from_schema(tool["inputSchema"]).model_json_schema()


def run(tools):
    report = {}
    for name, make in CONVERTERS.items():
        try:
            convert = make()
        except ImportError:
            continue
        report[name] = found = []
        for tool in tools:
            try:
                theirs = json.loads(json.dumps(convert(tool), default=lambda value: getattr(value, "value", str(value))))
                found += lost(tool["inputSchema"], theirs, tool["name"])
            except Exception as refusal:  # noqa: BLE001: whatever a library says no with
                found.append(f"{tool['name']}: refused: {type(refusal).__name__}: {refusal}"[:300])
    return report


def compare(tools, made):
    """What others made of them: {converter: {tool: schema}}."""
    return {name: sum((lost(tool["inputSchema"], schemas[tool["name"]], tool["name"]) if tool["name"] in schemas else [f"{tool['name']}: gone"]
                       for tool in tools), []) for name, schemas in made.items()}


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin)), sys.stdout)
