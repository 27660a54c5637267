#include "usage_count.h"

#include <stdlib.h>
#include <string.h>

#include "json.h"

struct count {
    long long in, out; /* -1: not said */
};

static bool member(struct span object, const char *key, struct span *value)
{
    return object.s && json_kind(object) == JSON_OBJECT && json_member(object, key, value, NULL);
}

static void take(struct span usage, const char *const *names, long long *most)
{
    struct span value;
    long long sum = -1;
    for (; *names; names++)
        if (member(usage, *names, &value) && json_kind(value) == JSON_NUMBER)
            sum = (sum < 0 ? 0 : sum) + strtoll(value.s, NULL, 10);
    *most = sum > *most ? sum : *most; /* of a stream's events the later ones say more */
}

static void take_usage(struct span usage, struct count *c)
{
    static const char *const in[] = {"prompt_tokens",
                                     "input_tokens",
                                     "cache_creation_input_tokens",
                                     "cache_read_input_tokens",
                                     "promptTokenCount",
                                     "toolUsePromptTokenCount",
                                     "prompt_eval_count",
                                     NULL};
    static const char *const out[] = {"completion_tokens",  "output_tokens", "candidatesTokenCount",
                                      "thoughtsTokenCount", "eval_count",    NULL};
    static const char *const all[] = {"total_tokens", "totalTokenCount", NULL};
    struct count before = *c;
    take(usage, in, &c->in);
    take(usage, out, &c->out);
    if (c->in < 0 && c->out < 0 && before.in < 0)
        take(usage, all, &c->in);
}

static void take_object(struct span object, struct count *c)
{
    static const char *const around[] = {"message", "response"};
    struct span value, inner;
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        if (member(object, around[i], &inner) && member(inner, "usage", &value))
            take_usage(value, c);
    if (member(object, "usage", &value) || member(object, "usageMetadata", &value))
        take_usage(value, c);
    else if (member(object, "eval_count", &value)) /* Ollama's are not in an object of their own */
        take_usage(object, c);
}

static void take_json(struct span text, struct count *c)
{
    struct span element;
    if (json_check(text, NULL) < 0)
        return;
    if (json_kind(text) == JSON_ARRAY)
        for (size_t at = 0; json_element(text, &at, &element);)
            take_object(element, c);
    else
        take_object(text, c);
}

long long usage_count(struct span answer)
{
    struct count c = {-1, -1};
    take_json(answer, &c);
    for (const char *at = answer.s, *end = at + answer.n; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline ? newline : end) - at);
        if (n > 5 && strncmp(at, "data:", 5) == 0)
            take_json((struct span){at + 5, n - 5}, &c);
        else if (*at == '{') /* a line for each */
            take_json((struct span){at, n}, &c);
        at += n + 1;
    }
    if (c.in < 0 && c.out < 0)
        return -1;
    return (c.in > 0 ? c.in : 0) + (c.out > 0 ? c.out : 0);
}
