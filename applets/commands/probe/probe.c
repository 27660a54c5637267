#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "applet.h"
#include "buf.h"
#include "io.h"
#include "err.h"
#include "probe_controller.h"
#include "probe_report.h"
#include "relocate.h"

const struct applet probe_applet;

static int probe_run(int argc, char **argv)
{
    static const char *const options[] = {"--json", "--help", NULL};
    bool json = !isatty(STDOUT_FILENO);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") != 0)
            return usage_unknown("probe", argv[i][0] == '-' ? "option" : "argument", argv[i], options);
        json = true;
    }
    signal(SIGXFSZ, SIG_IGN); /* where a limit allows no file, that is the answer */
    struct probe found;
    struct buf text BUF_AUTO = BUF_INIT;
    struct err err;
    if (code_unpack(CODE_probe, &err) < 0)
        return applet_failed("probe", "%s", err.msg);
    probe_collect(&found);
    if (json)
        probe_json(&found, &text);
    else
        probe_table(&found, &text);
    probe_release(&found);
    if (io_write_all(STDOUT_FILENO, text.data, text.len) < 0)
        return applet_failed("probe", "can't write to standard output: %s", err_text(errno));
    return EXIT_OK;
}

const struct applet probe_applet = {
    .name = "probe",
    .summary = "report on this binary, the system, the user and the limits",
    .run = probe_run,
};
