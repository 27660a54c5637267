/* A line on the terminal that says how far a fetch has come. Nothing where stderr is none. */
#ifndef RELEASE_FETCH_PROGRESS_H
#define RELEASE_FETCH_PROGRESS_H

struct fetch_progress {
    const char *name;
    unsigned long long first, total; /* bytes that were there at the start; of the whole file, 0: unknown */
    long long began, drawn;          /* ms */
};

void fetch_progress_begin(struct fetch_progress *p, const char *name, unsigned long long first,
                          unsigned long long total);
void fetch_progress_draw(struct fetch_progress *p, unsigned long long now);
void fetch_progress_end(const struct fetch_progress *p); /* the line is empty again */

#endif
