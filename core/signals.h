/* Names of signals. */
#ifndef CORE_SIGNALS_H
#define CORE_SIGNALS_H

/* "INT", "SIGINT", "int" or "2" → 2; -1 for anything else. */
int signal_number(const char *name);

#endif
