#include "computer_params.h"

#include <limits.h>
#include <stddef.h>

#define SESSION(member) offsetof(struct computer_session_params, member)
static const struct param new_session_list[] = {
    KEYED(PARAM_NAME, "display", SESSION(display),
          PARAM_DOC("A display that is there, as :0 or HOST:0", "$DISPLAY; or an Xvfb that is started")),
    KEYED(PARAM_INT, "width", SESSION(width), .min = 64, .max = 16384,
          PARAM_DOC("Of an Xvfb that is started, in pixels", "1366")),
    KEYED(PARAM_INT, "height", SESSION(height), .min = 64, .max = 16384, PARAM_DOC("Its height", "768")),
    KEYED(PARAM_INT, "depth", SESSION(depth), .min = 1, .max = 32,
          PARAM_DOC("Its bits for a pixel: 16, 24 or 30", "24")),
    KEYED(PARAM_INT, "dpi", SESSION(dpi), .min = 10, .max = 1000, PARAM_DOC("Its pixels for an inch", "96")),
    KEYED(PARAM_NAME, "window_manager", SESSION(window_manager),
          PARAM_DOC("The program of one that is started with it, or none",
                    "openbox, or another one that is known")),
    KEYED(PARAM_BOOL, "unscaled", SESSION(unscaled),
          PARAM_DOC("Pictures and coordinates are the screen's own also where it is larger than 1366x768, "
                    "1280x800 or 1024x768",
                    "false")),
    KEYED(PARAM_INT, "ends_with", SESSION(ends_with), .min = 1, .max = INT_MAX,
          PARAM_DOC("A process with whose end it ends, however that comes", "none")),
    KEYED(
        PARAM_USER, "user", SESSION(user),
        PARAM_DOC("Whom it runs as; another user than its own takes a server of root", "the server's user")),
    SURROUNDINGS_PARAM(SESSION(surroundings)),
};
const struct params_table computer_new_session_params = PARAMS_TABLE(new_session_list);

static const struct param name_list[] = {COMPUTER_NAME};
const struct params_table computer_only_name_params = PARAMS_TABLE(name_list);
const struct params_table computer_name_params = {.list = name_list, .n = 1, .ignore_unknown = true};
