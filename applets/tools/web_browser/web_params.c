#include "web_params.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>

#define SESSION(member) offsetof(struct web_session_params, member)
#define WEB(member) offsetof(struct web_params, member)

static const struct param new_session_list[] = {
    {.key = "headful", .type = PARAM_BOOL, .offset = SESSION(headful), PARAM_DOC("With a window", "false")},
    {.key = "accept_dialogs",
     .type = PARAM_BOOL,
     .offset = SESSION(accept_dialogs),
     PARAM_DOC("Answer yes to dialogs", "false")},
    {.key = "ask_dialogs",
     .type = PARAM_BOOL,
     .offset = SESSION(ask_dialogs),
     PARAM_DOC("Leave dialogs to web_dialog", "false")},
    {.key = "accept_certificates",
     .type = PARAM_BOOL,
     .offset = SESSION(accept_certificates),
     PARAM_DOC("Show pages whose certificate is not trusted", "false")},
    {.key = "devtools",
     .type = PARAM_BOOL,
     .offset = SESSION(devtools),
     PARAM_DOC("Let web_devtools work", "false")},
    {.key = "downloads",
     .type = PARAM_NAME,
     .offset = SESSION(downloads),
     PARAM_DOC("Absolute path of a folder for what is downloaded, that the browser's user can write to",
               "downloads are refused")},
    {.key = "ends_with",
     .type = PARAM_INT,
     .offset = SESSION(ends_with),
     .min = 1,
     .max = INT_MAX,
     PARAM_DOC("A process with whose end it ends, however that comes", "none")},
    {.key = "user",
     .type = PARAM_USER,
     .offset = SESSION(user),
     PARAM_DOC("Whom it runs as; another user than its own takes a server of root", "the server's user")},
    SURROUNDINGS_PARAM(SESSION(surroundings)),
};
const struct params_table web_new_session_params = PARAMS_TABLE(new_session_list);

#define NAME                                                                                                 \
    {                                                                                                        \
        .key = "session_name", .type = PARAM_NAME, .offset = WEB(session_name), .required = true,            \
        PARAM_DOC("The session, as web_new_session named it", NULL)                                          \
    }
#define ELEMENT                                                                                              \
    {                                                                                                        \
        .key = "element_id", .type = PARAM_INT, .offset = WEB(element_id), .required = true,                 \
        PARAM_DOC("The number at the front of the element's line", NULL)                                     \
    }

static const struct param session_list[] = {NAME};
const struct params_table web_session_params = PARAMS_TABLE(session_list);
const struct params_table web_name_params = {.list = session_list, .n = 1, .ignore_unknown = true};

static const struct param url_list[] = {
    NAME,
    {.key = "url",
     .type = PARAM_NAME,
     .offset = WEB(url),
     .required = true,
     PARAM_DOC("Address; without a scheme it is http:// for localhost and its like, else https://", NULL)}};
const struct params_table web_url_params = PARAMS_TABLE(url_list);

#define OFFSET(member, doc)                                                                                  \
    {                                                                                                        \
        .key = #member, .type = PARAM_INT, .offset = WEB(member), .min = -10000, .max = 10000,               \
        PARAM_DOC(doc, "its middle")                                                                         \
    }

static const struct param click_list[] = {
    NAME,
    ELEMENT,
    {.key = "how",
     .type = PARAM_NAME,
     .offset = WEB(how),
     PARAM_DOC("left, right, middle, double, hover or drag", "left")},
    {.key = "to",
     .type = PARAM_INT,
     .offset = WEB(to),
     .max = PARAM_MAX,
     PARAM_DOC("The element to drag it to", "none")},
    OFFSET(x, "Where in the element, from its left; of a drag without to by how much to the right"),
    OFFSET(y, "The same from its top")};
const struct params_table web_click_params = PARAMS_TABLE(click_list);

static const struct param text_list[] = {NAME,
                                         ELEMENT,
                                         {.key = "text",
                                          .type = PARAM_TEXT,
                                          .offset = WEB(text),
                                          .required = true,
                                          PARAM_DOC("What to type", NULL)}};
const struct params_table web_text_params = PARAMS_TABLE(text_list);

static const struct param direction_list[] = {
    NAME,
    {.key = "direction",
     .type = PARAM_NAME,
     .offset = WEB(direction),
     .required = true,
     PARAM_DOC("up or down, by the height of what is scrolled", NULL)},
    {.key = "element_id",
     .type = PARAM_INT,
     .offset = WEB(element_id),
     .max = PARAM_MAX,
     PARAM_DOC("What to scroll, or something in it",
               "what has the focus, was clicked or lies on top, or else the page")}};
const struct params_table web_direction_params = PARAMS_TABLE(direction_list);

static const struct param value_list[] = {NAME,
                                          ELEMENT,
                                          {.key = "value",
                                           .type = PARAM_TEXT,
                                           .offset = WEB(value),
                                           .required = true,
                                           PARAM_DOC("An option's value, or what it shows", NULL)}};
