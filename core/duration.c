#include "duration.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECONDS_MAX 1e9

static const struct {
    const char *unit;
    double seconds;
} units[] = {{"", 1}, {"s", 1}, {"ms", 0.001}, {"m", 60}, {"h", 3600}, {"d", 86400}};

bool duration_read(const char *text, double *seconds)
{
    char *unit;
    if (!strchr("0123456789.", *text) || strpbrk(text, "xX")) /* no sign, no word, nothing hexadecimal */
        return false;
    double number = strtod(text, &unit);
    for (size_t i = 0; unit > text && i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].unit) != 0)
            continue;
        *seconds = number * units[i].seconds;
        return *seconds <= SECONDS_MAX;
    }
    return false;
}

void time_put(struct buf *out, long long seconds)
{
    time_t at = (time_t)seconds;
    struct tm tm = {0};
    gmtime_r(&at, &tm);
    buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
             tm.tm_min, tm.tm_sec);
}
