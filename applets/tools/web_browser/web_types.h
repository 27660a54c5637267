/* Params of the web methods, as plain structs. Strings are owned by params_release. */
#ifndef APPLETS_WEB_BROWSER_WEB_TYPES_H
#define APPLETS_WEB_BROWSER_WEB_TYPES_H

#include <stdbool.h>

#include "params.h"
#include "surroundings_param.h"
#include "user_param.h"

#define WEB_PREFIX "WebBrowser" /* a session's keeper listens as WebBrowser or WebBrowser_N */

struct web_session_params {
    bool headful;
    bool accept_dialogs, ask_dialogs, accept_certificates, devtools;
    struct text downloads; /* a folder */
    struct user_param user;
    long long ends_with; /* a pid; 0: none */
    struct surroundings surroundings;
};

/* Of every method of a session; each takes those that its table names. A flat record, as parameters are. */
struct web_params {
    struct text session_name, url, direction, text, gone, value, key, expression, format;
    struct text how; /* of a mouse */
    long long to, x, y, body;
    struct text raw; /* JSON: a list of files, of calls; params */
    long long element_id, tab, timeout, offset, max;
    bool full_page, new_tab, close, network_idle, accept, of_browser;
};
#define WEB_PARAMS_DEFAULTS                                                                                  \
    {                                                                                                        \
        .element_id = -1, .tab = -1, .timeout = 30, .accept = true, .to = -1, .body = -1,                    \
        .x = WEB_NO_OFFSET, .y = WEB_NO_OFFSET                                                               \
    }

#define WEB_NO_OFFSET (-1000000)

/* Of those that take a list or an object, which is in the request's own memory. */
struct web_list_params {
    struct text session_name, method;
    struct span list, object;
    long long element_id;
    bool browser;
};

/* Of web_emulate: what is not to be changed is NULL, or below 0. */
struct web_emulate_params {
    struct text session_name, user_agent, language, timezone, color_scheme, network;
    struct texts permissions;
    long long width, height;
    double scale, latitude, longitude;
    bool touch;
};
#define WEB_EMULATE_DEFAULTS                                                                                 \
    {                                                                                                        \
        .width = -1, .height = -1, .scale = 1, .latitude = WEB_NOWHERE, .longitude = WEB_NOWHERE             \
    }
#define WEB_NOWHERE 1000.0

#endif
