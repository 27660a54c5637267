#include "keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "utf8.h"

#define TYPED_MAX 2000 /* bytes; a longer text is not typed key by key */
#define FLUSH_MS 20000

enum { ALT = 1, CONTROL = 2, META = 4, SHIFT = 8 };

struct key {
    const char *key, *code;
    int number;       /* windowsVirtualKeyCode */
    const char *text; /* what it types; NULL: nothing */
};

static const struct key named[] = {
    {"Enter", "Enter", 13, "\r"},
    {"Tab", "Tab", 9, NULL},
    {"Escape", "Escape", 27, NULL},
    {"Backspace", "Backspace", 8, NULL},
    {"Delete", "Delete", 46, NULL},
    {"Insert", "Insert", 45, NULL},
    {"Home", "Home", 36, NULL},
    {"End", "End", 35, NULL},
    {"PageUp", "PageUp", 33, NULL},
    {"PageDown", "PageDown", 34, NULL},
    {"ArrowLeft", "ArrowLeft", 37, NULL},
    {"ArrowUp", "ArrowUp", 38, NULL},
    {"ArrowRight", "ArrowRight", 39, NULL},
    {"ArrowDown", "ArrowDown", 40, NULL},
    {"Space", "Space", 32, " "},
    {"F1", "F1", 112, NULL},
    {"F2", "F2", 113, NULL},
    {"F3", "F3", 114, NULL},
    {"F4", "F4", 115, NULL},
    {"F5", "F5", 116, NULL},
    {"F6", "F6", 117, NULL},
    {"F7", "F7", 118, NULL},
    {"F8", "F8", 119, NULL},
    {"F9", "F9", 120, NULL},
    {"F10", "F10", 121, NULL},
    {"F11", "F11", 122, NULL},
    {"F12", "F12", 123, NULL},
};

/* ---- one key ---- */

static void put_key(struct buf *params, const char *type, const struct key *k, int modifiers)
{
    buf_addc(params, '{');
    json_member_string(params, "type", type);
    json_member_string(params, "key", strcmp(k->key, "Space") == 0 ? " " : k->key);
    if (*k->code)
        json_member_string(params, "code", k->code);
    if (k->number)
        json_member_int(params, "windowsVirtualKeyCode", k->number);
    if (modifiers)
        json_member_int(params, "modifiers", modifiers);
    if (k->text && strcmp(type, "keyDown") == 0) {
        json_member_string(params, "text", k->text);
        json_member_string(params, "unmodifiedText", k->text);
    }
    buf_addc(params, '}');
}

static const char *session(const struct action *a)
{
    return a->element.session ? a->element.session : page_session(a);
}

/* Keys are answered once the page has dealt with them, in their order. */
static void dealt_with(void *arg, struct span result, const struct err *err)
{
    struct action *a = arg;
    (void)result;
    (void)err;
    if (--a->keys.left > 0 || !a->keys.awaited)
        return;
    a->keys.awaited = false;
    action_limit(a, 0, NULL);
    step_next(a);
}

static void send_key(struct action *a, const char *method, const struct buf *params)
{
    a->keys.left++;
    cdp_call(a->web->browser.cdp, session(a), method, span_of(params), dealt_with, a);
}

static void press(struct action *a, const struct key *k, int modifiers)
{
    struct buf down BUF_AUTO = BUF_INIT;
    struct buf up BUF_AUTO = BUF_INIT;
    put_key(&down, k->text ? "keyDown" : "rawKeyDown", k, modifiers);
    put_key(&up, "keyUp", k, modifiers);
    send_key(a, "Input.dispatchKeyEvent", &down);
    send_key(a, "Input.dispatchKeyEvent", &up);
}

/* ---- characters, as a US keyboard has them; others have keys without a number ---- */