const struct params_table web_value_params = PARAMS_TABLE(value_list);

static const struct param key_list[] = {NAME,
                                        {.key = "key",
                                         .type = PARAM_NAME,
                                         .offset = WEB(key),
                                         .required = true,
                                         PARAM_DOC("Enter, Control+A, é, …", NULL)}};
const struct params_table web_key_params = PARAMS_TABLE(key_list);

static const struct param expression_list[] = {NAME,
                                               {.key = "expression",
                                                .type = PARAM_TEXT,
                                                .offset = WEB(expression),
                                                .required = true,
                                                PARAM_DOC("JavaScript; a promise is waited for", NULL)}};
const struct params_table web_expression_params = PARAMS_TABLE(expression_list);

static const struct param picture_list[] = {
    NAME,
    {.key = "full_page",
     .type = PARAM_BOOL,
     .offset = WEB(full_page),
     PARAM_DOC("All of the page rather than what is visible", "false")},
    {.key = "element_id",
     .type = PARAM_INT,
     .offset = WEB(element_id),
     .max = PARAM_MAX,
     PARAM_DOC("An element alone, also where it is out of view", "none")}};
const struct params_table web_picture_params = PARAMS_TABLE(picture_list);

static const struct param wait_list[] = {
    NAME,
    {.key = "text",
     .type = PARAM_NAME,
     .offset = WEB(text),
     PARAM_DOC("A text that is to come into sight", "none")},
    {.key = "gone", .type = PARAM_NAME, .offset = WEB(gone), PARAM_DOC("A text that is to go", "none")},
    {.key = "url",
     .type = PARAM_NAME,
     .offset = WEB(url),
     PARAM_DOC("A part of the address to come", "none")},
    {.key = "element_id",
     .type = PARAM_INT,
     .offset = WEB(element_id),
     .max = PARAM_MAX,
     PARAM_DOC("An element that is to be seen and enabled", "none")},
    {.key = "network_idle",
     .type = PARAM_BOOL,
     .offset = WEB(network_idle),
     PARAM_DOC("Until nothing is loaded or asked for", "false")},
    {.key = "timeout",
     .type = PARAM_INT,
     .offset = WEB(timeout),
     .min = 1,
     .max = 600,
     PARAM_DOC("Seconds", "30")},
};
const struct params_table web_wait_params = PARAMS_TABLE(wait_list);

static const struct param find_list[] = {NAME,
                                         {.key = "text",
                                          .type = PARAM_NAME,
                                          .offset = WEB(text),
                                          .required = true,
                                          PARAM_DOC("What to look for; capitals don't matter", NULL)}};
const struct params_table web_find_params = PARAMS_TABLE(find_list);

static const struct param read_list[] = {
    NAME,
    {.key = "format",
     .type = PARAM_NAME,
     .offset = WEB(format),
     PARAM_DOC("text, markdown (of the main region, where there is one) or html", "text")},
    {.key = "offset",
     .type = PARAM_INT,
     .offset = WEB(offset),
     .max = PARAM_MAX,
     PARAM_DOC("First character, to go on with", "0")},
    {.key = "max",
     .type = PARAM_INT,
     .offset = WEB(max),
     .max = PARAM_MAX,
     PARAM_DOC("Characters at most; 0: all", "0")},
};
const struct params_table web_read_params = PARAMS_TABLE(read_list);

static const struct param tabs_list[] = {
    NAME,
    {.key = "tab",
     .type = PARAM_INT,
     .offset = WEB(tab),
     .max = PARAM_MAX,
     PARAM_DOC("Show this tab", "list them")},
    {.key = "new", .type = PARAM_BOOL, .offset = WEB(new_tab), PARAM_DOC("Open a tab", "false")},
    {.key = "close", .type = PARAM_BOOL, .offset = WEB(close), PARAM_DOC("Close the tab instead", "false")},
};
const struct params_table web_tabs_params = PARAMS_TABLE(tabs_list);

static const struct param dialog_list[] = {
    NAME,
    {.key = "accept", .type = PARAM_BOOL, .offset = WEB(accept), PARAM_DOC("Yes, or no", "true")},
    {.key = "text",
     .type = PARAM_TEXT,
     .offset = WEB(text),
     PARAM_DOC("What to answer a prompt with", "what stands there")}};
const struct params_table web_dialog_params = PARAMS_TABLE(dialog_list);

static const struct param network_list[] = {
    NAME,
    {.key = "url", .type = PARAM_NAME, .offset = WEB(url), PARAM_DOC("A part of the address", "all")},
    {.key = "body",
     .type = PARAM_INT,
     .offset = WEB(body),
     .max = PARAM_MAX,
     PARAM_DOC("Instead of the list, what was sent and what came of the request with this id", "none")}};
