#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "find.h"
#include "io.h"
#include "log.h"
#include "mem.h"
#include "spawn.h"
#include "term_filter.h"

#define LOG_MAX_BYTES 16384 /* of its stderr */
#define LOG_STEP 4096
#define LAST_WORDS 500

/* ---- its stderr ---- */

static void on_log(void *arg, int events)
{
    struct browser *b = arg;
    char data[LOG_STEP];
    (void)events;
    ssize_t n = read(b->log_fd, data, sizeof data);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        loop_drop(&b->log_source);
        io_close(&b->log_fd);
        return;
    }
    buf_add(&b->log, data, (size_t)n);
    if (b->log.len > LOG_MAX_BYTES)
        buf_consume(&b->log, b->log.len - LOG_MAX_BYTES / 2);
}

/* What matters is the line in which it gives up, not what it complains of all the time. */
static struct span last_words(const struct browser *b)
{
    const char *text = buf_str(&b->log);
    const char *at = strstr(text, "FATAL"), *end = text + b->log.len;
    if (!at)
        at = end - text > LAST_WORDS ? end - LAST_WORDS : text;
    size_t n = (size_t)(end - at) < LAST_WORDS ? (size_t)(end - at) : LAST_WORDS;
    while (n > 0 && (at[n - 1] == '\n' || at[n - 1] == '\r'))
        n--;
    return (struct span){at, n};
}

int browser_say_end(const struct browser *b, struct err *err)
{
    struct buf words BUF_AUTO = BUF_INIT;
    struct term_filter plain = {0};
    struct span last = last_words(b);
    if (last.n > 0) {
        buf_adds(&words, "; its last words: ");
        term_filter_feed(&plain, last.s, last.n, &words);
    }
    if (b->pid > 0)
        return err_set(err, ERR_TOOL, "the browser (%s) does not answer%s", b->program, buf_str(&words));
    if (WIFSIGNALED(b->status))
        return err_set(err, ERR_TOOL, "the browser was ended by signal %d%s", WTERMSIG(b->status),
                       buf_str(&words));
    return err_set(err, ERR_TOOL, "the browser has ended with exit status %d%s", WEXITSTATUS(b->status),
                   buf_str(&words));
}

bool browser_lacks_sandbox(const struct browser *b)
{
    static const char *const signs[] = {"No usable sandbox", "without --no-sandbox", "sandbox/linux",
                                        "setuid_sandbox"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(buf_str(&b->log), signs[i]))
            return true;
    return false;
}

/* ---- start ---- */

struct words {
    char *list[48];
    size_t n;
};

static void add_word(struct words *w, char *word)
{
    w->list[w->n++] = word;
    w->list[w->n] = NULL;
}

/* Without what a browser does of its own accord: calls home, questions, bars, throttling of pages that nobody
 * sees. A page that was left is loaded again, not taken out of a cache: pages behave as when first seen. */
static void put_words(struct words *w, const struct browser *b, const struct browser_wish *wish)
{
    static const char unwanted_features[] =
        "--disable-features=BackForwardCache,HttpsUpgrades,Translate,MediaRouter,OptimizationHints,"
        "PaintHolding,DialMediaRouteProvider,AutofillServerCommunication";
    static const char *const always[] = {
        "--remote-debugging-pipe",
        "--no-startup-window",
        "--no-first-run",
        "--no-default-browser-check",
        "--no-service-autorun",
        "--window-size=1280,1080",
        "--lang=en-GB",
        "--hide-scrollbars",
        "--mute-audio",
        "--password-store=basic",
        "--force-color-profile=srgb",
        "--disable-blink-features=AutomationControlled",
        "--disable-background-networking",
        "--disable-background-timer-throttling",
        "--disable-backgrounding-occluded-windows",
        "--disable-breakpad",
        "--disable-client-side-phishing-detection",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-dev-shm-usage",
        "--disable-extensions",
        unwanted_features,
        "--disable-hang-monitor",
        "--disable-popup-blocking",
        "--disable-prompt-on-repost",
        "--disable-renderer-backgrounding",
        "--disable-search-engine-choice-screen",
        "--disable-sync",
        "--metrics-recording-only",
    };
    add_word(w, mem_strdup(b->program));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        add_word(w, mem_strdup(always[i]));
    add_word(w, mem_printf("--user-data-dir=%s", b->profile.path));
    if (!wish->headful) {
        add_word(w, mem_strdup("--headless"));
        add_word(w, mem_strdup("--disable-gpu"));
    }
    if (!wish->sandbox)
        add_word(w, mem_strdup("--no-sandbox"));
    if (getenv("IGNORE_HTTPS_ERRORS") && *getenv("IGNORE_HTTPS_ERRORS"))
        add_word(w, mem_strdup("--ignore-certificate-errors"));
}

