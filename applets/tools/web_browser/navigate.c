/* Steps on the whole page: going somewhere, back and forth, scrolling, tabs. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "keys.h"
#include "mem.h"
#include "web.h"

#define NAVIGATE_MS 30000
#define ASK_MS 10000

/* ---- go ---- */

static bool is_number_between(const char *s, const char *begin, long low, long high)
{
    size_t n = strlen(begin);
    long next = strncmp(s, begin, n) == 0 ? strtol(s + n, NULL, 10) : -1;
    return next >= low && next <= high;
}

/* A host of this machine or of a network of its own, which mostly has no certificate: a name without dots or
 * of such a network, a private address. */
static bool is_near(const char *url)
{
    static const char *const domains[] = {".localhost", ".local", ".internal"};
    const char *at = memchr(url, '@', strcspn(url, "/?#"));
    const char *host = at ? at + 1 : url;
    if (*host == '[')
        return strncmp(host, "[::1]", 5) == 0 || strncasecmp(host, "[fc", 3) == 0 ||
               strncasecmp(host, "[fd", 3) == 0 || strncasecmp(host, "[fe80:", 6) == 0;
    size_t n = strcspn(host, ":/?#");
    if (strspn(host, "0123456789.") == n)
        return is_number_between(host, "", 10, 10) || is_number_between(host, "", 127, 127) ||
               is_number_between(host, "", 0, 0) || is_number_between(host, "172.", 16, 31) ||
               is_number_between(host, "192.", 168, 168) || is_number_between(host, "169.", 254, 254);
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++) {
        size_t of_domain = strlen(domains[i]);
        if (n > of_domain && strncasecmp(host + n - of_domain, domains[i], of_domain) == 0)
            return true;
    }
    return !memchr(host, '.', n);
}

/* "host/path" becomes "https://host/path", as a person types it, or with http where it is near; the other one
 * of the two where that could not be had. */
static char *whole_url(const struct text *url, bool other, bool *whole)
{
    static const char *const schemes[] = {
        "about:", "data:", "blob:", "javascript:", "view-source:", "mailto:"};
    const char *s = url->s + strspn(url->s, " \t\r\n");
    size_t n = strlen(s);
    while (n > 0 && strchr(" \t\r\n", s[n - 1]))
        n--;
    char *trimmed = mem_dup(s, n);
    *whole = strstr(trimmed, "://") != NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        *whole = *whole || strncasecmp(trimmed, schemes[i], strlen(schemes[i])) == 0;
    const char *scheme = *whole ? "" : is_near(trimmed) != other ? "http://" : "https://";
    char *result = mem_printf("%s%s", scheme, trimmed);
    free(trimmed);
    return result;
}

static void new_page(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "url", "about:blank");
    json_member_string(&params, "browserContextId", a->web->context);
    buf_addc(&params, '}');
    step_ask(a, "", "Target.createTarget", &params, NAVIGATE_MS);
}

static void close_page(struct action *a, const struct tab *t)
{
    struct buf params BUF_AUTO = BUF_INIT;
    buf_addc(&params, '{');
    json_member_string(&params, "targetId", t->target);
    buf_addc(&params, '}');
    step_ask_lax(a, "", "Target.closeTarget", &params, ASK_MS);
}

/* A page whose script keeps its process busy would keep the next one of its site from coming as well. */
static void open_if_needed(struct action *a)
{
    if (!a->web->tabs.first || a->fault.was_stuck)
        new_page(a);
    else
        step_next(a);
}

static void close_stuck(struct action *a)
{
    const struct tab *t = a->fault.was_stuck ? a->web->tabs.first->next : NULL;
    if (t)
        close_page(a, t);
    else
        step_next(a);
}

static void never_answered(struct action *a)
{
    const char *session = page_session(a);
    cdp_forget(a->web->browser.cdp, a);
    if (session)
        cdp_call(a->web->browser.cdp, session, "Page.stopLoading", (struct span){0}, NULL, NULL);
    step_fail(a, "'%.300s' has not answered within %d s", a->params.url.s, NAVIGATE_MS / 1000);
}

static const step_fn retry_steps[3];

