#include "rules.h"

#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "mem.h"

/* ---- taking them ---- */

static const char *add(struct rule *rules, int *n, const char *text, bool removes, bool verbatim)
{
    const char *equals = strchr(text, '=');
    struct buf value BUF_AUTO = BUF_INIT;
    if (*n == RULES_MAX)
        return "there are too many of them";
    if (!removes && (!equals || equals == text || (verbatim && !equals[1])))
        return "NAME=VALUE is wanted";
    if (removes && (!*text || equals))
        return "a name is wanted";
    struct rule *rule = &rules[(*n)++];
    rule->name = removes ? mem_strdup(text) : mem_dup(text, (size_t)(equals - text));
    if (removes)
        return NULL;
    struct span json = {equals + 1, strlen(equals + 1)};
    if (!verbatim && json_check(json, NULL) == 0)
        buf_add(&value, json.s, json.n);
    else
        json_put_string(&value, json.s, json.n);
    rule->value = buf_take(&value, NULL);
    return NULL;
}

const char *rules_model(struct rules *r, const char *text)
{
    return add(r->models, &r->n_models, text, false, true);
}

const char *rules_change(struct rules *r, const char *text, bool removes)
{
    return add(r->changes, &r->n_changes, text, removes, false);
}

void rules_release(struct rules *r)
{
    for (int i = 0; i < r->n_models; i++) {
        free(r->models[i].name);
        free(r->models[i].value);
    }
    for (int i = 0; i < r->n_changes; i++) {
        free(r->changes[i].name);
        free(r->changes[i].value);
    }
}

/* ---- applying them ---- */

static void comma(struct buf *out)
{
    if (out->data[out->len - 1] != '{')
        buf_addc(out, ',');
}

/* {"a":{"b":VALUE}} of what is left of a name. */
static void put_nested(struct buf *out, const char *name, const char *value)
{
    size_t depth = 0;
    for (const char *at = name; at; depth++) {
        const char *dot = strchr(at, '.');
        buf_addc(out, '{');
        json_put_string(out, at, dot ? (size_t)(dot - at) : strlen(at));
        buf_addc(out, ':');
        at = dot ? dot + 1 : NULL;
    }
    buf_adds(out, value);
    while (depth-- > 0)
        buf_addc(out, '}');
}

/* The member that is to be changed, as it becomes; nothing where it is removed. */
static void put_changed(struct buf *out, struct span key, struct span old, const char *rest,
                        const char *value)
{
    if (!rest && !value)
        return;
    comma(out);
    buf_add(out, key.s, key.n);
    buf_addc(out, ':');
    if (!rest)
        buf_adds(out, value);
    else if (value)
        put_nested(out, rest, value);
    else
        buf_add(out, old.s, old.n);
}

/* A copy of an object in which a parameter is this, or isn't. Names are as deep as the rule says. */
static void put_object(struct buf *out, struct span object, const char *name,
                       const char *value) /* NOLINT(misc-no-recursion) */
{
    struct span key, old;
    size_t n = strcspn(name, ".");
    const char *rest = name[n] ? name + n + 1 : NULL;
    char *first MEM_AUTO = mem_dup(name, n);
    bool found = false;
    buf_addc(out, '{');
    for (size_t at = 0; json_next_member(object, &at, &key, &old);) {
        bool is = json_string_is(key, first);
        if (is && rest && json_kind(old) == JSON_OBJECT) {
            comma(out);
            buf_add(out, key.s, key.n);
            buf_addc(out, ':');
            put_object(out, old, rest, value);
        } else if (is) {
            put_changed(out, key, old, rest, value);
        } else {
            comma(out);
            buf_add(out, key.s, key.n);
            buf_addc(out, ':');
            buf_add(out, old.s, old.n);
        }
        found = found || is;
    }
    if (!found && value) {
        comma(out);
        json_put_string(out, first, n);
        buf_addc(out, ':');
        if (rest)
            put_nested(out, rest, value);
        else
            buf_adds(out, value);
    }
    buf_addc(out, '}');
}

static void change(struct proxy_asked *a, struct proxy_request *r, const char *name, const char *value)
{
    struct buf changed BUF_AUTO = BUF_INIT;
    put_object(&changed, r->body, name, value);
    struct buf old = a->body;
    a->body = changed;
    changed = old;
    r->body = span_of(&a->body);
}

/* Google has what others have at the top in an object of its own. */
static char *name_for(enum dialect dialect, const char *name)
{
    static const char *const inside[] = {
        "temperature",      "topP",           "topK",          "seed",
        "maxOutputTokens",  "candidateCount", "stopSequences", "presencePenalty",
        "frequencyPenalty", "thinkingConfig"};
    for (size_t i = 0; dialect == GOOGLE && i < sizeof inside / sizeof *inside; i++)
        if (strcmp(name, inside[i]) == 0)
            return mem_printf("generationConfig.%s", name);
    return mem_strdup(name);
}

/* The JSON of what a model is called from now on; NULL: as before. */
static const char *renamed(const struct rules *rules, const char *model)
{
    for (int i = 0; i < rules->n_models; i++)
        if (glob_match(rules->models[i].name, model))
            return rules->models[i].value;
    return NULL;
}

static void rename_in_body(const struct rules *rules, struct proxy_asked *a, struct proxy_request *r)
{
    struct span model;
    struct buf name BUF_AUTO = BUF_INIT;
    if (!json_member(r->body, "model", &model, NULL) || !json_string_text(model, &name))
        return;
    const char *to = renamed(rules, buf_str(&name));
    if (to)
        change(a, r, "model", to);
}

/* .../models/NAME:ACTION */
static void rename_in_path(const struct rules *rules, struct proxy_asked *a)
{
    const char *name = strncmp(a->what, "/models/", 8) == 0 ? a->what + 8 : "", *action = strrchr(name, ':');
    struct buf to BUF_AUTO = BUF_INIT;
    if (!action)
        return;
    char *model MEM_AUTO = mem_dup(name, (size_t)(action - name));
    const char *json = renamed(rules, model);
    if (!json)
        return;
    json_string_text((struct span){json, strlen(json)}, &to);
    size_t begin = (size_t)(a->what - a->path);
    char *path = mem_printf("%.*s/models/%s%s", (int)begin, a->path, buf_str(&to), action);
    free(a->path);
    a->path = path;
    a->what = path + begin;
}

void rules_apply(const struct rules *rules, struct proxy_asked *a, struct proxy_request *r)
{
    if (!a->posts)
        return;
    rename_in_path(rules, a);
    if (json_check(r->body, NULL) < 0 || json_kind(r->body) != JSON_OBJECT)
        return;
    rename_in_body(rules, a, r);
    for (int i = 0; i < rules->n_changes; i++) {
        char *name MEM_AUTO = name_for(a->dialect, rules->changes[i].name);
        change(a, r, name, rules->changes[i].value);
    }
}
