#include "duration.h"

#include <stdlib.h>
#include <string.h>

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