static void navigate(struct action *a)
{
    struct buf params BUF_AUTO = BUF_INIT;
    bool whole;
    char *url MEM_AUTO = whole_url(&a->params.url, a->open.other_scheme, &whole);
    if (strncasecmp(url, "javascript:", 11) == 0) {
        step_fail(a, "a javascript: address is no page; run it with web_evaluate");
        return;
    }
    if (!page_session(a)) {
        step_fail(a, "the browser has opened no page");
        return;
    }
    buf_addc(&params, '{');
    json_member_string(&params, "url", url);
    buf_addc(&params, '}');
    step_ask_lax(a, page_session(a), "Page.navigate", &params, NAVIGATE_MS);
    action_limit(a, NAVIGATE_MS, never_answered);
    a->rest.loads = a->web->tabs.first->loads;
    a->open.retry = a->open.again ? NULL : retry_steps;
}

static const struct {
    const char *code, *words;
} net_errors[] = {
    {"ERR_NAME_NOT_RESOLVED", "there is no such host, or no network"},
    {"ERR_CONNECTION_REFUSED", "nothing listens there (is it http:// rather than https://, another port?)"},
    {"ERR_INTERNET_DISCONNECTED", "there is no network"},
    {"ERR_CONNECTION_TIMED_OUT", "the host does not answer"},
    {"ERR_TIMED_OUT", "the host does not answer"},
    {"ERR_CONNECTION_RESET", "the host closed the connection"},
    {"ERR_EMPTY_RESPONSE", "the host closed the connection without an answer"},
    {"ERR_SSL_PROTOCOL_ERROR", "it does not speak TLS: try http://"},
    {"ERR_CERT_", "its certificate is not trusted"},
    {"ERR_TOO_MANY_REDIRECTS", "it redirects for ever"},
    {"ERR_FILE_NOT_FOUND", "there is no such file"},
    {"ERR_ABORTED", "it gives no page: an empty answer, a download, or another page came first"},
    {"ERR_HTTP_RESPONSE_CODE_FAILURE", "the server answers with an error, and without a page"},
    {"ERR_INVALID_AUTH_CREDENTIALS",
     "it asks for a user name and a password: https://NAME:PASSWORD@HOST/ gives them"},
    {"ERR_INVALID_HTTP_RESPONSE", "what answers there does not speak HTTP"},
    {"ERR_ADDRESS_UNREACHABLE", "no network leads to that host"},
    {"ERR_ACCESS_DENIED", "the browser's user may not read it"},
    {"ERR_UNSAFE_PORT", "browsers refuse that port"},
    {"ERR_UNKNOWN_URL_SCHEME", "the browser does not know this kind of address"},
};

/* Nothing answered there, or something else than was asked for: without a scheme, the other one is tried
 * once. A certificate that is not trusted is no reason to do without one. */
static bool try_other_scheme(struct action *a, const char *error)
{
    static const char *const codes[] = {"ERR_CONNECTION_", "ERR_SSL_", "ERR_EMPTY_RESPONSE",
                                        "ERR_INVALID_HTTP_RESPONSE"};
    bool whole, fits = false;
    char *first MEM_AUTO = whole_url(&a->params.url, false, &whole);
    char *second MEM_AUTO = whole_url(&a->params.url, true, &whole);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        fits = fits || strstr(error, codes[i]);
    if (whole || !fits || a->open.other_scheme)
        return false;
    tabs_note(&a->web->tabs, "%.300s could not be had (%s), so %.300s was opened", first, error, second);
    a->open.other_scheme = true;
    step_branch(a, retry_steps);
    return true;
}

static void navigated(struct action *a)
{
    struct tab *t = a->web->tabs.first;
    struct buf error BUF_AUTO = BUF_INIT;
    struct buf loader BUF_AUTO = BUF_INIT;
    const char *words = "it can't be loaded";
    if (!a->asked.result.s && action_retry(a))
        return;
    if (t && a->asked.result.s && member_text(a->asked.result, "loaderId", &loader))
        awaited_set(&t->awaited, buf_take(&loader, NULL));
    if (!a->asked.result.s) {
        step_fail(a, "cannot open '%.300s': %s", a->params.url.s, a->asked.why.msg);
        return;
    }
    if (!member_text(a->asked.result, "errorText", &error)) {
        step_next(a);
        return;
    }
    if (try_other_scheme(a, buf_str(&error)))
        return;
    for (size_t i = 0; i < sizeof net_errors / sizeof *net_errors; i++)
        if (strstr(buf_str(&error), net_errors[i].code)) {
            words = net_errors[i].words;
            break;
        }
    err_set(&a->fault.doubt, ERR_TOOL, "cannot open '%.300s': %s (%s)", a->params.url.s, words,
            buf_str(&error));
    step_next(a); /* a download may still say so, which tells more */
}

