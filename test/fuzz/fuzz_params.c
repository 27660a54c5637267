/* Any message to a process with one method that has a parameter of each type: it is answered, once, with
 * JSON. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "params.h"
#include "rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct inner {
    struct text command;
    struct texts env;
};
static const struct param inner_params[] = {
    {.key = "c", .type = PARAM_NAME, .offset = offsetof(struct inner, command), .required = true},
    {.key = "e", .type = PARAM_ENV, .offset = offsetof(struct inner, env)},
};
static const struct params_table inner_table = PARAMS_TABLE(inner_params);

struct all {
    struct text text, name;
    long long integer;
    double number;
    bool flag;
    struct ints ints;
    struct texts names, env;
    struct inner inner;
    struct span raw;
};
static const struct param all_params[] = {
    {.key = "t", .type = PARAM_TEXT, .offset = offsetof(struct all, text)},
    {.key = "s", .type = PARAM_NAME, .offset = offsetof(struct all, name)},
    {.key = "i", .type = PARAM_INT, .offset = offsetof(struct all, integer), .min = -5, .max = PARAM_MAX},
    {.key = "n", .type = PARAM_NUMBER, .offset = offsetof(struct all, number), .min = 0, .max = 100},
    {.key = "b", .type = PARAM_BOOL, .offset = offsetof(struct all, flag)},
    {.key = "is", .type = PARAM_INTS, .offset = offsetof(struct all, ints)},
    {.key = "ss", .type = PARAM_NAMES, .offset = offsetof(struct all, names)},
    {.key = "e", .type = PARAM_ENV, .offset = offsetof(struct all, env)},
    {.key = "o", .type = PARAM_OBJECT, .offset = offsetof(struct all, inner), .table = &inner_table},
    {.key = "r", .type = PARAM_RAW, .offset = offsetof(struct all, raw)},
};
static const struct params_table tables[] = {
    {all_params, sizeof all_params / sizeof *all_params, false},
    {all_params, sizeof all_params / sizeof *all_params, true},
};

static void check_texts(const struct texts *t)
{
    for (size_t i = 0; t->list && i < t->n; i++)
        assert(t->list[i]);
    assert(!t->list || !t->list[t->n]);
}

/* Answers now, or fails with the message. */
static void take_all(struct rpc_call *call, struct span params, void *ctx)
{
    struct all a = {.integer = 0};
    struct err err = {0, ""};
    if (params_unpack(ctx, params, &a, &err) < 0) {
        assert(err.code == ERR_PARAMS && strncmp(err.msg, "Invalid parameters: ", 20) == 0);
        assert(!a.text.s && !a.names.list && !a.inner.env.list);
        rpc_fail(call, &err);
        return;
    }
    assert(a.integer >= -5 && a.number >= 0 && a.number <= 100);
    assert(!a.name.s || strlen(a.name.s) == a.name.n);
    check_texts(&a.names);
    check_texts(&a.env);
    check_texts(&a.inner.env);
    if (a.raw.s)
        assert(json_check(a.raw, NULL) == 0 && json_kind(a.raw) == JSON_OBJECT);
    rpc_result_string(call, a.text.s ? a.text.s : "", a.text.n);
    params_release(ctx, &a);
}

static rpc_handler find(void *ctx, const char *method, void **handler_ctx)
{
    (void)ctx;
    *handler_ctx = (void *)&tables[method[0] == 'm' ? 0 : 1];
    return strcmp(method, "m") == 0 || strcmp(method, "l") == 0 ? take_all : NULL;
}

static void count_answer(void *arg, struct buf *response)
{
    ++*(int *)arg;
    assert(response->len == 0 || json_check(span_of(response), NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int answers = 0;
    struct span text = {(const char *)data, size};
    struct rpc_message *m = rpc_take(text, find, NULL, (struct rpc_sink){count_answer, &answers});
    assert(!m && answers == 1);
    return 0;
}
