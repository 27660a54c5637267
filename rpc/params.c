#include "params.h"

#include <cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "user_param.h"
#include "utf8.h"

#define WHERE_MAX 300 /* bytes of a field's path that a message shows */

/* Where in the parameters we are: for error messages. */
struct where {
    const struct where *outer;
    const char *key; /* NULL: an index */
    size_t index;
};

static void put_where(struct buf *out, const struct where *w)
{
    if (w->outer)
        put_where(out, w->outer);
    if (!w->key)
        buf_addf(out, "[%zu]", w->index);
    else
        buf_addf(out, "%s%s", w->outer ? "." : "", w->key);
}

static int refuse(struct err *err, const struct where *w, const char *what)
{
    struct buf path BUF_AUTO = BUF_INIT;
    put_where(&path, w);
    if (path.len > WHERE_MAX)
        buf_truncate(&path, utf8_valid_prefix(path.data, WHERE_MAX));
    return err_set(err, ERR_PARAMS, "Invalid parameters: %s: %s", buf_str(&path), what);
}

/* ---- single values ---- */

static const char NO_STRING[] = "must be a string";
static const char HAS_NUL[] = "must not contain a NUL character";
static const char HAS_HALF[] = "has half of a surrogate pair, which is no character";

static int take_text(cJSON *node, bool nul_allowed, struct text *into, const struct where *w, struct err *err)
{
    size_t n;
    /* It would become another character: in a file, or in a command, that is damage. */
    if (json_has_half_pair(node))
        return refuse(err, w, HAS_HALF);
    char *s = json_take_string(node, &n);
    if (!s)
        return refuse(err, w, NO_STRING);
    if (!nul_allowed && memchr(s, '\0', n)) {
        free(s);
        return refuse(err, w, HAS_NUL);
    }
    *into = (struct text){s, n};
    return 0;
}

static int check_bounds(const struct param *p, double value, const struct where *w, struct err *err)
{
    char what[96];
    if ((p->min == 0 && p->max == 0) || (value >= p->min && value <= p->max))
        return 0;
    if (p->max >= PARAM_MAX)
        snprintf(what, sizeof what, "must be at least %.15g", p->min);
    else
        snprintf(what, sizeof what, "must be between %.15g and %.15g", p->min, p->max);
    return refuse(err, w, what);
}

static int take_int(const struct param *p, const cJSON *node, long long *into, const struct where *w,
                    struct err *err)
{
    const char *text = json_number(node);
    if (!text || text[strspn(text, "-0123456789")] != '\0')
        return refuse(err, w, "must be an integer");
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return refuse(err, w, "is out of range");
    if (check_bounds(p, (double)value, w, err) < 0)
        return -1;
    *into = value;
    return 0;
}

static int take_number(const struct param *p, const cJSON *node, double *into, const struct where *w,
                       struct err *err)
{
    const char *text = json_number(node);
    if (!text)
        return refuse(err, w, "must be a number");
    double value = strtod(text, NULL);
    if (!isfinite(value))
        return refuse(err, w, "is out of range");
    if (check_bounds(p, value, w, err) < 0)
        return -1;
    *into = value;
    return 0;
}

/* ---- lists ---- */

static int take_ints(const struct param *p, const cJSON *node, struct ints *into, const struct where *w,
                     struct err *err)
{
    struct ints got = {.list = mem_alloc((size_t)cJSON_GetArraySize(node) * sizeof *got.list), .set = true};
    for (const cJSON *e = node->child; e; e = e->next, got.n++) {
        struct where at = {w, NULL, got.n};
        if (take_int(p, e, &got.list[got.n], &at, err) < 0) {
            free(got.list);
            return -1;
        }
    }
    *into = got;
    return 0;
}

static void free_texts(struct texts *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->list[i]);
    free(t->list);
    *t = (struct texts){NULL, 0};
}

static struct texts new_texts(const cJSON *node)
{
    size_t n = (size_t)cJSON_GetArraySize(node);
    return (struct texts){mem_zalloc((n + 1) * sizeof(char *)), 0};
}

static int take_names(const cJSON *node, struct texts *into, const struct where *w, struct err *err)
{
    struct texts got = new_texts(node);
    for (cJSON *e = node->child; e; e = e->next) {
        struct where at = {w, NULL, got.n};
        struct text t = {NULL, 0};
        if (take_text(e, false, &t, &at, err) < 0) {
            free_texts(&got);
            return -1;
        }
        got.list[got.n++] = t.s;
    }
    *into = got;
    return 0;
}

