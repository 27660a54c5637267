/* What has a browser be another one, as calls of DevTools (tab_overrides.h). */
#include "emulate.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "tab_overrides.h"

static void put_size(const struct web_emulate_params *p, struct buf *list)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addf(&params, "{\"width\":%lld,\"height\":%lld,\"deviceScaleFactor\":%.9g", p->width, p->height,
             p->scale);
    json_member_bool(&params, "mobile", false); /* it would lay pages out wider than the window */
    buf_addc(&params, '}');
    overrides_put(list, "Emulation.setDeviceMetricsOverride", params.data);
    overrides_put(list, "Emulation.setTouchEmulationEnabled",
                  p->touch ? "{\"enabled\":true}" : "{\"enabled\":false}");
}

static void put_text(struct buf *list, const char *method, const char *key, const struct text *value)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (!value->s)
        return;
    buf_addc(&params, '{');
    json_member_text(&params, key, value->s, value->n);
    buf_addc(&params, '}');
    overrides_put(list, method, params.data);
}

static void keep(char **kept, const struct text *text)
{
    if (!text->s)
        return;
    free(*kept);
    *kept = mem_dup(text->s, text->n);
}

static void put_agent(const struct web_emulate_params *p, struct emulated *e, struct buf *list)
{
    struct buf params BUF_AUTO = BUF_INIT;
    if (!p->user_agent.s && !p->language.s)
        return;
    keep(&e->user_agent, &p->user_agent);
    keep(&e->language, &p->language);
    buf_addc(&params, '{');
    json_member_string(&params, "userAgent", e->user_agent ? e->user_agent : "");
    if (e->language)
        json_member_string(&params, "acceptLanguage", e->language);
    buf_addc(&params, '}');
    overrides_put(list, "Emulation.setUserAgentOverride", params.data);
}

/* They take the place of those that were given before. */
static void put_permissions(const struct web_emulate_params *p, const char *context, bool place,
                            struct buf *list)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "browserContextId", context);
    json_key(&params, "permissions");
    buf_adds(&params, place ? "[\"geolocation\"" : "[");
    for (size_t i = 0; i < p->permissions.n; i++) {
        buf_adds(&params, i > 0 || place ? "," : "");
        json_put_string(&params, p->permissions.list[i], strlen(p->permissions.list[i]));
    }
    buf_adds(&params, "]}");
    overrides_put(list, "Browser.grantPermissions", params.data);
}

int emulate_calls(const struct web_emulate_params *p, struct emulated *e, const char *context,
                  struct buf *list, struct err *err)
{
    bool place = p->latitude < WEB_NOWHERE || p->longitude < WEB_NOWHERE;
    if ((p->width < 0) != (p->height < 0) ||
        (place && (p->latitude == WEB_NOWHERE || p->longitude == WEB_NOWHERE)))
        return err_set(err, ERR_PARAMS,
                       "Invalid parameters: width goes with height, and latitude with longitude");
    if (p->color_scheme.s && strcmp(p->color_scheme.s, "dark") != 0 &&
        strcmp(p->color_scheme.s, "light") != 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: color_scheme: must be \"dark\" or \"light\"");
    if (p->network.s && strcmp(p->network.s, "offline") != 0 && strcmp(p->network.s, "online") != 0)
        return err_set(err, ERR_PARAMS, "Invalid parameters: network: must be \"offline\" or \"online\"");
    if (p->width > 0)
        put_size(p, list);
    put_agent(p, e, list);
    put_text(list, "Emulation.setTimezoneOverride", "timezoneId", &p->timezone);
    if (place) {
        struct buf params BUF_AUTO = BUF_INIT;
        buf_addf(&params, "{\"latitude\":%.9g,\"longitude\":%.9g,\"accuracy\":10}", p->latitude,
                 p->longitude);
        overrides_put(list, "Emulation.setGeolocationOverride", params.data);
    }
    if (p->color_scheme.s)
        overrides_put(list, "Emulation.setEmulatedMedia",
                      strcmp(p->color_scheme.s, "dark") == 0
                          ? "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"dark\"}]}"
                          : "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"light\"}]}");
    if (p->network.s)
        overrides_put(
            list, "Network.emulateNetworkConditions",
            strcmp(p->network.s, "offline") == 0
                ? "{\"offline\":true,\"latency\":0,\"downloadThroughput\":-1,\"uploadThroughput\":-1}"
                : "{\"offline\":false,\"latency\":0,\"downloadThroughput\":-1,\"uploadThroughput\":-1}");
    e->place = e->place || place;
    if (p->permissions.list || place)
        put_permissions(p, context, e->place, list);
    return 0;
}

/* ---- state ---- */

/* What Storage.setCookies takes; what it is told otherwise it would refuse. */
static void put_cookie(struct buf *out, struct span cookie)
{
    static const char *const keys[] = {"name",     "value",        "url",          "domain",
                                       "path",     "secure",       "httpOnly",     "sameSite",
                                       "priority", "sourceScheme", "partitionKey", "expires"};
    struct span value;
    buf_addc(out, '{');
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!json_member(cookie, keys[i], &value, NULL) || json_kind(value) == JSON_NULL ||
            (strcmp(keys[i], "expires") == 0 && *value.s == '-')) /* one of this session */
            continue;
        json_key(out, keys[i]);
        buf_add(out, value.s, value.n);
    }
    buf_addc(out, '}');
}

/* Before a page's own scripts run: what is there already stays. */
static void put_storage(struct buf *list, struct span origins)
{
    struct buf script BUF_AUTO = BUF_INIT;
    struct buf params BUF_AUTO = BUF_INIT;
    buf_adds(&script, "(()=>{try{for(const o of ");
    buf_add(&script, origins.s, origins.n);
    buf_adds(&script,
             ")if(o.origin===location.origin)for(const e of o.localStorage||[])"
             "if(localStorage.getItem(e.name)===null)localStorage.setItem(e.name,e.value)}catch(e){}})()");
    buf_addc(&params, '{');
    json_member_text(&params, "source", script.data, script.len);
    buf_addc(&params, '}');
    overrides_put(list, "Page.addScriptToEvaluateOnNewDocument", params.data);
}

void state_calls(struct span state, const char *context, struct buf *list)
{
    struct span cookies, cookie, origins;
    struct buf params BUF_AUTO = BUF_INIT;
    if (json_member(state, "cookies", &cookies, NULL) && json_kind(cookies) == JSON_ARRAY) {
        buf_addc(&params, '{');
        json_member_string(&params, "browserContextId", context);
        json_key(&params, "cookies");
        buf_addc(&params, '[');
        size_t n = 0;
        for (size_t at = 0; json_element(cookies, &at, &cookie);) {
            if (json_kind(cookie) != JSON_OBJECT)
                continue;
            buf_adds(&params, n++ > 0 ? "," : "");
            put_cookie(&params, cookie);
        }
        buf_adds(&params, "]}");
        overrides_put(list, "Storage.setCookies", params.data);
    }
    if (json_member(state, "origins", &origins, NULL) && json_kind(origins) == JSON_ARRAY)
        put_storage(list, origins);
}
