#include "keyboard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"
#include "keys.h"
#include "mem.h"
#include "proc.h"
#include "utf8.h"

enum {
    CHANGE_ATTRIBUTES = 2,
    QUERY_POINTER = 38,
    GET_INPUT_FOCUS = 43,
    CHANGE_MAPPING = 100,
    GET_MAPPING = 101,
    GET_MODIFIERS = 119
};
enum { XKB_GET_STATE = 4, XKB_LATCH_LOCK_STATE = 5, XKB_CORE_KEYBOARD = 0x100 };
enum { EVENT_MASK = 1 << 11, SUBSTRUCTURE_NOTIFY = 1 << 19, CLIENT_MESSAGE = 33 };
#define SHIFT 0xffe1
#define LOCK 2 /* the modifier of Caps Lock */
#define XF86_KEYS 0x1008
#define CODES 256
#define SETTLE_MS 500 /* for programs that can't be asked and are not on this machine */
#define PATIENCE_MS 5000
#define SLEEP_MS 50

struct keyboard {
    uint32_t *symbols; /* as the server has them: `columns` of each key */
    int columns;
    unsigned char is_modifier[CODES];
    uint32_t given[CODES];      /* what we have given it; 0: nothing */
    bool pending[CODES];        /* of which the server has not been told */
    uint32_t *before[CODES];    /* what it had then */
    unsigned generation[CODES]; /* in which it was used last */
    unsigned now;               /* presses of earlier ones have been dealt with */
};

static struct keyboard *keyboard_of(struct desk *d)
{
    if (!d->keyboard) {
        d->keyboard = mem_zalloc(sizeof *d->keyboard);
        d->keyboard->now = 1;
    }
    return d->keyboard;
}

/* ---- the layout ---- */

static int load(struct desk *d, struct err *err)
{
    struct keyboard *k = keyboard_of(d);
    struct buf reply BUF_AUTO = BUF_INIT;
    uint32_t count = (uint32_t)(d->x.key_max - d->x.key_min + 1);
    const struct x11_request get = {.opcode = GET_MAPPING, X11_WORDS(d->x.key_min | count << 8)};
    const struct x11_request modifiers = {.opcode = GET_MODIFIERS};
    if (x11_ask(&d->x, &get, 0, &reply, err) < 0)
        return -1;
    k->columns = (unsigned char)reply.data[1];
    if (k->columns == 0 || reply.len - 32 < (size_t)k->columns * count * 4)
        return err_set(err, ERR_TOOL, "the display %s has no keyboard", d->x.display);
    free(k->symbols);
    k->symbols = mem_zalloc((size_t)k->columns * CODES * sizeof *k->symbols);
    for (size_t i = 0; i < (size_t)k->columns * count; i++)
        k->symbols[(size_t)d->x.key_min * (size_t)k->columns + i] = x11_u32(reply.data + 32 + 4 * i);
    if (x11_ask(&d->x, &modifiers, 0, &reply, err) < 0)
        return -1;
    memset(k->is_modifier, 0, sizeof k->is_modifier);
    for (size_t at = 32; at < reply.len; at++)
        k->is_modifier[(unsigned char)reply.data[at]] = 1;
    return 0;
}

static uint32_t symbol(const struct keyboard *k, int code, int column)
{
    return column < k->columns ? k->symbols[code * k->columns + column] : 0;
}

/* What Num Lock changes, and Shift in its place, which programs take for Shift with the other one. */
static bool is_keypad(uint32_t s)
{
    return s >= 0xff95 && s <= 0xff9f;
}

/* The key that has it, by itself or with Shift; 0: none. */
static int find(const struct desk *d, uint32_t wanted, bool *shift)
{
    const struct keyboard *k = d->keyboard;
    unsigned character = key_character(wanted);
    for (int code = d->x.key_min; code <= d->x.key_max; code++)
        for (int column = 0; column < 2; column++) {
            uint32_t s = symbol(k, code, column);
            if (s == 0 || (column == 1 && is_keypad(symbol(k, code, 0))) ||
                (s != wanted && !(character && key_character(s) == character)))
                continue;
            *shift = column == 1;
            return code;
        }
    return 0;
}

/* ---- keys that are given something ---- */

