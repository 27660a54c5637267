#include "mouse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "mem.h"

#define MOUSE_MS 10000
#define DRAG_STEPS 5 /* moves on the way */

static bool is(const struct action *a, const char *how)
{
    return a->params.how.s && strcmp(a->params.how.s, how) == 0;
}

static bool is_offset(const struct action *a)
{
    return a->params.x > WEB_NO_OFFSET || a->params.y > WEB_NO_OFFSET;
}

void mouse_check(struct action *a)
{
    static const char *const known[] = {"left", "right", "middle", "double", "hover", "drag"};
    bool fits = !a->params.how.s, both = a->params.x > WEB_NO_OFFSET && a->params.y > WEB_NO_OFFSET;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        fits = fits || is(a, known[i]);
    if (!fits)
        step_fail(a, "how is left, right, middle, double, hover or drag, not '%.40s'", a->params.how.s);
    else if (is_offset(a) && !both)
        step_fail(a, "x goes with y");
    else if (is(a, "drag") != (a->params.to >= 0 || (is(a, "drag") && both)))
        step_fail(a, "how drag goes with to, an element, or with x and y, by how much");
    else
        step_next(a);
}

bool mouse_clicks(const struct action *a)
{
    return !is_offset(a) && (!a->params.how.s || is(a, "left"));
}

/* The middle of the first quad with an area, or what is that far from its first corner. */
static bool place_in(struct span quads, const struct action *a, double *x, double *y)
{
    struct span quad, number;
    bool from_corner = is_offset(a) && !is(a, "drag");
    for (size_t at = 0; json_element(quads, &at, &quad);) {
        double p[8] = {0};
        size_t n = 0;
        for (size_t in = 0; n < 8 && json_element(quad, &in, &number); n++)
            p[n] = strtod(number.s, NULL);
        double area = fabs((p[4] - p[0]) * (p[7] - p[3]) - (p[6] - p[2]) * (p[5] - p[1])) / 2;
        if (n == 8 && area > 0.5) {
            *x = from_corner ? p[0] + (double)a->params.x : (p[0] + p[2] + p[4] + p[6]) / 4;
            *y = from_corner ? p[1] + (double)a->params.y : (p[1] + p[3] + p[5] + p[7]) / 4;
            return true;
        }
    }
    return false;
}

bool mouse_aim(struct action *a)
{
    struct span quads;
    if (a->asked.result.s && json_member(a->asked.result, "quads", &quads, NULL) &&
        place_in(quads, a, &a->element.x, &a->element.y))
        return true;
    step_fail(a, "element %lld is not visible, so it can't be clicked", a->params.element_id);
    return false;
}

bool mouse_reaches(const struct action *a)
{
    return a->element.x >= 0 && a->element.y >= 0 && a->element.x <= a->web->tabs.window.width &&
           a->element.y <= a->web->tabs.window.height;
}

/* ---- what it does ---- */

static void put_number(struct buf *params, const char *key, double value)
{
    long long parts = (long long)(fabs(value) * 100);
    json_key(params, key);
    buf_addf(params, "%s%lld.%02lld", value < 0 ? "-" : "", parts / 100, parts % 100);
}

static void put_at(struct buf *params, double x, double y)
{
    put_number(params, "x", x);
    put_number(params, "y", y);
}

static void put_mouse(struct buf *params, const struct action *a, const char *type, int count)
{
    const char *button = is(a, "right") || is(a, "middle") ? a->params.how.s : "left";
    bool held = is(a, "drag");
    buf_addc(params, '{');
    json_member_string(params, "type", type);
    put_at(params, a->element.x, a->element.y);
    json_member_string(params, "button", count > 0 || held ? button : "none");
    if (held)
        json_member_int(params, "buttons", 1);
    json_member_int(params, "clickCount", count);
    buf_addc(params, '}');
}

static void dispatch(const struct action *a, const char *type, int count)
{
    struct buf params BUF_AUTO = BUF_INIT;
    put_mouse(&params, a, type, count);
    cdp_call(a->web->browser.cdp, a->element.session, "Input.dispatchMouseEvent", span_of(&params), NULL,
             NULL);
}

/* The last one: a click may close the page under it. */
static void ask(struct action *a, const char *type, int count)
{
    struct buf params BUF_AUTO = BUF_INIT;
    put_mouse(&params, a, type, count);
    step_ask_lax(a, a->element.session, "Input.dispatchMouseEvent", &params, MOUSE_MS);
}

