/* What models ask for, in the words of their tools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "json.h"
#include "mem.h"
#include "task.h"

#define DURATION_MAX 100 /* as the tools have it */
#define QUIET_MS 100     /* before the picture that follows an action */
#define CLICK_MS 10
#define DRAG_STEPS 10
#define SCROLL_PIXELS 100 /* a click of the wheel stands for so many, where pixels are asked for */
#define SCROLL_MAX 1000

struct action;
typedef int (*act_fn)(struct task *t, const struct action *a);

struct action {
    const char *name;
    act_fn begin;
    act_fn end; /* after `duration`; NULL: nothing */
    int button, count;
    unsigned char takes; /* TAKES_… */
    bool shows;          /* its answer has a picture, whether one is asked for or not */
};
enum { NEEDS_TEXT = 1, NEEDS_PLACE = 2, NO_PLACE = 4, NO_TEXT = 8, NEEDS_DURATION = 16 };

/* ---- params ---- */

static bool given(const struct text *t)
{
    return t->s != NULL;
}

static int to_screen(struct task *t, const long long *v, int *x, int *y)
{
    struct desk *d = t->desk;
    if (v[0] < 0 || v[1] < 0)
        return err_set(&t->err, ERR_TOOL, "(%lld, %lld) must be a tuple of non-negative ints", v[0], v[1]);
    if (v[0] > d->model_width || v[1] > d->model_height)
        return err_set(&t->err, ERR_TOOL, "Coordinates %lld, %lld are out of bounds: the screen has %d x %d",
                       v[0], v[1], d->model_width, d->model_height);
    *x = screen_from_model(d, v[0], false);
    *y = screen_from_model(d, v[1], true);
    *x = *x < d->x.screen.width ? *x : d->x.screen.width - 1;
    *y = *y < d->x.screen.height ? *y : d->x.screen.height - 1;
    return 0;
}

static int pair(struct task *t, const struct ints *given_pair, const char *name, int *x, int *y)
{
    if (given_pair->n != 2)
        return err_set(&t->err, ERR_TOOL, "%s must be a tuple of length 2", name);
    return to_screen(t, given_pair->list, x, y);
}

static bool has_place(const struct computer_action_params *p)
{
    return p->coordinate.set || p->x != COMPUTER_UNSET || p->y != COMPUTER_UNSET;
}

static int place(struct task *t, int *x, int *y)
{
    const struct computer_action_params *p = &t->params.action;
    if (p->coordinate.set)
        return pair(t, &p->coordinate, "coordinate", x, y);
    const long long v[2] = {p->x == COMPUTER_UNSET ? 0 : p->x, p->y == COMPUTER_UNSET ? 0 : p->y};
    return to_screen(t, v, x, y);
}

/* What has to be given, and what must not. */
static int check(struct task *t, const struct action *a)
{
    const struct computer_action_params *p = &t->params.action;
    const char *name = a->name;
    if (a->takes & NEEDS_PLACE && !has_place(p))
        return err_set(&t->err, ERR_TOOL, "coordinate is required for %s", name);
    if (a->takes & NO_PLACE && has_place(p))
        return err_set(&t->err, ERR_TOOL, "coordinate is not accepted for %s", name);
    if (a->takes & NEEDS_TEXT && !given(&p->text) && !p->keys.list)
        return err_set(&t->err, ERR_TOOL, "text is required for %s", name);
    if (a->takes & NO_TEXT && given(&p->text))
        return err_set(&t->err, ERR_TOOL, "text is not accepted for %s", name);
    if (a->takes & NEEDS_DURATION && p->duration == COMPUTER_UNSET)
        return err_set(&t->err, ERR_TOOL, "duration must be a number");
    if (p->duration != COMPUTER_UNSET && p->duration < 0)
        return err_set(&t->err, ERR_TOOL, "duration must be non-negative");
    if (p->duration > DURATION_MAX)
        return err_set(&t->err, ERR_TOOL, "duration is too long");
    return 0;
}

/* Keys that are held while something else is done: of Anthropic's tools `text` or `key`, of OpenAI's `keys`.
 */
