/* Any JSON as a model's answer: each provider's stream of it must be events of valid JSON, whatever it lacks.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "commands/model_proxy/proxy_dialect.h"
#include "commands/model_proxy/proxy_streams.h"
#include "commands/model_proxy/usage_count.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_events(const struct buf *out)
{
    const char *at = buf_str(out), *end = at + out->len;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        assert(line);
        if (strncmp(at, "data: ", 6) == 0 && strncmp(at, "data: [DONE]", 12) != 0)
            assert(json_check((struct span){at + 6, (size_t)(line - at) - 6}, NULL) == 0);
        else
            assert(line == at || strncmp(at, "event: ", 7) == 0 || strncmp(at, "data: [DONE]\n", 13) == 0);
        at = line + 1;
    }
}

/* Lines of Ollama's, and one whole; what is made of a request is JSON as well. */
static void check_ollama(struct span text)
{
    struct buf asked BUF_AUTO = BUF_INIT;
    struct span model = {"\"m\"", 3};
    ollama_request(&asked, text);
    assert(json_check(span_of(&asked), NULL) == 0);
    for (int kind = 0; kind < 4; kind++) {
        struct events plan;
        struct buf out BUF_AUTO = BUF_INIT;
        events_init(&plan);
        json_compact(&plan.answer, text);
        int status = stream_ollama(&plan, model, kind % 2, kind / 2, NULL);
        while (status == 0 && events_next(&plan, &out, 100))
            ;
        for (const char *at = buf_str(&out), *end; (end = strchr(at, '\n')); at = end + 1)
            assert(json_check((struct span){at, (size_t)(end - at)}, NULL) == 0);
        events_release(&plan);
    }
}

/* A stream that has begun, and fails by what a provider has said. */
static void fail(struct events *plan, struct span said)
{
    struct buf body BUF_AUTO = BUF_INIT;
    dialect_error(&body, OPENAI, 429, (struct span){"m", 1}, said);
    int told = stream_responses_wait(&plan->text, 0);
    assert(told == 2 && stream_responses_wait(&plan->text, told) == 3);
    stream_responses_error(&plan->text, 3, span_of(&body));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    if (json_check(text, NULL) < 0 || json_kind(text) != JSON_OBJECT)
        return 0;
    check_ollama(text);
    usage_count(text);
    for (int kind = 0; kind < 5; kind++) {
        struct events plan;
        struct buf out BUF_AUTO = BUF_INIT;
        int status = 0;
        events_init(&plan);
        json_compact(&plan.answer, text);
        if (kind == 0)
            status = stream_completions(&plan, true, NULL);
        else if (kind == 1)
            status = stream_responses(&plan, (int)size % 3, NULL);
        else if (kind == 4)
            fail(&plan, span_of(&plan.answer)); /* which is compact, as all that a host answers */
        else if (kind == 2)
            status = stream_messages(&plan, NULL);
        else
            stream_google(&plan);
        while (status == 0 && events_next(&plan, &out, 100))
            ;
        check_events(&out);
        events_release(&plan);
    }
    return 0;
}