static void change(struct desk *d, int code, int count, int columns)
{
    const uint32_t *from = d->keyboard->symbols + (size_t)code * (size_t)d->keyboard->columns;
    uint32_t *words = mem_alloc(((size_t)count * (size_t)columns + 1) * 4);
    size_t n = 0;
    words[n++] = (uint32_t)code | (uint32_t)columns << 8;
    for (int key = 0; key < count; key++)
        for (int column = 0; column < columns; column++)
            words[n++] = column < d->keyboard->columns ? from[key * d->keyboard->columns + column] : 0;
    const struct x11_request r = {
        .opcode = CHANGE_MAPPING, .detail = (unsigned char)count, .words = words, .n_words = n};
    x11_send(&d->x, &r);
    free(words);
}

/* Tells the server what keys were given, of neighbours at once: for each message programs ask for the whole
 * layout. */
static void tell_given(struct desk *d)
{
    struct keyboard *k = d->keyboard;
    for (int code = 0, n; code < CODES; code += n + 1) {
        for (n = 0; code + n < CODES && k->pending[code + n]; n++)
            k->pending[code + n] = false;
        if (n > 0)
            change(d, code, n, 2);
    }
}

/* How good a key is for that: 2: it means nothing; 1: something that few keyboards have; 0: it isn't. */
static int spare(const struct keyboard *k, int code)
{
    int result = 2;
    if (k->is_modifier[code] || k->columns > 32)
        return 0;
    for (int column = 0; column < k->columns && !k->given[code]; column++) {
        uint32_t s = symbol(k, code, column);
        if (s != 0)
            result = s >> 16 == XF86_KEYS && result > 0 ? 1 : 0;
    }
    return result;
}

/* Gives a key that nobody waits for the symbol; 0: each has been pressed since it was last known that all has
 * arrived. The one that has gone unused for longest. */
static int give(struct desk *d, uint32_t wanted)
{
    struct keyboard *k = d->keyboard;
    int best = 0, best_worth = 0;
    for (int code = d->x.key_min; code <= d->x.key_max; code++) {
        int worth = spare(k, code);
        if (worth == 0 || (k->given[code] && k->generation[code] >= k->now))
            continue;
        if (worth > best_worth || (worth == best_worth && k->generation[code] < k->generation[best])) {
            best = code;
            best_worth = worth;
        }
    }
    if (best == 0)
        return 0;
    if (!k->before[best]) {
        k->before[best] = mem_zalloc((size_t)CODES * 4); /* of as many columns as there may be then */
        memcpy(k->before[best], k->symbols + (size_t)best * (size_t)k->columns, (size_t)k->columns * 4);
    }
    k->pending[best] = true;
    k->given[best] = wanted;
    for (int column = 0; column < k->columns; column++)
        k->symbols[best * k->columns + column] = column < 2 ? wanted : 0;
    return best;
}

void keyboard_restore(struct desk *d)
{
    struct keyboard *k = d->keyboard;
    for (int code = 0; k && code < CODES; code++)
        if (k->given[code] && !d->x.dead) {
            memcpy(k->symbols + (size_t)code * (size_t)k->columns, k->before[code], (size_t)k->columns * 4);
            change(d, code, 1, k->columns);
            k->given[code] = 0;
            free(k->before[code]);
            k->before[code] = NULL;
        }
}

static int key_for(struct desk *d, uint32_t wanted, bool *shift)
{
    int code = find(d, wanted, shift);
    if (code == 0) {
        *shift = false;
        code = give(d, wanted);
    }
    if (code > 0 && d->keyboard->given[code])
        d->keyboard->generation[code] = d->keyboard->now;
    return code;
}

/* ---- keys by name ---- */

/* One combination: its keys in their order, with Shift before the last where that takes it. */
struct combination {
    int codes[16];
    int n;
};

static int combine(struct desk *d, const char *word, size_t n, struct combination *c, struct err *err)
{
    bool shift = false, ignored, has_shift = false;
    for (size_t at = 0; at < n;) {
        size_t part = 0;
        while (at + part < n && (part == 0 || word[at + part] != '+'))
            part++;
        uint32_t wanted = key_symbol(word + at, part);
        if (wanted == 0)
            return err_set(
                err, ERR_TOOL,
                "(symbol) No such key name '%.*s'. Keys are named as xdotool has them: Return, ctrl+s, "
                "alt+Tab, F5, Page_Down, é",
                (int)(part < 60 ? part : 60), word + at);
        int code = key_for(d, wanted, &shift);
        if (code == 0 || c->n == 14)
            return err_set(err, ERR_TOOL, "too many keys at once: '%.*s'", (int)(n < 200 ? n : 200), word);
        has_shift = has_shift || wanted == SHIFT || wanted == SHIFT + 1;
        c->codes[c->n++] = code;
        at += part + 1;
    }
    if (shift && !has_shift && c->n > 0) {
        c->codes[c->n] = c->codes[c->n - 1];
        c->codes[c->n - 1] = key_for(d, SHIFT, &ignored);
        c->n++;
    }
    return c->n > 0 ? 0 : err_set(err, ERR_TOOL, "no key is named");
}