static const step_fn retry_steps[3] = {navigate, navigated, NULL};
const step_fn go_steps[] = {open_if_needed, close_stuck, navigate, navigated, NULL};

/* ---- back, forward, refresh ---- */

static void ask_history(struct action *a)
{
    step_ask(a, page_session(a), "Page.getNavigationHistory", NULL, ASK_MS);
}

/* The n-th entry's id; false when there is none. */
static bool entry_at(struct span history, long long n, long long *id)
{
    struct span entries, entry, value;
    if (!json_member(history, "entries", &entries, NULL))
        return false;
    for (size_t at = 0; json_element(entries, &at, &entry);)
        if (n-- == 0 && json_member(entry, "id", &value, NULL)) {
            *id = strtoll(value.s, NULL, 10);
            return true;
        }
    return false;
}

static void go_by(struct action *a, int by, const char *where)
{
    struct buf params BUF_AUTO = BUF_INIT;
    struct span index;
    long long id;
    if (!json_member(a->asked.result, "currentIndex", &index, NULL) ||
        !entry_at(a->asked.result, strtoll(index.s, NULL, 10) + by, &id)) {
        step_fail(a, "there is no page to go %s to", where);
        return;
    }
    buf_addc(&params, '{');
    json_member_int(&params, "entryId", id);
    buf_addc(&params, '}');
    if (a->web->tabs.first)
        a->web->tabs.first->navigation = NAVIGATION_REQUESTED;
    step_ask(a, page_session(a), "Page.navigateToHistoryEntry", &params, ASK_MS);
}

static void go_back(struct action *a)
{
    go_by(a, -1, "back");
}

static void go_forward(struct action *a)
{
    go_by(a, 1, "forward");
}

const step_fn back_steps[] = {ask_history, go_back, NULL};
const step_fn forward_steps[] = {ask_history, go_forward, NULL};

static void reload(struct action *a)
{
    if (a->web->tabs.first)
        a->web->tabs.first->navigation = NAVIGATION_REQUESTED;
    step_ask(a, page_session(a), "Page.reload", NULL, NAVIGATE_MS);
}

const step_fn refresh_steps[] = {reload, NULL};

/* ---- keys ---- */

static void press(struct action *a)
{
    if (!page_session(a))
        step_fail(a, "no page is open; web_go opens one");
    else if (!keys_press(a, a->params.key.s))
        step_fail(
            a,
            "there is no key '%.40s'; there are single characters, Enter, Tab, Escape, Backspace, Delete, "
            "Insert, Space, Home, End, PageUp, PageDown, ArrowUp, ArrowDown, ArrowLeft, ArrowRight, F1 to "
            "F12, and with Control+, Alt+, Shift+ or Meta+ in front",
            a->params.key.s);
    else
        keys_flush(a);
}

const step_fn press_steps[] = {press, NULL};

/* ---- tabs ---- */

static void wanted_tab(struct action *a)
{
    struct tab *t = tabs_find(&a->web->tabs, a->params.tab);
    if (a->params.new_tab) {
        new_page(a);
    } else if (!t) {
        step_fail(a, "there is no tab %lld; web_tabs lists them", a->params.tab);
    } else if (a->params.close) {
        close_page(a, t);
    } else {
        tabs_make_current(&a->web->tabs, t);
        step_next(a);
    }
}

static void bring_to_front(struct action *a)
{
    if (page_session(a))
        step_ask_lax(a, page_session(a), "Page.bringToFront", NULL, ASK_MS);
    else
        step_next(a);
}

const step_fn tab_steps[] = {wanted_tab, bring_to_front, NULL};
