#include "proxy_streams.h"

struct span stream_member(struct span object, const char *key)
{
    struct span value = {0};
    if (object.s && json_kind(object) == JSON_OBJECT && json_member(object, key, &value, NULL) &&
        json_kind(value) == JSON_NULL)
        value.s = NULL;
    return value;
}

struct span stream_string(struct span object, const char *key)
{
    struct span value = stream_member(object, key);
    return value.s && json_kind(value) == JSON_STRING ? value : (struct span){"\"\"", 2};
}

bool stream_element(struct span object, const char *key, size_t *at, struct span *value)
{
    struct span array = stream_member(object, key);
    return array.s && json_kind(array) == JSON_ARRAY && json_element(array, at, value);
}

void stream_put(struct events *plan, const char *key, struct span value)
{
    if (!value.s)
        return;
    buf_addf(&plan->text, ",\"%s\":", key);
    buf_add(&plan->text, value.s, value.n); /* a run's text can't have a part in it */
}

void stream_google(struct events *plan)
{
    buf_adds(&plan->text, "data: ");
    events_put(plan, span_of(&plan->answer));
    buf_adds(&plan->text, "\n\n");
}