int keyboard_press(struct desk *d, const char *keys, int how, struct err *err)
{
    struct combination all[100];
    int n = 0;
    if (load(d, err) < 0)
        return -1;
    for (const char *at = keys + strspn(keys, " \t\n"); *at; at += strspn(at, " \t\n")) {
        size_t length = strcspn(at, " \t\n");
        if (n == 100)
            return err_set(err, ERR_TOOL, "too many keys");
        all[n].n = 0;
        if (combine(d, at, length, &all[n++], err) < 0)
            return -1;
        at += length;
    }
    if (n == 0)
        return err_set(err, ERR_TOOL, "no key is named");
    tell_given(d);
    if (x11_sync(&d->x, err) < 0) /* what keys were given is known before they are pressed */
        return -1;
    for (int i = 0; i < n; i++) {
        struct combination *c = &all[how == PRESS_UP ? n - 1 - i : i];
        for (int j = 0; how & PRESS_DOWN && j < c->n; j++)
            desk_fake(d, FAKE_KEY_DOWN, c->codes[j], 0, 0, 0);
        for (int j = c->n - 1; how & PRESS_UP && j >= 0; j--)
            desk_fake(d, FAKE_KEY_UP, c->codes[j], 0, 0, 0);
    }
    return x11_sync(&d->x, err);
}

/* ---- texts ---- */

static void lock(struct desk *d, unsigned char mods, unsigned char group)
{
    const struct x11_request r = {.opcode = d->has.xkb,
                                  .detail = XKB_LATCH_LOCK_STATE,
                                  X11_WORDS(XKB_CORE_KEYBOARD | (uint32_t)LOCK << 16 | (uint32_t)mods << 24,
                                            1 | (uint32_t)group << 8, 0)};
    if (d->has.xkb)
        x11_send(&d->x, &r);
}

/* Capitals and other groups of the layout are off while it types. */
static int begin(struct desk *d, struct typing *t, struct err *err)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    const struct x11_request state = {
        .opcode = d->has.xkb, .detail = XKB_GET_STATE, X11_WORDS(XKB_CORE_KEYBOARD)};
    if (load(d, err) < 0)
        return -1;
    if (d->has.xkb && x11_ask(&d->x, &state, 0, &reply, err) < 0)
        return -1;
    if (d->has.xkb) {
        t->locks = (unsigned char)reply.data[11] & LOCK;
        t->group = (unsigned char)reply.data[13];
    }
    t->begun = true;
    if (t->locks || t->group)
        lock(d, 0, 0);
    return 0;
}

/* The window that has the focus. */
static uint32_t focused(struct desk *d)
{
    struct buf reply BUF_AUTO = BUF_INIT;
    struct err err;
    const struct x11_request focus = {.opcode = GET_INPUT_FOCUS},
                             pointer = {.opcode = QUERY_POINTER, X11_WORDS(d->x.screen.root)};
    uint32_t window = desk_property_number(d, d->x.screen.root, "_NET_ACTIVE_WINDOW");
    if (!window && x11_ask(&d->x, &focus, 0, &reply, &err) == 0)
        window = x11_u32(reply.data + 8);
    if ((window <= 1 || window == d->x.screen.root) && x11_ask(&d->x, &pointer, 0, &reply, &err) == 0)
        window = x11_u32(reply.data + 12); /* it is where the pointer is */
    return window;
}

/* Asks it whether it has dealt with all it was sent; false: it does not know that question. */
static bool ask(struct desk *d, uint32_t window, uint32_t token)
{
    if (!desk_speaks(d, window, "_NET_WM_PING"))
        return false;
    const struct x11_request listen = {.opcode = CHANGE_ATTRIBUTES,
                                       X11_WORDS(d->x.screen.root, EVENT_MASK, SUBSTRUCTURE_NOTIFY)};
    x11_send(&d->x, &listen);
    const uint32_t five[] = {desk_atom(d, "_NET_WM_PING", true), token, window, 0, 0};
    desk_tell(d, window, window, "WM_PROTOCOLS", five, 0);
    return true;
}