static char *held_keys(const struct computer_action_params *p)
{
    struct buf keys = BUF_INIT;
    if (given(&p->key) || given(&p->text))
        buf_adds(&keys, given(&p->key) ? p->key.s : p->text.s);
    for (size_t i = 0; p->keys.list && i < p->keys.n; i++)
        buf_addf(&keys, "%s%s", i > 0 ? "+" : "", p->keys.list[i]);
    return buf_take(&keys, NULL);
}

/* ---- the pointer ---- */

static void move(struct desk *d, int x, int y, int after)
{
    desk_fake(d, FAKE_MOVE, 0, x, y, after);
}

static void click(struct desk *d, int button, int times)
{
    for (int i = 0; i < times; i++) {
        desk_fake(d, FAKE_BUTTON_DOWN, button, 0, 0, i > 0 ? CLICK_MS : 0);
        desk_fake(d, FAKE_BUTTON_UP, button, 0, 0, CLICK_MS);
    }
}

static int with_keys(struct task *t, int button, int times)
{
    char *keys MEM_AUTO = held_keys(&t->params.action);
    if (*keys && keyboard_press(t->desk, keys, PRESS_DOWN, &t->err) < 0)
        return -1;
    click(t->desk, button, times);
    if (*keys && keyboard_press(t->desk, keys, PRESS_UP, &t->err) < 0)
        return -1;
    return x11_sync(&t->desk->x, &t->err);
}

static int do_move(struct task *t, const struct action *a)
{
    int x = 0, y = 0;
    (void)a;
    if (!has_place(&t->params.action))
        return 0;
    if (place(t, &x, &y) < 0)
        return -1;
    move(t->desk, x, y, 0);
    return x11_sync(&t->desk->x, &t->err);
}

static int do_click(struct task *t, const struct action *a)
{
    return do_move(t, a) < 0 ? -1 : with_keys(t, a->button, a->count);
}

/* OpenAI's, which names its button. */
static int do_named_click(struct task *t, const struct action *a)
{
    static const struct {
        const char *name;
        int button;
    } buttons[] = {{"left", 1}, {"wheel", 2}, {"middle", 2}, {"right", 3}, {"back", 8}, {"forward", 9}};
    const char *name = given(&t->params.action.button) ? t->params.action.button.s : "left";
    for (size_t i = 0; i < sizeof buttons / sizeof *buttons; i++)
        if (strcmp(name, buttons[i].name) == 0)
            return do_move(t, a) < 0 ? -1 : with_keys(t, buttons[i].button, 1);
    return err_set(&t->err, ERR_TOOL, "button must be 'left', 'right', 'wheel', 'back', or 'forward'");
}

static int do_button(struct task *t, const struct action *a)
{
    desk_fake(t->desk, a->count > 0 ? FAKE_BUTTON_DOWN : FAKE_BUTTON_UP, a->button, 0, 0, 0);
    return x11_sync(&t->desk->x, &t->err);
}

/* From one place to the next, with those between: who drags only believes what moves. */
static void drag_to(struct desk *d, int *x, int *y, int to_x, int to_y)
{
    for (int i = 1; i <= DRAG_STEPS; i++)
        move(d, *x + (to_x - *x) * i / DRAG_STEPS, *y + (to_y - *y) * i / DRAG_STEPS, CLICK_MS);
    *x = to_x;
    *y = to_y;
}

static int do_drag(struct task *t, const struct action *a)
{
    const struct computer_action_params *p = &t->params.action;
    int x, y, to_x = 0, to_y = 0;
    (void)a;
    if (desk_pointer(t->desk, &x, &y, &t->err) < 0 || place(t, &to_x, &to_y) < 0 ||
        (p->start_coordinate.set && pair(t, &p->start_coordinate, "start_coordinate", &x, &y) < 0))
        return -1;
    move(t->desk, x, y, 0);
    desk_fake(t->desk, FAKE_BUTTON_DOWN, 1, 0, 0, CLICK_MS);
    drag_to(t->desk, &x, &y, to_x, to_y);
    desk_fake(t->desk, FAKE_BUTTON_UP, 1, 0, 0, CLICK_MS);
    return x11_sync(&t->desk->x, &t->err);
}

