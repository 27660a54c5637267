/* methods: what can be called, from the tables by which calls are found and params checked. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "json.h"
#include "tool.h"
#include "user_param.h"

static const char NAME[] = "methods";

/* ---- as text ---- */

static const char *const kinds[] = {
    [METHOD_IN_PROCESS] = "the program that is asked",
    [METHOD_SERVER] = "the server",
    [METHOD_KEEPER] = "the keeper of its session, job or MCP server",
};

static bool takes(const struct rpc_method *m, const char *key)
{
    for (size_t i = 0; m->params && i < m->params->n; i++)
        if (strcmp(m->params->list[i].key, key) == 0)
            return true;
    return false;
}

/* With whose rights the work is done. */
static const char *user_rule(const struct rpc_method *m, enum method_kind kind)
{
    if (kind == METHOD_KEEPER)
        return "whom it was started as";
    if (kind == METHOD_SERVER)
        return takes(m, "user") ? "user, or the server's" : "the server's";
    return takes(m, "_run_as_user") ? "_run_as_user, or the caller"
           : takes(m, "user")       ? "user, or the caller"
                                    : "the caller";
}

static const char *type_of(const struct param *p)
{
    static const char *const types[] = {
        [PARAM_TEXT] = "string",
        [PARAM_NAME] = "string",
        [PARAM_INT] = "integer",
        [PARAM_NUMBER] = "number",
        [PARAM_BOOL] = "boolean",
        [PARAM_INTS] = "array of integers",
        [PARAM_NAMES] = "array of strings",
        [PARAM_ENV] = "object of strings",
        [PARAM_OBJECT] = "object",
        [PARAM_RAW] = "object",
        [PARAM_LIST] = "array of objects",
        [PARAM_USER] = "string or object",
        [PARAM_SWITCH] = "boolean or object",
    };
    if (p->type == PARAM_SWITCH && p->table->list[0].type == PARAM_NAME)
        return "boolean, string or object";
    return types[p->type];
}

/* The members of one that is an object, or may be; NULL: it has none of ours. */
static const struct params_table *members_of(const struct param *p)
{
    return p->type == PARAM_OBJECT || p->type == PARAM_SWITCH ? p->table
           : p->type == PARAM_USER                            ? &user_param_numbers
                                                              : NULL;
}

static bool has_bounds(const struct param *p)
{
    return p->min != 0 || p->max != 0;
}

static void put_param(struct buf *out, const struct param *p, int indent)
{
    buf_addf(out, "%*s%s: %s", indent, "", p->key, type_of(p));
    if (has_bounds(p) && p->max >= PARAM_MAX)
        buf_addf(out, " from %.15g", p->min);
    else if (has_bounds(p))
        buf_addf(out, " from %.15g to %.15g", p->min, p->max);
    if (p->required)
        buf_adds(out, ", required");
    else if (p->otherwise)
        buf_addf(out, ", default: %s", p->otherwise);
    buf_addf(out, "\n%*s%s\n", indent + 4, "", p->about);
}

static void put_params(struct buf *out, const struct params_table *table, int indent)
{
    for (size_t i = 0; table && i < table->n; i++) {
        const struct params_table *members = members_of(&table->list[i]);
        put_param(out, &table->list[i], indent);
        for (size_t j = 0; members && j < members->n; j++)
            put_param(out, &members->list[j], indent + 4);
    }
}

static void put_text(struct buf *out, const struct rpc_method *m, enum method_kind kind)
{
    buf_addf(out, "%s: %s\n", m->name, m->about);
    if (m->params && m->params->n > 0)
        buf_adds(out, "\nParams:\n");
    put_params(out, m->params, 2);
    for (const struct params_variant *v = m->variants; v && v->name; v++) {
        buf_addf(out, "\nParams of %s:\n", v->name);
        put_params(out, &v->table, 2);
    }
    buf_addf(out, "\nResult: %s\n", m->result);
    if (m->errors)
        buf_addf(out, "Errors: %s\n", m->errors);
    buf_addf(out, "User: %s\nAnswered by %s\n", user_rule(m, kind), kinds[kind]);
    if (m->mcp_tool)
        buf_addf(out, "Tool of 'mcp serve': %s\n", m->mcp_tool);
}

/* ---- as JSON ---- */

static void put_json_params(struct buf *out, const char *key, const struct params_table *table);

