/* qsort of the static binary: by a heap, in a tenth of the C library's bytes. */
#include <stddef.h>
#include <stdlib.h>

typedef int (*compare)(const void *, const void *);

static void swap(char *a, char *b, size_t size)
{
    while (size-- > 0) {
        char c = a[size];
        a[size] = b[size];
        b[size] = c;
    }
}

/* Of n elements all behind i are no larger than their parent: afterwards i neither. */
static void sink(char *all, size_t i, size_t n, size_t size, compare by)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && by(all + child * size, all + (child + 1) * size) < 0)
            child++;
        if (by(all + i * size, all + child * size) >= 0)
            return;
        swap(all + i * size, all + child * size, size);
    }
}

void qsort(void *all, size_t n, size_t size, compare by)
{
    for (size_t i = n / 2; i-- > 0;)
        sink(all, i, n, size, by);
    while (n-- > 1) {
        swap(all, (char *)all + n * size, size);
        sink(all, 0, n, size, by);
    }
}