/* One NAME=value from a member; NULL and the error when it can't be one. */
static char *take_variable(cJSON *node, const struct where *w, struct err *err)
{
    size_t n;
    bool half = json_has_half_pair(node);
    char *name MEM_AUTO = json_take_key(node, &n);
    struct where at = {w, name, 0};
    struct text value = {NULL, 0};
    if (n == 0)
        refuse(err, w, "a variable's name must not be empty");
    else if (memchr(name, '\0', n) || memchr(name, '=', n))
        refuse(err, &at, "a variable's name must not contain '=' or a NUL character");
    else if (half)
        refuse(err, &at, HAS_HALF);
    else
        take_text(node, false, &value, &at, err);
    if (!value.s)
        return NULL;
    char *both = mem_printf("%s=%s", name, value.s);
    free(value.s);
    return both;
}

static int by_name(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    size_t xn = strcspn(x, "="), yn = strcspn(y, "=");
    int order = memcmp(x, y, xn < yn ? xn : yn);
    return order != 0 ? order : (xn > yn) - (xn < yn);
}

/* A variable that comes twice, or NULL. */
static const char *doubled(const struct texts *t)
{
    char **sorted MEM_AUTO = mem_alloc(t->n * sizeof *sorted);
    if (t->n > 0)
        memcpy(sorted, t->list, t->n * sizeof *sorted);
    qsort(sorted, t->n, sizeof *sorted, by_name);
    for (size_t i = 1; i < t->n; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            return sorted[i];
    return NULL;
}

static int take_env(const cJSON *node, struct texts *into, const struct where *w, struct err *err)
{
    struct texts got = new_texts(node);
    for (cJSON *e = node->child; e; e = e->next) {
        char *both = take_variable(e, w, err);
        if (!both) {
            free_texts(&got);
            return -1;
        }
        got.list[got.n++] = both;
    }
    const char *twice = doubled(&got);
    if (twice) {
        char *name MEM_AUTO = mem_dup(twice, strcspn(twice, "="));
        struct where at = {w, name, 0};
        refuse(err, &at, "is given twice");
        free_texts(&got);
        return -1;
    }
    *into = got;
    return 0;
}

/* ---- one parameter ---- */

/* What kind of JSON value a type takes, checked before anything is parsed. */
static int check_kind(const struct param *p, struct span value, const struct where *w, struct err *err)
{
    static const struct {
        enum json_kind kind;
        const char *otherwise;
    } takes[] = {
        [PARAM_TEXT] = {JSON_STRING, NO_STRING},
        [PARAM_NAME] = {JSON_STRING, NO_STRING},
        [PARAM_INT] = {JSON_NUMBER, "must be an integer"},
        [PARAM_NUMBER] = {JSON_NUMBER, "must be a number"},
        [PARAM_BOOL] = {JSON_BOOL, "must be true or false"},
        [PARAM_INTS] = {JSON_ARRAY, "must be an array of integers"},
        [PARAM_NAMES] = {JSON_ARRAY, "must be an array of strings"},
        [PARAM_ENV] = {JSON_OBJECT, "must be an object of strings"},
        [PARAM_OBJECT] = {JSON_OBJECT, "must be an object"},
        [PARAM_RAW] = {JSON_OBJECT, "must be an object"},
        [PARAM_LIST] = {JSON_ARRAY, "must be an array"},
        [PARAM_USER] = {JSON_STRING, "must be a string or an object"},
        [PARAM_SWITCH] = {JSON_BOOL, "must be true, false or an object"},
    };
    if ((p->type == PARAM_USER || p->type == PARAM_SWITCH) && json_kind(value) == JSON_OBJECT)
        return 0;
    if (p->type == PARAM_SWITCH && p->table->list[0].type == PARAM_NAME && json_kind(value) == JSON_STRING)
        return 0;
    return json_kind(value) == takes[p->type].kind ? 0 : refuse(err, w, takes[p->type].otherwise);
}

static int take_node(const struct param *p, cJSON *node, void *into, const struct where *w, struct err *err)
{
    switch (p->type) {
    case PARAM_TEXT:
    case PARAM_NAME:
        return take_text(node, p->type == PARAM_TEXT, into, w, err);
    case PARAM_USER:
        return take_text(node, false, &((struct user_param *)into)->name, w, err);
    case PARAM_INT:
        return take_int(p, node, into, w, err);
    case PARAM_NUMBER:
        return take_number(p, node, into, w, err);
    case PARAM_INTS:
        return take_ints(p, node, into, w, err);
    case PARAM_NAMES:
        return take_names(node, into, w, err);
    default:
        return take_env(node, into, w, err);
    }
}

static int unpack(const struct params_table *table, struct span object, void *into, const struct where *outer,
                  struct err *err);
static void *field(const struct param *p, void *into);
static int take_value(const struct param *p, struct span value, void *into, const struct where *w,
                      struct err *err);

static int take_switch(const struct param *p, struct span value, void *into, const struct where *w,
                       struct err *err)
{
    const struct param *first = p->table->list;
    *(bool *)into = *value.s != 'f';
    if (json_kind(value) == JSON_STRING)
        return take_value(first, value, field(first, into), w, err);
    return json_kind(value) == JSON_OBJECT ? unpack(p->table, value, into, w, err) : 0;
}

static int take_value(const struct param *p, struct span value, void *into, const struct where *w,
                      struct err *err)
{
    if (check_kind(p, value, w, err) < 0)
        return -1;
    switch (p->type) {
    case PARAM_BOOL:
        *(bool *)into = value.s[0] == 't';
        return 0;
    case PARAM_RAW:
    case PARAM_LIST:
        *(struct span *)into = value;
        return 0;
    case PARAM_OBJECT:
        return unpack(p->table, value, into, w, err);
    case PARAM_SWITCH:
        return take_switch(p, value, into, w, err);
    case PARAM_USER:
        if (json_kind(value) != JSON_OBJECT)
            break;
        ((struct user_param *)into)->by_numbers = true;
        return unpack(&user_param_numbers, value, into, w, err);
    default:
        break;
    }
    cJSON *node = json_parse(value);
    if (!node)
        return refuse(err, w, "has too many values in it");
    int result = take_node(p, node, into, w, err);
    cJSON_Delete(node);
    return result;
}

static void *field(const struct param *p, void *into)
{
    return (char *)into + p->offset;
}

static void free_text(struct text *t)
{
    free(t->s);
    *t = (struct text){NULL, 0};
}

static void release(const struct param *p, void *at)
{
    switch (p->type) {
    case PARAM_TEXT:
    case PARAM_NAME:
        free_text(at);
        break;
    case PARAM_INTS:
        free(((struct ints *)at)->list);
        *(struct ints *)at = (struct ints){NULL, 0, false};
        break;
    case PARAM_NAMES:
    case PARAM_ENV:
        free_texts(at);
        break;
    case PARAM_OBJECT:
    case PARAM_SWITCH:
        params_release(p->table, at);
        break;
    case PARAM_USER:
        free_text(&((struct user_param *)at)->name);
        params_release(&user_param_numbers, at);
        break;
    default:
        break;
    }
}

/* ---- a table ---- */

static const struct param *find(const struct params_table *table, struct span key)
{
    for (size_t i = 0; i < table->n; i++)
        if (json_string_is(key, table->list[i].key))
            return &table->list[i];
    return NULL;
}

static int refuse_unknown(struct span key, const struct where *outer, struct err *err)
{
    struct buf name BUF_AUTO = BUF_INIT;
    json_string_text((struct span){key.s, key.n}, &name);
    struct where w = {outer, buf_str(&name), 0};
    return refuse(err, &w, "is no parameter of this method");
}

struct progress {
    uint64_t met;    /* a bit for each parameter of the table that came up */
    uint64_t filled; /* and for each that got a value */
};

static int take_members(const struct params_table *table, struct span object, void *into,
                        struct progress *progress, const struct where *outer, struct err *err)
{
    struct span key, value;
    for (size_t at = 0; json_next_member(object, &at, &key, &value);) {
        const struct param *p = find(table, key);
        if (!p && table->ignore_unknown)
            continue;
        if (!p)
            return refuse_unknown(key, outer, err);
        struct where w = {outer, p->key, 0};
        uint64_t bit = (uint64_t)1 << (p - table->list);
        if (progress->met & bit)
            return refuse(err, &w, "is given twice");
        progress->met |= bit;
        if (json_kind(value) == JSON_NULL && !p->required)
            continue;
        if (take_value(p, value, field(p, into), &w, err) < 0)
            return -1;
        progress->filled |= bit;
    }
    return 0;
}

static int check_required(const struct params_table *table, uint64_t met, const struct where *outer,
                          struct err *err)
{
    for (size_t i = 0; i < table->n; i++) {
        struct where w = {outer, table->list[i].key, 0};
        if (table->list[i].required && !(met >> i & 1))
            return refuse(err, &w, "is missing");
    }
    return 0;
}

static int unpack(const struct params_table *table, struct span object, void *into, const struct where *outer,
                  struct err *err)
{
    struct progress progress = {0, 0};
    if (take_members(table, object, into, &progress, outer, err) == 0 &&
        check_required(table, progress.met, outer, err) == 0)
        return 0;
    /* Only what was filled here: the other fields are as the caller has made them. */
    for (size_t i = 0; i < table->n; i++)
        if (progress.filled >> i & 1)
            release(&table->list[i], field(&table->list[i], into));
    return -1;
}

int params_unpack(const struct params_table *table, struct span params, void *into, struct err *err)
{
    bool absent = !params.s || json_kind(params) == JSON_NULL;
    if (!absent && json_kind(params) != JSON_OBJECT)
        return err_set(err, ERR_PARAMS, "Invalid parameters: must be an object");
    return unpack(table, absent ? (struct span){"{}", 2} : params, into, NULL, err);
}

void params_release(const struct params_table *table, void *from)
{
    for (size_t i = 0; i < table->n; i++)
        release(&table->list[i], field(&table->list[i], from));
}