static void put_number(struct buf *out, const char *key, double value)
{
    json_key(out, key);
    buf_addf(out, "%.15g", value);
}

static void put_json_param(struct buf *out, const struct param *p)
{
    buf_adds(out, out->data[out->len - 1] == '[' ? "{" : ",{");
    json_member_string(out, "name", p->key);
    json_member_string(out, "type", type_of(p));
    json_member_bool(out, "required", p->required);
    json_member_string(out, "default", p->otherwise);
    if (has_bounds(p))
        put_number(out, "min", p->min);
    if (has_bounds(p) && p->max < PARAM_MAX)
        put_number(out, "max", p->max);
    json_member_string(out, "about", p->about);
    if (members_of(p))
        put_json_params(out, "members", members_of(p));
    buf_addc(out, '}');
}

static void put_json_params(struct buf *out, const char *key, const struct params_table *table)
{
    json_key(out, key);
    buf_addc(out, '[');
    for (size_t i = 0; table && i < table->n; i++)
        put_json_param(out, &table->list[i]);
    buf_addc(out, ']');
}

static void put_json(struct buf *out, const struct rpc_method *m, enum method_kind kind)
{
    static const char *const words[] = {
        [METHOD_IN_PROCESS] = "in-process", [METHOD_SERVER] = "server", [METHOD_KEEPER] = "keeper"};
    buf_adds(out, out->data[out->len - 1] == '[' ? "{" : ",{");
    json_member_string(out, "name", m->name);
    json_member_string(out, "about", m->about);
    json_member_string(out, "answered_by", words[kind]);
    json_member_string(out, "user", user_rule(m, kind));
    put_json_params(out, "params", m->params);
    if (m->variants) {
        json_key(out, "variants");
        buf_addc(out, '{');
        for (const struct params_variant *v = m->variants; v->name; v++)
            put_json_params(out, v->name, &v->table);
        buf_addc(out, '}');
    }
    json_member_string(out, "result", m->result);
    json_member_string(out, "errors", m->errors);
    json_member_string(out, "mcp_tool", m->mcp_tool);
    buf_addc(out, '}');
}

/* ---- all of them ---- */

static void put_row(struct buf *out, const char *name, const char *user, const char *about)
{
    buf_addf(out, "%-26s  %-27s  %s\n", name, user, about);
}

static void put(struct buf *out, const struct rpc_method *m, enum method_kind kind, const char *wanted,
                bool json)
{
    if (m->name[0] == '_' && !wanted) /* between programs */
        return;
    if (wanted && strcmp(m->name, wanted) != 0)
        return;
    if (json)
        put_json(out, m, kind);
    else if (wanted)
        put_text(out, m, kind);
    else
        put_row(out, m->name, user_rule(m, kind), m->about);
}

static int print(const char *wanted, bool json)
{
    struct buf out BUF_AUTO = BUF_INIT;
    const char *names[METHODS_MAX];
    if (json)
        buf_addc(&out, '[');
    else if (!wanted)
        put_row(&out, "METHOD", "USER", "WHAT IT DOES");
    for (const struct tool *const *at = tool_list(); *at; at++) {
        const struct rpc_method *tables[] = {(*at)->in_process, (*at)->server, (*at)->keeper};
        for (int i = 0; i < 3; i++)
            for (const struct rpc_method *m = tables[i]; m && m->name; m++)
                put(&out, m, METHOD_IN_PROCESS + (enum method_kind)i, wanted, json);
    }
    if (wanted && out.len <= (size_t)json) {
        tool_method_names(names, METHODS_MAX);
        return usage_unknown(NAME, "method", wanted, names);
    }
    printf("%s%s", buf_str(&out), json ? "]\n" : "");
    return stdout_flushed();
}

static int methods_main(int argc, char **argv)
{
    static const char *const options[] = {"--json", "--help", "--version", NULL};
    const char *wanted = NULL;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (argv[i][0] == '-')
            return usage_unknown(NAME, "option", argv[i], options);
        else if (wanted)
            return usage_error(NAME, "one method at most, not '%s' as well", argv[i]);
        else
            wanted = argv[i];
    }
    return print(wanted, json);
}

extern const struct applet methods_applet;

const struct applet methods_applet = {
    .name = NAME,
    .summary = "list the methods that can be called, and their parameters",
    .run = methods_main,
};
