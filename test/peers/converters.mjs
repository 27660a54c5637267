// The tools of an MCP server (JSON on stdin) as the providers of the Vercel AI SDK send them: {converter: {tool: schema}}. What is sent is kept
// from going anywhere. usage: converters.mjs FOLDER
import { createRequire } from 'node:module';

const require = createRequire(`${process.argv[2]}/`);
const kept = body => async (url, init) => { body.sent = JSON.parse(init.body); throw new Error('kept'); };
const providers = {
    'vercel-openai': fetch => require('@ai-sdk/openai').createOpenAI({ apiKey: 'x', fetch }).chat('gpt-4o'),
    'vercel-openai-responses': fetch => require('@ai-sdk/openai').createOpenAI({ apiKey: 'x', fetch }).responses('gpt-4o'),
    'vercel-anthropic': fetch => require('@ai-sdk/anthropic').createAnthropic({ apiKey: 'x', fetch })('claude-sonnet-4-5'),
    'vercel-google': fetch => require('@ai-sdk/google').createGoogleGenerativeAI({ apiKey: 'x', fetch })('gemini-2.5-pro'),
};
const shapes = [
    sent => sent.tools.map(tool => tool.function && [tool.function.name, tool.function.parameters]),
    sent => sent.tools.map(tool => tool.parameters && [tool.name, tool.parameters]),
    sent => sent.tools.map(tool => tool.input_schema && [tool.name, tool.input_schema]),
    sent => [sent.tools].flat().flatMap(tool => tool.functionDeclarations ?? []).map(one => [one.name, one.parameters ?? one.parametersJsonSchema ?? { type: 'object' }]),
];
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const tools = JSON.parse(Buffer.concat(chunks)).map(({ name, description, inputSchema }) => ({ type: 'function', name, description, inputSchema }));
const report = {};
for (const [name, make] of Object.entries(providers)) {
    const body = {};
    try {
        await make(kept(body)).doGenerate({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }], tools });
    } catch (error) {
        if (!body.sent) throw error;
    }
    report[name] = Object.fromEntries(shapes.flatMap(shape => shape(body.sent)).filter(Boolean));
}
console.log(JSON.stringify(report));