/* Whatever it writes goes to its own folder: the home may be read-only, and is to stay as it was. */
static char **environment(const struct browser *b, const struct keeper *k, const struct browser_wish *wish)
{
    const char *path = b->profile.path;
    char *extra[] = {mem_printf("TMPDIR=%s", path),
                     mem_printf("XDG_CONFIG_HOME=%s", path),
                     mem_printf("XDG_CACHE_HOME=%s", path),
                     mem_printf("XDG_RUNTIME_DIR=%s", path),
                     mem_strdup("DBUS_SESSION_BUS_ADDRESS=unix:path=/dev/null"),
                     NULL};
    if (wish->headful) { /* the display may be found through them */
        free(extra[3]);
        free(extra[4]);
        extra[3] = NULL;
    }
    char **env = spawn_env(k->base.env, extra, wish->user);
    for (char **at = extra; *at; at++)
        free(*at);
    return env;
}

static void on_exit_status(void *arg, pid_t pid, int status)
{
    struct browser *b = arg;
    struct err why;
    (void)pid;
    b->pid = 0;
    b->status = status;
    while (b->log_source && io_is_readable(b->log_fd))
        on_log(b, LOOP_READ);
    log_line(LOG_INFO, "the browser has ended (status %d)", status);
    browser_say_end(b, &why);
    cdp_close(b->cdp, &why);
    b->ended(b->arg);
}

/* The pipes: what it reads, what it writes, its stderr. */
static int run(struct browser *b, const struct keeper *k, const struct browser_wish *wish, int pipes[3][2],
               struct err *err)
{
    struct words words = {0};
    const char *programs[] = {b->program, NULL};
    int more[] = {pipes[0][0], pipes[1][1]};
    char **env = environment(b, k, wish);
    put_words(&words, b, wish);
    struct spawn s = {.programs = programs,
                      .argv = words.list,
                      .env = env,
                      .cwd = "/",
                      .start_dir = -1,
                      .user = wish->user,
                      .fds = {-1, -1, pipes[2][1]},
                      .more = more,
                      .n_more = 2,
                      .victim = true};
    b->pid = spawn(&s, NULL, err);
    spawn_env_free(env);
    for (size_t i = 0; i < words.n; i++)
        free(words.list[i]);
    return b->pid > 0 ? 0 : -1;
}

static int check_display(char *const *env, struct err *err)
{
    const char *x = spawn_env_get(env, "DISPLAY"), *wayland = spawn_env_get(env, "WAYLAND_DISPLAY");
    if ((x && *x) || (wayland && *wayland))
        return 0;
    return err_set(err, ERR_TOOL,
                   "headful needs a display, and neither $DISPLAY nor $WAYLAND_DISPLAY is set; "
                   "open the session with headful false");
}

int browser_start(struct browser *b, const struct keeper *k, const struct browser_wish *wish,
                  const struct cdp_events *events, void *arg, void (*ended)(void *arg), struct err *err)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    *b = (struct browser){.loop = k->base.loop, .log_fd = -1, .profile.lock = -1, .ended = ended, .arg = arg};
    buf_init(&b->log, BUF_NO_MAX);
    b->sandboxed = wish->sandbox;
    b->program = browser_find(k->base.env, !wish->user, err);
    int result = -1;
    if (b->program && (!wish->headful || check_display(k->base.env, err) == 0) &&
        profile_make(&b->profile, k->base.dirfd, k->name, wish->user, err) == 0 &&
        (io_pipes(pipes, 3) == 0 || err_sys(err, ERR_TOOL, errno, "cannot make a pipe") == 0))
        result = run(b, k, wish, pipes, err);
    if (result == 0) {
        loop_child(b->loop, b->pid, on_exit_status, b);
        b->cdp = cdp_new(b->loop, io_take(&pipes[1][0]), io_take(&pipes[0][1]), events, arg);
        b->log_fd = io_take(&pipes[2][0]);
        b->log_source = loop_fd(b->loop, b->log_fd, LOOP_READ, on_log, b);
    } else {
        profile_remove(&b->profile);
        free(b->program);
    }
    for (int i = 0; i < 6; i++)
        io_close(&pipes[i / 2][i % 2]);
    return result;
}

void browser_hang_up(struct browser *b, const struct err *why)
{
    if (b->cdp)
        cdp_close(b->cdp, why);
}