/* A point of a path: {"x": 1, "y": 2} or [1, 2]. */
static int point(struct task *t, struct span value, int *x, int *y)
{
    struct span part[2] = {{0}};
    long long v[2];
    size_t at = 0;
    if (json_kind(value) == JSON_OBJECT) {
        json_member(value, "x", &part[0], NULL);
        json_member(value, "y", &part[1], NULL);
    } else if (json_kind(value) == JSON_ARRAY && json_element(value, &at, &part[0])) {
        json_element(value, &at, &part[1]);
    }
    for (int i = 0; i < 2; i++) {
        if (!part[i].s || json_kind(part[i]) != JSON_NUMBER)
            return err_set(&t->err, ERR_TOOL, "path must be a list of points {x, y}");
        v[i] = strtoll(part[i].s, NULL, 10);
    }
    return to_screen(t, v, x, y);
}

static int do_path(struct task *t, const struct action *a)
{
    const struct computer_action_params *p = &t->params.action;
    struct span value;
    int x = 0, y = 0, to_x = 0, to_y = 0;
    size_t n = 0;
    if (!p->path.s)
        return do_drag(t, a);
    for (size_t at = 0; json_element(p->path, &at, &value); n++)
        if (point(t, value, &to_x, &to_y) < 0)
            return -1;
    if (n < 2 || n > 1000)
        return err_set(&t->err, ERR_TOOL, "path must have 2 to 1000 points");
    size_t at = 0;
    json_element(p->path, &at, &value);
    point(t, value, &x, &y);
    move(t->desk, x, y, 0);
    desk_fake(t->desk, FAKE_BUTTON_DOWN, 1, 0, 0, CLICK_MS);
    while (json_element(p->path, &at, &value)) {
        point(t, value, &to_x, &to_y);
        if (n <= 20)
            drag_to(t->desk, &x, &y, to_x, to_y);
        else
            move(t->desk, to_x, to_y, 2);
    }
    desk_fake(t->desk, FAKE_BUTTON_UP, 1, 0, 0, CLICK_MS);
    return x11_sync(&t->desk->x, &t->err);
}

static int scroll_pixels(long long v)
{
    long long n = llabs(v) / SCROLL_PIXELS;
    return (int)(n == 0 && v != 0 ? 1 : n < SCROLL_MAX ? n : SCROLL_MAX);
}

static int do_scroll(struct task *t, const struct action *a)
{
    static const char *const directions[] = {"up", "down", "left", "right"};
    const struct computer_action_params *p = &t->params.action;
    const char *direction = given(&p->scroll_direction) ? p->scroll_direction.s : "";
    if (p->scroll_x || p->scroll_y) {
        if (do_move(t, a) < 0 || with_keys(t, p->scroll_y < 0 ? 4 : 5, scroll_pixels(p->scroll_y)) < 0)
            return -1;
        return with_keys(t, p->scroll_x < 0 ? 6 : 7, scroll_pixels(p->scroll_x));
    }
    for (int i = 0; i < 4; i++) {
        if (strcmp(direction, directions[i]) != 0)
            continue;
        if (p->scroll_amount < 0 || p->scroll_amount > SCROLL_MAX)
            return err_set(&t->err, ERR_TOOL,
                           p->scroll_amount < 0 ? "scroll_amount must be a non-negative int"
                                                : "scroll_amount must be at most 1000");
        if (do_move(t, a) < 0)
            return -1;
        return with_keys(t, 4 + i, (int)p->scroll_amount);
    }
    return err_set(&t->err, ERR_TOOL, "scroll_direction must be 'up', 'down', 'left', or 'right'");
}

static int do_position(struct task *t, const struct action *a)
{
    int x, y;
    (void)a;
    if (desk_pointer(t->desk, &x, &y, &t->err) < 0)
        return -1;
    x = screen_to_model(t->desk, x, false);
    y = screen_to_model(t->desk, y, true);
    char *output MEM_AUTO = mem_printf("X=%d,Y=%d", x, y);
    json_member_string(&t->result, "output", output);
    json_member_int(&t->result, "x", x);
    json_member_int(&t->result, "y", y);
    return 0;
}

