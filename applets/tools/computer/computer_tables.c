/* The params of what a keeper answers. */
#include <stddef.h>

#include "computer_params.h"

#define ACTION(member) offsetof(struct computer_action_params, member)
#define SHOT(member) offsetof(struct computer_shot_params, member)

static const struct param action_list[] = {
    COMPUTER_NAME,
    KEYED(PARAM_NAME, "action", ACTION(action),
          PARAM_DOC("As Anthropic's tools and inspect_ai's computer() name it: left_click, type, …", "type")),
    KEYED(PARAM_NAME, "type", ACTION(type),
          PARAM_DOC("The same as OpenAI's tool names it: click, keypress, …", "action")),
    KEYED(PARAM_TEXT, "text", ACTION(text),
          PARAM_DOC("What to type; keys to press, or to hold during a click", "none")),
    KEYED(PARAM_NAME, "key", ACTION(key), PARAM_DOC("Keys to hold during a click or scroll", "none")),
    KEYED(PARAM_NAMES, "keys", ACTION(keys), PARAM_DOC("Keys that are pressed together", "none")),
    KEYED(PARAM_NAME, "url", ACTION(url), PARAM_DOC("Of navigate, in the place of text", "text")),
    KEYED(PARAM_INTS, "coordinate", ACTION(coordinate),
          PARAM_DOC("[x, y] in the picture", "where the pointer is")),
    KEYED(PARAM_INTS, "start_coordinate", ACTION(start_coordinate),
          PARAM_DOC("Where a drag begins", "where the pointer is")),
    KEYED(PARAM_INTS, "region", ACTION(region), PARAM_DOC("[x0, y0, x1, y1] of a zoom", "none")),
    KEYED(PARAM_INT, "x", ACTION(x),
          PARAM_DOC("The same as coordinate, in OpenAI's form", "where the pointer is")),
    KEYED(PARAM_INT, "y", ACTION(y), PARAM_DOC("With x", "where the pointer is")),
    KEYED(PARAM_NAME, "button", ACTION(button),
          PARAM_DOC("Of click: left, right, wheel, back or forward", "left")),
    KEYED(PARAM_LIST, "path", ACTION(path),
          PARAM_DOC("Of drag: points {x, y}", "from start_coordinate to coordinate")),
    KEYED(PARAM_INT, "scroll_x", ACTION(scroll_x),
          PARAM_DOC("Pixels to the right, 100 a click of the wheel", "0")),
    KEYED(PARAM_INT, "scroll_y", ACTION(scroll_y), PARAM_DOC("Pixels down", "0")),
    KEYED(PARAM_INT, "scroll_amount", ACTION(scroll_amount), PARAM_DOC("Clicks of the wheel", "none")),
    KEYED(PARAM_NAME, "scroll_direction", ACTION(scroll_direction),
          PARAM_DOC("up, down, left or right", "none")),
    KEYED(PARAM_NUMBER, "duration", ACTION(duration),
          PARAM_DOC("Seconds to wait or to hold, 100 at most", "1 of wait")),
    KEYED(PARAM_BOOL, "press_enter", ACTION(press_enter),
          PARAM_DOC("Press Return when all is typed", "false")),
    KEYED(PARAM_BOOL, "screenshot", ACTION(screenshot),
          PARAM_DOC("Answer with a picture, once the screen has come to rest", "of screenshot and wait")),
    KEYED(PARAM_INT, "settle_ms", ACTION(settle_ms), .max = 60000,
          PARAM_DOC("Wait for that no longer than so many milliseconds", "2000")),
};
const struct params_table computer_act_params = PARAMS_TABLE(action_list);

#define REGION KEYED(PARAM_INTS, "region", SHOT(region), PARAM_DOC("[x0, y0, x1, y1]", "all of the screen"))

static const struct param picture_list[] = {
    COMPUTER_NAME,
    REGION,
    KEYED(PARAM_BOOL, "changed", SHOT(changed),
          PARAM_DOC("Only the part that has changed since the last one", "false")),
    KEYED(PARAM_BOOL, "full", SHOT(full),
          PARAM_DOC("With every pixel of the screen; a region always has them", "false")),
    KEYED(PARAM_BOOL, "no_cursor", SHOT(no_cursor), PARAM_DOC("Without the pointer", "false")),
};
const struct params_table computer_picture_params = PARAMS_TABLE(picture_list);

static const struct param wait_list[] = {
    COMPUTER_NAME,
    REGION,
    KEYED(PARAM_NUMBER, "quiet", SHOT(quiet), .min = 0.01, .max = 600,
          PARAM_DOC("Seconds for which nothing has changed; a caret may blink", "0.5")),
    KEYED(PARAM_NUMBER, "timeout", SHOT(timeout), .max = 600,
          PARAM_DOC("Seconds to wait for that at most", "30")),
};
const struct params_table computer_wait_params = PARAMS_TABLE(wait_list);