static void press_character(struct action *a, const char *c, size_t n, int modifiers)
{
    static const char plain[] = "1234567890`-=[]\\;',./", shifted[] = "!@#$%^&*()~_+{}|:\"<>?";
    static const unsigned char numbers[] = "1234567890\xc0\xbd\xbb\xdb\xdd\xdc\xba\xde\xbc\xbe\xbf";
    char text[8], code[8] = "";
    struct key k = {.key = text, .code = code, .text = text};
    snprintf(text, sizeof text, "%.*s", (int)n, c);
    const char *at;
    if (n == 1 && ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'))) {
        k.number = *c & ~0x20;
        snprintf(code, sizeof code, "Key%c", k.number);
        if ((modifiers & (CONTROL | ALT | META)) && !(modifiers & SHIFT))
            text[0] |= 0x20; /* Control+A is a key's name, not its upper case */
        modifiers |= text[0] < 'a' ? SHIFT : 0;
    } else if (n == 1 && (at = strchr(plain, *c))) {
        k.number = numbers[at - plain];
        if (*c >= '0' && *c <= '9')
            snprintf(code, sizeof code, "Digit%c", *c);
    } else if (n == 1 && (at = strchr(shifted, *c))) {
        k.number = numbers[at - shifted];
        modifiers |= SHIFT;
    } else if (n == 1 && *c == ' ') {
        k.number = 32;
        snprintf(code, sizeof code, "Space");
    }
    if (modifiers & (CONTROL | ALT | META))
        k.text = NULL;
    press(a, &k, modifiers);
}

static const struct key *key_of(const char *name)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcasecmp(named[i].key, name) == 0)
            return &named[i];
    return NULL;
}

static void insert(struct action *a, const char *s, size_t n)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_text(&params, "text", s, n);
    buf_addc(&params, '}');
    send_key(a, "Input.insertText", &params);
}

/* As the editor's own command: inserted as text it would leave the caret in the paragraph before. */
static void break_paragraph(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_adds(&params, "{\"type\":\"rawKeyDown\",\"commands\":[\"insertNewline\"]}");
    send_key(a, "Input.dispatchKeyEvent", &params);
}

void keys_type(struct action *a, struct text text, bool rich)
{
    bool whole;
    for (size_t at = 0; at < text.n;) {
        size_t n = utf8_sequence(text.s + at, text.n - at, &whole);
        char c = text.s[at];
        bool breaks = c == '\n' || c == '\r';
        if (text.n > TYPED_MAX && c != '\t' && !(rich && breaks)) {
            /* a tab among others would become a space in many a field */
            n = strcspn(text.s + at, rich ? "\t\r\n" : "\t");
            if (n > 0)
                insert(a, text.s + at, n);
            at += n > 0 ? n : 1; /* a NUL */
            continue;
        }
        if (rich && breaks)
            break_paragraph(a);
        else if (breaks || c == '\t') /* text, where the key would lead on or send a form */
            insert(a, c == '\t' ? "\t" : "\n", 1);
        else if ((unsigned char)c >= ' ' && c != 127)
            press_character(a, text.s + at, n, 0);
        at += c == '\r' && at + 1 < text.n && text.s[at + 1] == '\n' ? 2 : n;
    }
}

/* ---- by name ---- */

/* The modifier that the name begins with, and how long that is; 0: none. */
static int modifier_of(const char *name, size_t *n)
{
    static const struct {
        const char *name;
        int bit;
    } all[] = {{"Control+", CONTROL}, {"Ctrl+", CONTROL}, {"Alt+", ALT},
               {"Shift+", SHIFT},     {"Meta+", META},    {"ControlOrMeta+", CONTROL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *n = strlen(all[i].name);
        if (strncasecmp(name, all[i].name, *n) == 0 && name[*n])
            return all[i].bit;
    }
    return 0;
}

bool keys_press(struct action *a, const char *name)
{
    int modifiers = 0, bit;
    bool whole;
    size_t n;
    while ((bit = modifier_of(name, &n)) != 0) {
        modifiers |= bit;
        name += n;
    }
    const struct key *k = key_of(name);
    if (k) {
        press(a, k, modifiers);
        return true;
    }
    n = strlen(name);
    if (n == 0 || (unsigned char)*name < ' ' || utf8_sequence(name, n, &whole) != n)
        return false;
    press_character(a, name, n, modifiers);
    return true;
}

/* A page that is stuck is found to be by the steps that follow. */
static void never_dealt_with(struct action *a)
{
    cdp_forget(a->web->browser.cdp, a);
    a->keys.left = 0;
    a->keys.awaited = false;
    step_next(a);
}

void keys_flush(struct action *a)
{
    if (a->keys.left == 0) {
        step_next(a);
        return;
    }
    a->keys.awaited = true;
    action_limit(a, FLUSH_MS, never_dealt_with);
}
