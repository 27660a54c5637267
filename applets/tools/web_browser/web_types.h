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
    bool accept_dialogs;
    struct user_param user;
    long long ends_with; /* a pid; 0: none */
    struct surroundings surroundings;
};

/* Of every method of a session; each takes those that its table names. */
struct web_params {
    struct text session_name, url, direction, text, gone, value, key, expression, format;
    long long element_id, tab, timeout, offset, max;
    bool full_page, new_tab, close, network_idle;
};
#define WEB_PARAMS_DEFAULTS                                                                                  \
    {                                                                                                        \
        .element_id = -1, .tab = -1, .timeout = 30                                                           \
    }

#endif