static void point_at(const struct action *a)
{
    const struct tab *t = a->web->tabs.first;
    struct pointer *p = &a->web->pointer;
    free(p->session);
    *p = (struct pointer){mem_strdup(a->element.session), a->element.backend, t ? t->number : 0,
                          t ? t->loads : 0};
}

static const step_fn drag_steps[9], drag_by_steps[5];

void mouse_act(struct action *a)
{
    point_at(a);
    if (is(a, "drag")) {
        step_branch(a, a->params.to >= 0 ? drag_steps : drag_by_steps);
    } else if (is(a, "hover")) {
        ask(a, "mouseMoved", 0);
    } else {
        dispatch(a, "mouseMoved", 0);
        for (int count = 1; count <= (is(a, "double") ? 2 : 1); count++) {
            dispatch(a, "mousePressed", count);
            if (count == (is(a, "double") ? 2 : 1))
                ask(a, "mouseReleased", count);
            else
                dispatch(a, "mouseReleased", count);
        }
    }
}

/* ---- dragging ----
 *
 * Where the page drags by itself, it sees the mouse move. Where the browser would drag what the page gives
 * it, it says so, and is told what becomes of that. */

static void take_hold(struct action *a)
{
    a->element.from_x = a->element.x;
    a->element.from_y = a->element.y;
    free(a->web->tabs.dragged);
    a->web->tabs.dragged = NULL;
    cdp_call(a->web->browser.cdp, a->element.session, "Input.setInterceptDrags",
             (struct span){"{\"enabled\":true}", 16}, NULL, NULL);
    dispatch(a, "mouseMoved", 0);
    dispatch(a, "mousePressed", 1);
    a->element.x += 6;
    a->element.y += 6;
    dispatch(a, "mouseMoved", 0);
    ask(a, "mouseMoved", 0);
}

/* The browser's word that it drags comes before the answer to this. */
static void await_drag(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_adds(&params, "{\"expression\":\"new Promise(r=>setTimeout(r,50))\",\"awaitPromise\":true}");
    step_ask_lax(a, a->element.session, "Runtime.evaluate", &params, MOUSE_MS);
}

static void find_goal(struct action *a)
{
    free(a->element.object);
    a->element.object = NULL;
    a->params.element_id = a->params.to;
    element_find(a);
}

static void go_there(struct action *a)
{
    double x = a->element.from_x, y = a->element.from_y, by_x = (a->element.x - x) / DRAG_STEPS,
           by_y = (a->element.y - y) / DRAG_STEPS;
    for (int i = 1; i <= DRAG_STEPS && !a->web->tabs.dragged; i++) {
        a->element.x = x + by_x * i;
        a->element.y = y + by_y * i;
        if (i == DRAG_STEPS)
            dispatch(a, "mouseMoved", 0);
        dispatch(a, "mouseMoved", 0);
    }
    step_next(a);
}

static void reach_goal(struct action *a)
{
    if (mouse_aim(a))
        go_there(a);
}

static void move_by(struct action *a)
{
    a->element.x = a->element.from_x + (double)a->params.x;
    a->element.y = a->element.from_y + (double)a->params.y;
    go_there(a);
}

static void drop(struct action *a)
{
    static const char *const types[] = {"dragEnter", "dragOver", "dragOver", "drop"};
    for (size_t i = 0; a->web->tabs.dragged && i < sizeof types / sizeof *types; i++) {
        struct buf params BUF_AUTO = BUF_INIT;
        buf_addc(&params, '{');
        json_member_string(&params, "type", types[i]);
        put_at(&params, a->element.x, a->element.y);
        json_key(&params, "data");
        buf_addf(&params, "%s}", a->web->tabs.dragged);
        cdp_call(a->web->browser.cdp, a->element.session, "Input.dispatchDragEvent", span_of(&params), NULL,
                 NULL);
    }
    cdp_call(a->web->browser.cdp, a->element.session, "Input.setInterceptDrags",
             (struct span){"{\"enabled\":false}", 17}, NULL, NULL);
    ask(a, "mouseReleased", 1);
}

static const step_fn drag_steps[9] = {
    take_hold, await_drag, find_goal, element_object, element_show, element_place, reach_goal, drop, NULL};
static const step_fn drag_by_steps[5] = {take_hold, await_drag, move_by, drop, NULL};
