/* Params of the methods of computer, as plain structs. */
#ifndef APPLETS_COMPUTER_COMPUTER_TYPES_H
#define APPLETS_COMPUTER_COMPUTER_TYPES_H

#include <stdbool.h>

#include "params.h"
#include "surroundings_param.h"
#include "user_param.h"

#define COMPUTER_PREFIX "Computer" /* a session's keeper listens as Computer or Computer_N */

struct computer_session_params {
    struct text display;     /* s == NULL: $DISPLAY, or one that is started */
    long long width, height; /* 0: not said */
    long long depth, dpi;
    struct text window_manager; /* a program; "none"; s == NULL: one of those that are known */
    bool unscaled;              /* pictures are as large as the screen, whatever that is */
    struct user_param user;
    long long ends_with; /* a pid; 0: none */
    struct surroundings surroundings;
};
#define COMPUTER_SESSION_DEFAULTS                                                                            \
    {                                                                                                        \
        .depth = 24, .dpi = 96                                                                               \
    }

/* Of computer_action: as tools of models name them, and as flat. What was not given: s == NULL, !set,
 * COMPUTER_UNSET. */
struct computer_action_params {
    struct text session_name;
    struct text action, type;
    struct text text, key, url;
    struct ints coordinate, start_coordinate, region;
    long long x, y, scroll_x, scroll_y, scroll_amount;
    struct text scroll_direction, button;
    double duration;
    struct span path;
    struct texts keys;
    bool screenshot, press_enter;
    long long settle_ms;
};
#define COMPUTER_UNSET (-1000000)
#define COMPUTER_ACTION_DEFAULTS                                                                             \
    {                                                                                                        \
        .x = COMPUTER_UNSET, .y = COMPUTER_UNSET, .scroll_amount = COMPUTER_UNSET,                           \
        .duration = COMPUTER_UNSET, .settle_ms = 2000                                                        \
    }

/* Of computer_screenshot and computer_wait. */
struct computer_shot_params {
    struct text session_name;
    struct ints region;
    bool changed, full, no_cursor;
    double timeout, quiet;
};
#define COMPUTER_SHOT_DEFAULTS                                                                               \
    {                                                                                                        \
        .timeout = 30, .quiet = 0.5                                                                          \
    }

#endif
