/* Pictures as answers, and waiting for them to come to rest. */
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "io.h"
#include "json.h"
#include "mem.h"
#include "task.h"

#define LOOK_MS 50
#define CARET (2 * SCREEN_TILE) /* what blinks in no more than that is none that matters */

int picture_put(struct task *t, struct area area, int width, int height, bool cursor)
{
    struct buf png BUF_AUTO = BUF_INIT;
    if (screen_png(t->desk, area, width, height, cursor, &png, &t->err) < 0)
        return -1;
    json_member_string(&t->result, "mime_type", "image/png");
    json_member_int(&t->result, "width", width);
    json_member_int(&t->result, "height", height);
    json_key(&t->result, "data");
    buf_addc(&t->result, '"');
    base64_put(&t->result, png.data, png.len);
    buf_addc(&t->result, '"');
    return 0;
}

int picture_put_whole(struct task *t, bool cursor)
{
    struct desk *d = t->desk;
    if (desk_measure(d, &t->err) < 0)
        return -1;
    const struct area whole = {0, 0, d->x.screen.width, d->x.screen.height};
    return picture_put(t, whole, d->model_width, d->model_height, cursor);
}

int picture_area(struct task *t, const struct ints *region, struct area *area)
{
    struct desk *d = t->desk;
    if (desk_measure(d, &t->err) < 0)
        return -1;
    *area = (struct area){0, 0, d->x.screen.width, d->x.screen.height};
    if (!region->set)
        return 0;
    const long long *r = region->list;
    if (region->n != 4)
        return err_set(&t->err, ERR_TOOL, "region must be a tuple of 4 coordinates (x0, y0, x1, y1)");
    if (r[0] < 0 || r[1] < 0 || r[2] < 0 || r[3] < 0)
        return err_set(&t->err, ERR_TOOL, "region must contain non-negative integers");
    if (r[0] > d->model_width || r[2] > d->model_width || r[1] > d->model_height || r[3] > d->model_height)
        return err_set(&t->err, ERR_TOOL,
                       "Coordinates %lld, %lld, %lld, %lld are out of bounds: the screen has %d x %d", r[0],
                       r[1], r[2], r[3], d->model_width, d->model_height);
    area->x = screen_from_model(d, r[0], false);
    area->y = screen_from_model(d, r[1], true);
    area->width = screen_from_model(d, r[2], false) - area->x;
    area->height = screen_from_model(d, r[3], true) - area->y;
    if (area->width > 0 && area->height > 0)
        return 0;
    return err_set(&t->err, ERR_TOOL, "region must have x0 < x1 and y0 < y1");
}

/* ---- what has changed ---- */

/* Remembers what the screen looks like; the sums that were there before, which are the caller's, where they
 * are of the same size. */
static int remember(struct task *t, uint64_t **before)
{
    struct desk *d = t->desk;
    int across, down;
    uint64_t *now = screen_tiles(d, &across, &down, &t->err);
    if (!now)
        return -1;
    bool same = d->tiles && across == d->tiles_width && down == d->tiles_height;
    *before = same ? d->tiles : NULL;
    if (!same)
        free(d->tiles);
    d->tiles = now;
    d->tiles_width = across;
    d->tiles_height = down;
    return 0;
}

int task_screenshot(struct task *t)
{
    const struct computer_shot_params *p = &t->params.shot;
    struct desk *d = t->desk;
    struct area area, changed;
    uint64_t *before MEM_AUTO = NULL;
    if (picture_area(t, &p->region, &area) < 0 || remember(t, &before) < 0)
        return TASK_FAILED;
    bool differs = true, part = p->region.set;
    if (p->changed && before) {
        differs = screen_difference(d, d->tiles, before, d->tiles_width, d->tiles_height, area, &changed);
        area = changed;
        part = true;
    }
    buf_addc(&t->result, '{');
    if (p->changed)
        json_member_bool(&t->result, "changed", differs);
    if (!differs) {
        buf_addc(&t->result, '}');
        return TASK_DONE;
    }
    if (part) {
        json_member_int(&t->result, "x", screen_to_model(d, area.x, false));
        json_member_int(&t->result, "y", screen_to_model(d, area.y, true));
    }
    bool native = part || p->full;
    int width = native ? area.width : d->model_width, height = native ? area.height : d->model_height;
    if (picture_put(t, area, width, height, !p->no_cursor) < 0)
        return TASK_FAILED;
    buf_addc(&t->result, '}');
    return TASK_DONE;
}

/* ---- at rest ---- */

int rest_step(struct task *t, bool *stable)
{
    struct rest *r = &t->rest;
    struct area changed;
    int across, down;
    uint64_t *tiles = screen_tiles(t->desk, &across, &down, &t->err);
    long long now = now_ms();
    if (!tiles)
        return TASK_FAILED;
    bool same_size = r->tiles && across == r->across && down == r->down;
    bool moved =
        !same_size || (screen_difference(t->desk, tiles, r->tiles, across, down, r->within, &changed) &&
                       (changed.width > CARET || changed.height > CARET));
    if (moved && r->begun)
        r->changed_ms = now;
    free(r->tiles);
    *r = (struct rest){.begun = true,
                       .tiles = tiles,
                       .across = across,
                       .down = down,
                       .changed_ms = r->changed_ms,
                       .until_ms = r->until_ms,
                       .quiet_ms = r->quiet_ms,
                       .within = r->within};
    *stable = now - r->changed_ms >= r->quiet_ms;
    if (!*stable && now < r->until_ms) {
        long long left = r->changed_ms + r->quiet_ms - now;
        return left < 1 ? 1 : left < LOOK_MS ? (int)left : LOOK_MS;
    }
    free(r->tiles);
    r->tiles = NULL;
    return TASK_DONE;
}

int task_wait(struct task *t)
{
    const struct computer_shot_params *p = &t->params.shot;
    bool stable;
    if (!t->rest.begun) {
        if (picture_area(t, &p->region, &t->rest.within) < 0)
            return TASK_FAILED;
        t->rest.changed_ms = now_ms();
        t->rest.until_ms = now_ms() + (long long)(p->timeout * 1000);
        t->rest.quiet_ms = (int)(p->quiet * 1000);
    }
    int next = rest_step(t, &stable);
    if (next != TASK_DONE)
        return next;
    buf_addc(&t->result, '{');
    json_member_bool(&t->result, "stable", stable);
    json_member_seconds(&t->result, "quiet_s", now_ms() - t->rest.changed_ms);
    buf_addc(&t->result, '}');
    return TASK_DONE;
}