/* ---- the keyboard ---- */

static int do_key(struct task *t, const struct action *a)
{
    char *keys MEM_AUTO = held_keys(&t->params.action);
    int how = a->count == 0 ? PRESS_DOWN | PRESS_UP : a->count;
    return keyboard_press(t->desk, keys, how, &t->err);
}

static int do_release(struct task *t, const struct action *a)
{
    char *keys MEM_AUTO = held_keys(&t->params.action);
    (void)a;
    return keyboard_press(t->desk, keys, PRESS_UP, &t->err);
}

static int do_type(struct task *t, const struct action *a)
{
    const struct computer_action_params *p = &t->params.action;
    if (has_place(p) && (do_move(t, a) < 0 || (click(t->desk, 1, 1), x11_sync(&t->desk->x, &t->err)) < 0))
        return -1;
    t->typing = (struct typing){.text = p->text.s, .n = p->text.n};
    return 0;
}

/* ---- pictures ---- */

static int do_nothing(struct task *t, const struct action *a)
{
    (void)t;
    (void)a;
    return 0;
}

static int do_zoom(struct task *t, const struct action *a)
{
    struct area area;
    (void)a;
    if (!t->params.action.region.set)
        return err_set(&t->err, ERR_TOOL, "region must be a tuple of 4 coordinates (x0, y0, x1, y1)");
    if (picture_area(t, &t->params.action.region, &area) < 0)
        return -1;
    return picture_put(t, area, area.width, area.height, true);
}

/* ---- a browser ---- */

static int do_navigate(struct task *t, const struct action *a)
{
    static const char *const names[] = {
        "chromium",    "chromium-browser", "google-chrome", "google-chrome-stable",
        "firefox-esr", "firefox",          "x-www-browser"};
    const struct computer_action_params *p = &t->params.action;
    const char *url = given(&p->text) ? p->text.s : given(&p->url) ? p->url.s : NULL;
    bool root = (t->desk->user ? t->desk->user->uid : geteuid()) == 0;
    if (a->count && (!url || !*url || *url == '-'))
        return err_set(&t->err, ERR_TOOL, "text is required for %s: an address", a->name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *argv[] = {(char *)names[i], (char *)(a->count ? url : "about:blank"), NULL, NULL, NULL};
        if (i < 4) {
            argv[2] = (char *)"--no-first-run";
            argv[3] = (char *)(root ? "--no-sandbox" : NULL);
        }
        if (desk_run(t->desk, argv, &t->err) > 0)
            return 0;
    }
    return err_set(&t->err, ERR_TOOL, "there is no browser: chromium, google-chrome or firefox");
}

/* ---- the table ---- */

static const struct action actions[] = {
    {"screenshot", do_nothing, NULL, 0, 0, NO_PLACE | NO_TEXT, true},
    {"zoom", do_zoom, NULL, 0, 0, NO_PLACE, false},
    {"cursor_position", do_position, NULL, 0, 0, NO_PLACE | NO_TEXT, false},
    {"mouse_move", do_move, NULL, 0, 0, NEEDS_PLACE | NO_TEXT, false},
    {"move", do_move, NULL, 0, 0, NEEDS_PLACE, false},
    {"left_click", do_click, NULL, 1, 1, 0, false},
    {"right_click", do_click, NULL, 3, 1, 0, false},
    {"middle_click", do_click, NULL, 2, 1, 0, false},
    {"back_click", do_click, NULL, 8, 1, 0, false},
    {"forward_click", do_click, NULL, 9, 1, 0, false},
    {"double_click", do_click, NULL, 1, 2, 0, false},
    {"triple_click", do_click, NULL, 1, 3, 0, false},
    {"click", do_named_click, NULL, 0, 0, NEEDS_PLACE, false},
    {"left_mouse_down", do_button, NULL, 1, 1, NO_PLACE, false},
    {"left_mouse_up", do_button, NULL, 1, 0, NO_PLACE, false},
    {"left_click_drag", do_drag, NULL, 0, 0, NEEDS_PLACE, false},
    {"drag", do_path, NULL, 0, 0, 0, false},
    {"scroll", do_scroll, NULL, 0, 0, 0, false},
    {"key", do_key, NULL, 0, 0, NEEDS_TEXT | NO_PLACE, false},
    {"keypress", do_key, NULL, 0, 0, NEEDS_TEXT, false},
    {"key_down", do_key, NULL, 0, PRESS_DOWN, NEEDS_TEXT, false},
    {"key_up", do_key, NULL, 0, PRESS_UP, NEEDS_TEXT, false},
    {"hold_key", do_key, do_release, 0, PRESS_DOWN, NEEDS_TEXT | NEEDS_DURATION, false},
    {"type", do_type, NULL, 0, 0, NEEDS_TEXT, false},
    {"open_web_browser", do_navigate, NULL, 0, 0, NO_PLACE, false},
    {"navigate", do_navigate, NULL, 0, 1, NO_PLACE, false},
    {"wait", do_nothing, do_nothing, 0, 0, 0, true},
};