const struct params_table web_network_params = PARAMS_TABLE(network_list);

#define LIST(member) offsetof(struct web_list_params, member)
#define LIST_NAME                                                                                            \
    {                                                                                                        \
        .key = "session_name", .type = PARAM_NAME, .offset = LIST(session_name), .required = true,           \
        PARAM_DOC("The session, as web_new_session named it", NULL)                                          \
    }

static const struct param upload_list[] = {
    LIST_NAME,
    {.key = "element_id",
     .type = PARAM_INT,
     .offset = LIST(element_id),
     .required = true,
     PARAM_DOC("An input for files, its label, or what asks for files when it is clicked", NULL)},
    {.key = "paths",
     .type = PARAM_LIST,
     .offset = LIST(list),
     .required = true,
     PARAM_DOC("Absolute paths of files that the browser's user can read", NULL)}};
const struct params_table web_upload_params = PARAMS_TABLE(upload_list);

static const struct param state_list[] = {
    LIST_NAME,
    {.key = "load",
     .type = PARAM_RAW,
     .offset = LIST(object),
     PARAM_DOC("{cookies, origins}, as this method or Playwright has given it: to be had from now on",
               "what there is is told")}};
const struct params_table web_state_params = PARAMS_TABLE(state_list);

static const struct param devtools_list[] = {
    LIST_NAME,
    {.key = "method",
     .type = PARAM_NAME,
     .offset = LIST(method),
     .required = true,
     PARAM_DOC("Of the DevTools protocol: Page.getLayoutMetrics", NULL)},
    {.key = "params", .type = PARAM_RAW, .offset = LIST(object), PARAM_DOC("Its params", "none")},
    {.key = "browser",
     .type = PARAM_BOOL,
     .offset = LIST(browser),
     PARAM_DOC("Ask the browser itself rather than the page", "false")}};
const struct params_table web_devtools_params = PARAMS_TABLE(devtools_list);

#define EMULATE(member) offsetof(struct web_emulate_params, member)

static const struct param emulate_list[] = {
    {.key = "session_name",
     .type = PARAM_NAME,
     .offset = EMULATE(session_name),
     .required = true,
     PARAM_DOC("The session, as web_new_session named it", NULL)},
    {.key = "width",
     .type = PARAM_INT,
     .offset = EMULATE(width),
     .min = 100,
     .max = 8192,
     PARAM_DOC("Of the window, in CSS pixels; with height", "1280")},
    {.key = "height",
     .type = PARAM_INT,
     .offset = EMULATE(height),
     .min = 100,
     .max = 8192,
     PARAM_DOC("Its height", "1080")},
    {.key = "scale",
     .type = PARAM_NUMBER,
     .offset = EMULATE(scale),
     .min = 0.1,
     .max = 10,
     PARAM_DOC("Pixels of the device for each of these", "1")},
    {.key = "touch",
     .type = PARAM_BOOL,
     .offset = EMULATE(touch),
     PARAM_DOC("With the size: a touch screen", "false")},
    {.key = "user_agent",
     .type = PARAM_NAME,
     .offset = EMULATE(user_agent),
     PARAM_DOC("What the browser calls itself", "as it is")},
    {.key = "language",
     .type = PARAM_NAME,
     .offset = EMULATE(language),
     PARAM_DOC("Languages that pages are asked for: de-DE,de", "as they are")},
    {.key = "timezone",
     .type = PARAM_NAME,
     .offset = EMULATE(timezone),
     PARAM_DOC("Europe/Berlin", "as it is")},
    {.key = "latitude",
     .type = PARAM_NUMBER,
     .offset = EMULATE(latitude),
     .min = -90,
     .max = 90,
     PARAM_DOC("Where the browser is, with longitude; pages may ask for it then", "not told")},
    {.key = "longitude",
     .type = PARAM_NUMBER,
     .offset = EMULATE(longitude),
     .min = -180,
     .max = 180,
     PARAM_DOC("Degrees to the east", "not told")},
    {.key = "color_scheme",
     .type = PARAM_NAME,
     .offset = EMULATE(color_scheme),
     PARAM_DOC("dark or light", "as it is")},
    {.key = "network",
     .type = PARAM_NAME,
     .offset = EMULATE(network),
     PARAM_DOC("offline, or online again", "as it is")},
    {.key = "permissions",
     .type = PARAM_NAMES,
     .offset = EMULATE(permissions),
     PARAM_DOC("What pages may do without asking: clipboardReadWrite, notifications, …", "as it is")}};
const struct params_table web_emulate_params = PARAMS_TABLE(emulate_list);

void web_params_release(struct web_params *p)
{
    struct text *texts[] = {&p->session_name, &p->url,  &p->direction, &p->text, &p->value, &p->key,
                            &p->expression,   &p->gone, &p->format,    &p->raw,  &p->how};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        free(texts[i]->s);
        *texts[i] = (struct text){0};
    }
}