static void settle_begin(struct desk *d, struct typing *t)
{
    uint32_t window = focused(d);
    t->settling = true;
    t->window = window > 1 && ask(d, window, d->keyboard->now) ? window : 0;
    t->sleeper = (struct sleeper){.pid = !t->window && window > 1 ? desk_process(d, window) : 0};
    t->until_ms = now_ms() + (t->window || t->sleeper.pid > 0 ? PATIENCE_MS : SETTLE_MS);
}

/* Whether a process has slept for a while: what it was sent it has dealt with. */
static bool sleeps(struct desk *d, struct sleeper *s)
{
    struct proc process;
    struct buf text BUF_AUTO = BUF_INIT;
    struct err ignored;
    char path[64];
    x11_sync(&d->x, &ignored); /* it waits for the X server no more */
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)s->pid);
    if (io_read_file(-1, path, &text) < 0 || proc_read(s->pid, &process) < 0)
        return s->pid = 0, false;
    unsigned long long ran = strtoull(buf_str(&text), NULL, 10);
    if (ran != s->ran || process.state != 'S' || s->since_ms == 0)
        s->since_ms = now_ms();
    s->ran = ran;
    return now_ms() - s->since_ms >= SLEEP_MS;
}

/* Whether all has arrived by now, as far as can be known. */
static bool settled(struct desk *d, struct typing *t)
{
    unsigned char event[X11_EVENT_SIZE];
    bool done = now_ms() >= t->until_ms || (t->sleeper.pid > 0 && sleeps(d, &t->sleeper));
    while (!done && t->window && x11_event(&d->x, CLIENT_MESSAGE, 0, event))
        done = x11_u32(event + 16) == d->keyboard->now && x11_u32(event + 20) == t->window;
    if (!done)
        return false;
    const struct x11_request deaf = {.opcode = CHANGE_ATTRIBUTES, X11_WORDS(d->x.screen.root, EVENT_MASK, 0)};
    if (t->window)
        x11_send(&d->x, &deaf);
    d->keyboard->now++;
    t->settling = false;
    return true;
}

/* Looks a part of the text up, gives keys what is missing, and presses them. Its length; 0: no key is free.
 */
static size_t type_part(struct desk *d, const char *text, size_t n, struct err *err)
{
    enum { PART = 512 };
    short codes[PART]; /* negative: with Shift */
    size_t at = 0;
    int count = 0;
    bool shift, ignored;
    while (at < n && count < PART) {
        int length = utf8_char(text + at, n - at);
        uint32_t wanted = length > 0 ? key_of_character(utf8_code_point(text + at, length)) : 0;
        int code = wanted ? key_for(d, wanted, &shift) : 0;
        if (wanted && code == 0)
            break;
        if (code)
            codes[count++] = (short)(shift ? -code : code);
        at += length > 0 ? (size_t)length : 1;
    }
    int shift_code = find(d, SHIFT, &ignored);
    tell_given(d);
    if (x11_sync(&d->x, err) < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        int code = abs(codes[i]);
        if (codes[i] < 0 && (i == 0 || codes[i - 1] > 0))
            desk_fake(d, FAKE_KEY_DOWN, shift_code, 0, 0, 0);
        desk_fake(d, FAKE_KEY_DOWN, code, 0, 0, 0);
        desk_fake(d, FAKE_KEY_UP, code, 0, 0, 0);
        if (codes[i] < 0 && (i == count - 1 || codes[i + 1] > 0))
            desk_fake(d, FAKE_KEY_UP, shift_code, 0, 0, 0);
    }
    return x11_sync(&d->x, err) < 0 ? 0 : at;
}

int keyboard_type(struct desk *d, struct typing *t, struct err *err)
{
    if (!t->begun && begin(d, t, err) < 0)
        return -2;
    if (t->settling && !settled(d, t))
        return 5;
    err->msg[0] = 0;
    size_t n = t->at < t->n ? type_part(d, t->text + t->at, t->n - t->at, err) : 0;
    t->at += n;
    if (d->x.dead)
        return *err = d->x.end, -2;
    if (t->at < t->n && n == 0 && t->stuck)
        return err_set(err, ERR_TOOL, "the layout has no key for what is to be typed, and none to spare"), -2;
    if (t->at < t->n && n == 0)
        settle_begin(d, t);
    t->stuck = n == 0;
    if (t->at < t->n)
        return n == 0 ? 5 : 1;
    if (t->locks || t->group)
        lock(d, t->locks, t->group);
    return x11_sync(&d->x, err) < 0 ? -2 : -1;
}