static const struct action *find(struct task *t)
{
    const struct computer_action_params *p = &t->params.action;
    const char *name = given(&p->action) ? p->action.s : given(&p->type) ? p->type.s : NULL;
    for (size_t i = 0; name && i < sizeof actions / sizeof *actions; i++)
        if (strcmp(name, actions[i].name) == 0)
            return &actions[i];
    if (!name)
        err_set(&t->err, ERR_PARAMS, "Invalid parameters: action: is missing");
    else
        err_set(&t->err, ERR_TOOL, "Invalid action: %.100s", name);
    return NULL;
}

/* ---- steps ---- */

enum { BEGIN, END, TYPE, ENTER, SETTLE, SHOW };

static bool wants_picture(const struct task *t, const struct action *a)
{
    return a->shows || (t->params.action.screenshot && a->begin != do_zoom);
}

static int begin(struct task *t, const struct action *a)
{
    const struct computer_action_params *p = &t->params.action;
    buf_addc(&t->result, '{');
    if (check(t, a) < 0 || desk_measure(t->desk, &t->err) < 0 || a->begin(t, a) < 0)
        return TASK_FAILED;
    t->phase = a->end ? END : a->begin == do_type ? TYPE : SETTLE;
    double seconds = p->duration == COMPUTER_UNSET ? 1 : p->duration;
    return a->end ? (int)(seconds * 1000) + 1 : 0;
}

static int type(struct task *t)
{
    int next = keyboard_type(t->desk, &t->typing, &t->err);
    if (next == TASK_DONE) {
        t->phase = t->params.action.press_enter ? ENTER : SETTLE;
        return 0;
    }
    return next;
}

static int settle(struct task *t, const struct action *a)
{
    bool stable, waits = t->params.action.screenshot && !a->shows && t->params.action.settle_ms > 0;
    if (waits && !t->rest.begun) {
        t->rest.changed_ms = now_ms();
        t->rest.until_ms = now_ms() + t->params.action.settle_ms;
        t->rest.quiet_ms = QUIET_MS;
        t->rest.within = (struct area){0, 0, t->desk->x.screen.width, t->desk->x.screen.height};
    }
    int next = waits ? rest_step(t, &stable) : TASK_DONE;
    if (next != TASK_DONE)
        return next;
    if (wants_picture(t, a) && picture_put_whole(t, true) < 0)
        return TASK_FAILED;
    buf_addc(&t->result, '}');
    return TASK_DONE;
}

int task_action(struct task *t)
{
    const struct action *a = find(t);
    if (!a)
        return TASK_FAILED;
    switch (t->phase) {
    case BEGIN:
        return begin(t, a);
    case END:
        t->phase = SETTLE;
        return a->end(t, a) < 0 ? TASK_FAILED : 0;
    case TYPE:
        return type(t);
    case ENTER:
        t->phase = SETTLE;
        return keyboard_press(t->desk, "Return", PRESS_DOWN | PRESS_UP, &t->err) < 0 ? TASK_FAILED : 0;
    default:
        return settle(t, a);
    }
}
